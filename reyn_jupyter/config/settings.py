"""The settings as typed, frozen values.

Invariant: a `Settings` that exists is valid. Every number is inside its bounds, every name is one of those
listed, every permission pattern can be read, and no key is kept that nobody knows. None means "decided
later": by the model's tier (`router.*`) or by where the model runs (`variables`). Source of the key names:
Universal Action Catalog (FP-0034), "Configuration"; `router.*`, `permissions`, `outputs` are this project's
own.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationInfo,
    field_validator,
    model_validator,
)

from reyn_jupyter.config.patterns import ActionPattern
from reyn_jupyter.support.network.hosts import read_host

Tier = Literal["light", "standard", "strong"]
LOCAL_MINI = "sentence-transformers/all-MiniLM-L6-v2"
_SMALL, _LARGE = "openai/text-embedding-3-small", "openai/text-embedding-3-large"
MULTILINGUAL = "universal-sentence-encoder/multilingual-3"
EMBEDDING_MODELS = {
    "local-mini": LOCAL_MINI,
    "multilingual": MULTILINGUAL,
    "light": _SMALL,
    "standard": _SMALL,
    "strong": _LARGE,
}


def _switch(value: object) -> object:
    """Return a boolean as the word that was written: YAML reads `off` and `on` as booleans."""
    return {False: "off", True: "on"}[value] if isinstance(value, bool) else value


def _number(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("a number is needed here, not on or off")
    return value


def _several(value: object) -> object:
    return [value] if isinstance(value, str) else value


Whole = Annotated[int, BeforeValidator(_number)]
Real = Annotated[float, BeforeValidator(_number)]
Words = Annotated[tuple[str, ...], BeforeValidator(_several)]


class SettingsSection(BaseModel):
    """A part of the settings: frozen, and a key that it does not know is an error."""

    # Built on first use: a notebook that only loads the extension does not pay for the validators.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class ModelEntry(SettingsSection):
    """One configured model. A bare string in a file stands for `model` alone."""

    model: str = Field(min_length=1, max_length=200, description="LiteLLM model string")
    tier: Tier | None = Field(
        default=None, description="how much guidance it needs; the entry's own name when left out"
    )
    api_base: str | None = Field(
        default=None, min_length=1, description="base URL of a server that speaks the same protocol"
    )
    headers: dict[str, str] = Field(default_factory=dict, description="HTTP headers sent with every request")
    parameters: dict[str, JsonValue] = Field(
        default_factory=dict, description="temperature, seed, max_tokens, …"
    )
    media: tuple[Literal["image", "audio"], ...] | None = Field(
        default=None, description="what it takes beside text; LiteLLM's list says so when left out"
    )

    @model_validator(mode="before")
    @classmethod
    def _from_string(cls, value: object) -> object:
        return {"model": value} if isinstance(value, str) else value

    @field_validator("parameters")
    @classmethod
    def _no_keys(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value:
            if name.lower() in ("api_key", "api-key", "apikey", "token", "password"):
                raise ValueError(
                    f"{name!r} does not belong into a file; set the provider's environment variable"
                )
        return value


class Models(SettingsSection):
    """The three tiers; None where none is configured."""

    light: ModelEntry | None = Field(default=None, description="the model for router_model: light")
    standard: ModelEntry | None = Field(default=None, description="the model for router_model: standard")
    strong: ModelEntry | None = Field(default=None, description="the model for router_model: strong")


class EmbeddingClass(SettingsSection):
    """One class of embeddings."""

    model: str = Field(min_length=1, max_length=200, description="embedding model string")

    @model_validator(mode="before")
    @classmethod
    def _from_string(cls, value: object) -> object:
        return {"model": value} if isinstance(value, str) else value


class Embedding(SettingsSection):
    classes: dict[str, EmbeddingClass] = Field(
        default_factory=lambda: {
            name: EmbeddingClass(model=model) for name, model in EMBEDDING_MODELS.items()
        },
        description="embedding classes by name, each with its model",
    )


class ActionRetrieval(SettingsSection):
    universal_wrappers_enabled: bool = Field(
        default=True, description="off is the same as router.surface: flat"
    )
    embedding_class: str | None = Field(
        default="local-mini", description="class used to search actions; null opts out"
    )
    hot_list_n: Whole = Field(
        default=0, ge=0, le=100, description="recently used actions, then reads, offered as direct tools"
    )


MODEL_TIMEOUT = 60.0  # seconds; a model on this machine gets more before its first word
DEFAULT_RETRIES = 3  # repeats of a call that may go through later; the waits are `models.retry.RetryPolicy`
QUESTION_SECONDS = 600.0  # for which a question of consent stays open while nobody shows it


class Limits(SettingsSection):
    """The limits at which a turn stops. None is no limit."""

    max_steps: Whole = Field(default=8, ge=1, le=1000, description="steps (model calls) a turn")
    calls_per_completion: Whole = Field(default=50, ge=1, le=10_000, description="tool calls run of one step")
    writes_per_completion: Whole | None = Field(
        default=None, ge=1, le=10_000, description="calls run of one step that may change something"
    )
    model_timeout: Real = Field(
        default=MODEL_TIMEOUT, gt=0, le=3600, description="seconds that a model may be silent in a call"
    )
    retries: Whole = Field(
        default=DEFAULT_RETRIES, ge=0, le=20, description="repeats of a model call that failed for a while"
    )
    turn_tokens: Whole | None = Field(default=None, ge=1, le=10**12, description="tokens a turn")
    session_tokens: Whole | None = Field(default=None, ge=1, le=10**12, description="tokens a session")
    turn_cost: Real | None = Field(default=None, ge=0, description="US dollars a turn")
    session_cost: Real | None = Field(default=None, ge=0, description="US dollars a session")
    history_tokens: Whole = Field(
        default=24_000, ge=0, le=10_000_000, description="history beyond which old turns shrink"
    )
    flat_tokens: Whole = Field(
        default=4_000, ge=0, le=1_000_000, description="definitions up to which surface auto is flat"
    )


class Weak(SettingsSection):
    """Help for weak models; each key is on for a model of the tier `light` unless it says otherwise."""

    text_calls: bool | None = Field(
        default=None, description="run a reply that is nothing but a call as text"
    )
    stop_repeats: bool | None = Field(
        default=None, description="point to the earlier result of a call instead of running it again"
    )
    check_support: bool | None = Field(
        default=None, description="ask once more for an answer that no result supports"
    )
    fit_context: bool | None = Field(
        default=None, description="shrink listings, results and history to the model's context length"
    )
    short_errors: bool | None = Field(
        default=None, description="errors of calls in one line, with the nearest right value"
    )
    required_first: bool | None = Field(
        default=None, description="in two steps, an action is first offered with its required arguments alone"
    )


ReasoningEffort = Literal["none", "minimal", "low", "medium", "high"]


class Router(SettingsSection):
    surface: Literal["universal", "flat", "auto"] | None = Field(
        default=None, description="which tools the model sees"
    )
    discovery: Literal["prompt", "gate", "forced", "two_steps"] | None = Field(
        default=None, description="how listing first is brought about"
    )
    mandate: Literal["none", "generic", "explicit"] | None = Field(
        default=None, description="wording of the listing mandate"
    )
    reinforcement: Whole | None = Field(
        default=None, ge=0, le=10, description="how many times the mandate is placed"
    )
    reinforce_with: Literal["mandate", "reminder"] = Field(
        default="mandate", description="what is placed again: the mandate itself, or a shorter reminder of it"
    )
    edit_rule: Literal["none", "reasoned", "must"] | None = Field(
        default=None, description="wording of the edit mandate"
    )
    list_schemas: bool = Field(default=True, description="schemas in narrowed listings")
    listing_order: Literal["name", "reads_first"] | None = Field(
        default=None, description="order of the actions in a model's listings"
    )
    listing_limit: Whole = Field(
        default=100, ge=1, le=100, description="most actions a page of a model's listings"
    )
    names: Literal["hidden", "shown"] = Field(
        default="hidden", description="action names in the system prompt"
    )
    constrain_names: bool = Field(
        default=False, description="after a listing, action_name carries an enum of what was listed"
    )
    repair: bool = Field(default=False, description="run an unambiguous near-miss of a read-only action")
    forgive: bool = Field(
        default=True, description="decode, lift and coerce arguments where the schema allows one reading"
    )
    reasoning_effort: ReasoningEffort | None = Field(
        default=None, description="how much a reasoning model thinks; the provider's default when left out"
    )
    weak: Weak = Field(default_factory=Weak)
    limits: Limits = Field(default_factory=Limits)


PerCallSeconds = Annotated[dict[str, Annotated[Real, Field(gt=0, le=86_400)]], Field(max_length=200)]
PerCallPlaces = Annotated[dict[str, Annotated[Whole, Field(ge=1, le=10_000)]], Field(max_length=200)]


class CallSettings(SettingsSection):
    """The limits of single calls, by category: each takes the place of what the category and its tools declare."""

    seconds: PerCallSeconds = Field(default_factory=dict, description="seconds a call, by category")
    at_once: PerCallPlaces = Field(
        default_factory=dict, description="calls that run at the same time, by category; others wait in order"
    )


class SandboxSettings(SettingsSection):
    backend: str = Field(
        default="auto", min_length=1, max_length=40, description="auto takes the strongest that works"
    )
    minimum: str | None = Field(
        default=None, min_length=1, max_length=40, description="refuse anything weaker than this"
    )


MCP_REGISTRY = "https://registry.modelcontextprotocol.io"  # the one that the protocol's authors run


class Mcp(SettingsSection):
    registry: str = Field(
        default=MCP_REGISTRY,
        min_length=1,
        max_length=500,
        description="base URL of the registry of MCP servers",
    )


class Web(SettingsSection):
    search: Literal["searxng", "tavily", "brave", "ddgs"] | None = Field(
        default=None, description="search engine; none is asked when left out"
    )
    search_url: str | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="base URL of the search engine; a SearXNG needs one",
    )
    private_hosts: Words = Field(
        default=(),
        max_length=200,
        description="hosts that may be on this machine or in a private network: wiki.example.org, localhost:8080",
    )
    proxy: str | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="URL of an HTTP proxy that pages are fetched through",
    )
    robots: bool = Field(default=True, description="keep to what sites ask of programs (robots.txt)")

    @field_validator("private_hosts")
    @classmethod
    def _hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(str(read_host(each)) for each in value)


FROM_ENVIRONMENT = "environment"  # in place of an address: what OTEL_EXPORTER_OTLP_* say


class Otel(SettingsSection):
    """Runs as OpenTelemetry spans, sent to a collector when they end."""

    endpoint: str | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="base URL of the OTLP/HTTP collector that runs are sent to as spans, or `environment` for what "
        "OTEL_EXPORTER_OTLP_* say; none is sent when left out",
    )
    content: bool = Field(
        default=False, description="what was said is in the spans, too: prompts, answers, arguments, results"
    )

    @field_validator("endpoint")
    @classmethod
    def _web_address(cls, value: str | None) -> str | None:
        if value in (None, FROM_ENVIRONMENT):
            return value
        if not value.startswith(("https://", "http://")):
            raise ValueError(f"an address begins with https:// or http://; or say {FROM_ENVIRONMENT}")
        read_host(value)
        if "@" in value.split("/")[2]:
            raise ValueError("no user or password belongs into a file; set OTEL_EXPORTER_OTLP_HEADERS")
        return value


def _peer_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", name) or "__" in name:
        raise ValueError("the name of a peer has letters, digits, - and single _, at most 64 of them")
    return name


class PeerLimits(SettingsSection):
    """The limits of one request to a peer, within those of the turn that asks. None is no limit of its own."""

    max_steps: Whole | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="steps (model calls) a request, those of peers that it asks too",
    )
    tokens: Whole | None = Field(default=None, ge=1, le=10**12, description="tokens a request")
    cost: Real | None = Field(default=None, ge=0, description="US dollars a request")
    seconds: Real | None = Field(default=None, gt=0, le=86_400, description="seconds a request")


class Peer(SettingsSection):
    """Another agent that models may ask: a router loop of this session's, or one behind an address."""

    description: str = Field(
        default="", max_length=1000, description="what the peer is good for, as models read it in the catalog"
    )
    model: ModelEntry | None = Field(
        default=None, description="its model, or a tier; that of whoever asks when left out"
    )
    prompt: str = Field(
        default="", max_length=20_000, description="who it is and how it works, for its model"
    )
    categories: Words = Field(
        default=(), max_length=200, description="kinds of action that it may use; none when left out"
    )
    limits: PeerLimits = Field(default_factory=PeerLimits)
    url: str | None = Field(
        default=None, max_length=500, description="address of a remote peer, in place of a model"
    )
    token: str | None = Field(default=None, description="name of the secret that a remote peer is shown")

    @field_validator("url")
    @classmethod
    def _web_address(cls, value: str | None) -> str | None:
        if value is not None:
            if not value.startswith(("https://", "http://")):
                raise ValueError("an address begins with https:// or http://")
            read_host(value)
        return value

    @field_validator("token")
    @classmethod
    def _named(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", value):
            raise ValueError("a token is given by the name of a secret: letters, digits and _")
        return value

    @model_validator(mode="after")
    def _one_kind(self) -> Peer:
        if self.url is None and self.token is not None:
            raise ValueError("a token is for a remote peer, which has a url")
        own = [name for name in ("model", "prompt", "categories") if getattr(self, name)]
        if self.url is not None and own:
            raise ValueError(f"a peer with a url has its own {' and '.join(own)}; leave it out here")
        unknown = [name for name in ("max_steps", "tokens", "cost") if getattr(self.limits, name) is not None]
        if self.url is not None and unknown:
            raise ValueError(
                f"{' and '.join(unknown)} of a peer with a url cannot be known; limit its seconds"
            )
        return self


class Permissions(SettingsSection):
    """Rules by action and target, e.g. ``file__write(data/**)``. Over the layers they add up; deny wins."""

    allow: Words = Field(default=(), description="patterns that need no consent")
    ask: Words = Field(default=(), description="patterns that are always asked about")
    deny: Words = Field(default=(), description="patterns that never run")
    after_untrusted: Literal["ask", "deny"] | None = Field(
        default=None,
        description="what becomes of calls, all but reads in the workspace, once the model has read text of others: "
        "ask asks about what is allowed too, deny denies them",
    )
    untrusted_files: Words = Field(
        default=(),
        max_length=200,
        description="paths in the workspace whose files are text of others: downloads/**",
    )

    question_seconds: float = Field(
        default=QUESTION_SECONDS,
        gt=0,
        le=7 * 24 * 3600,
        description="seconds for which a question stays open while no page shows it; then the call is denied",
    )

    @field_validator("allow", "ask", "deny")
    @classmethod
    def _readable(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        for pattern in value:
            ActionPattern.parse(pattern, loosens=info.field_name == "allow")
        return value

    @field_validator("untrusted_files")
    @classmethod
    def _paths(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for glob in value:
            ActionPattern.parse(f"*(read:{glob})")
        return value


class Outputs(SettingsSection):
    """The sizes at which results are stored, summarised and cut; the byte figures follow the tool-output design."""

    inline_bytes: Whole = Field(
        default=800, ge=0, le=1_000_000, description="a larger result is stored as a blob and summarised"
    )
    summary_bytes: Whole = Field(default=400, ge=100, le=100_000, description="most bytes of a summary")
    head_lines: Whole = Field(default=5, ge=0, le=1000, description="first lines in the summary of a text")
    tail_lines: Whole = Field(default=3, ge=0, le=1000, description="last lines in the summary of a text")
    answer_bytes: Whole = Field(
        default=8192, ge=256, le=1_000_000, description="most bytes of one inspection or listing"
    )


class DynamicTools(SettingsSection):
    """Tools that are made at run time."""

    most: Whole = Field(default=100, ge=0, le=10_000, description="how many tools may be kept")
    strict: bool = Field(
        default=False, description="weigh what the analysis of their code finds by half as much again"
    )


class WorkflowSettings(SettingsSection):
    """Utilities, and plans of steps over them."""

    folders: Words = Field(
        default=(),
        max_length=50,
        description="folders with utilities, beside the workspace's tools: ~/utilities",
    )
    at_once: Whole = Field(default=4, ge=1, le=64, description="steps of a plan that run at the same time")
    confidence: Real = Field(
        default=0.75, ge=0, le=1, description="confidence that a step needs which a language model planned"
    )


PeerName = Annotated[str, AfterValidator(_peer_name)]
VariablesSetting = Annotated[Literal["off", "schema", "head"] | None, BeforeValidator(_switch)]


class Settings(SettingsSection):
    """Everything that can be configured.

    Example:
        >>> Settings.model_validate({"models": {"standard": "openai/gpt-4o-mini"}}).models.standard.model
        'openai/gpt-4o-mini'
        >>> Settings().router.limits.max_steps
        8
    """

    models: Models = Field(default_factory=Models)
    router_model: Tier = Field(default="standard", description="which of the models runs the loop")
    embedding: Embedding = Field(default_factory=Embedding)
    action_retrieval: ActionRetrieval = Field(default_factory=ActionRetrieval)
    router: Router = Field(default_factory=Router)
    variables: VariablesSetting = Field(
        default=None, description="how much of a variable the model sees: off, schema, head"
    )
    local_history: bool = Field(
        default=False, description="send a hosted model what earlier turns found that never left this machine"
    )
    calls: CallSettings = Field(default_factory=CallSettings)
    sandbox: SandboxSettings = Field(default_factory=SandboxSettings)
    mcp: Mcp = Field(default_factory=Mcp)
    web: Web = Field(default_factory=Web)
    otel: Otel = Field(default_factory=Otel)
    peers: dict[PeerName, Peer] = Field(
        default_factory=dict, max_length=100, description="agents that models may ask, by name"
    )
    dynamic_tools: DynamicTools = Field(default_factory=DynamicTools)
    workflows: WorkflowSettings = Field(default_factory=WorkflowSettings)
    permissions: Permissions = Field(default_factory=Permissions)
    outputs: Outputs = Field(default_factory=Outputs)
    llm_log: bool = Field(
        default=False, description="show what was sent to models and what came back, redacted"
    )
