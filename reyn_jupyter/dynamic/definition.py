"""The definition of a tool made at run time: what it is called, what it takes, what it does, and how it has done.

Invariants: a definition never changes, a use makes a new one; its hash covers all that decides what the tool does; its
parameters become one JSON Schema, and what that schema refuses never reaches the code. Source: dynamic tool generation,
API reference (DynamicToolDefinition, ToolParameterDefinition).
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
import warnings
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from reyn_jupyter.catalog.arguments.schema_validation import shown
from reyn_jupyter.catalog.names import WRAPPERS
from reyn_jupyter.catalog.text_normalization import quoted
from reyn_jupyter.dynamic.tool_error import DynamicToolError
from reyn_jupyter.dynamic.tool_parameters import (
    LONGEST_DESCRIPTION,
    LONGEST_NAME,
    MOST_PARAMETERS,
    ToolParameter,
    join_faults,
    json_faults,
    plain_json,
    schema_of,
    value_faults,
)
from reyn_jupyter.support.python_source import parse_source
from reyn_jupyter.support.text import shorten
from reyn_jupyter.support.validation_messages import problems

Mode = Literal["python", "typescript"]
Verification = Literal["unverified", "pending", "passed", "failed", "deprecated"]

TOOL_NAMES = (
    "create_tool",
    "run_dynamic_tool",
    "list_dynamic_tools",
    "delete_dynamic_tool",
    "tool_reflection",
)
LONGEST_CODE = 200_000  # characters
MOST_TAGS = 50
MOST_EXAMPLES = 50
SUCCESS_STEP, FAILURE_STEP, LEAST_CONFIDENCE = 0.02, 0.05, 0.1

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_RESERVED = frozenset({*TOOL_NAMES, *WRAPPERS})
_SCRIPT_EXECUTE = re.compile(
    r"^\s*(?:export\s+(?:default\s+)?)?"
    r"(?:(?:async\s+)?function\s*\*?\s*execute\s*[(<]|(?:const|let|var)\s+execute\s*[:=])",
    re.MULTILINE,
)


def _moment(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("the time has no zone; write it in ISO 8601 with one, such as 2026-01-31T09:30:00Z")
    return text


_Moment = Annotated[str, Field(max_length=40), AfterValidator(_moment)]
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
CAPABILITY = r"[a-z0-9-]{1,126}\.[a-z0-9-]{1,126}"  # as the manifests of utilities have it
_PINNED = {"name", "mode", "code", "parameters", "permissions", "capability", "output_schema", "examples"}
_FROZEN = ConfigDict(frozen=True, extra="forbid")


class Example(BaseModel):
    """A call of a tool, and the result that it must give.

    >>> Example(parameters={"text": "ab"}, result="ba").result
    'ba'
    """

    model_config = _FROZEN

    parameters: dict[str, JsonValue]
    result: JsonValue


class DynamicTool(BaseModel):
    """A tool made at run time.

    Attributes:
        id: made of name and code, see `tool_id`.
        parameters: what it takes; None where nothing was declared, and any object is taken.
        created_at, updated_at, last_used_at: ISO 8601 with a zone.
        created_from_task: the task that it was made for, as it was told.
        usage_count, failure_count: runs, and those among them that failed.
        confidence_score, safety_score, quality_score: from 0 to 1.
        created_by: who asked for it.
        permissions: what it may reach beside its parameters.
        capability: what it does for plans, a domain and an action; None where it serves none.
        output_schema: JSON Schema of its result, which is held to it; None where anything may come.
        examples: calls with their results, by which it is verified.
        origins: where texts of others came from that its maker had read.
        sha256: of all that decides what it does, see `digest`; it pins the tool that a person agreed to.

    >>> tool = DynamicTool.create(name="reverse", description="Reverse a text", code="def execute(p): return 1",
    ...                           at="2026-01-31T09:30:00+00:00", safety_score=1.0, quality_score=0.7)
    >>> tool.is_intact, tool.confidence_score, tool.used(True, "2026-01-31T09:31:00+00:00").confidence_score
    (True, 0.7, 0.72)
    """

    model_config = _FROZEN

    id: str = Field(pattern=r"^dt_[0-9a-f]{12}$")
    name: str = Field(pattern=rf"^{_NAME.pattern}$")
    description: str = Field(max_length=LONGEST_DESCRIPTION)
    mode: Mode
    parameters: tuple[ToolParameter, ...] | None = Field(default=None, max_length=MOST_PARAMETERS)
    code: str = Field(max_length=LONGEST_CODE)
    created_at: _Moment
    updated_at: _Moment
    created_from_task: str | None = Field(default=None, max_length=LONGEST_DESCRIPTION)
    usage_count: int = Field(default=0, ge=0)
    failure_count: int = Field(default=0, ge=0)
    last_used_at: _Moment | None = None
    confidence_score: _Share
    verification_status: Verification = "unverified"
    tags: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = Field(
        default=(), max_length=MOST_TAGS
    )
    created_by: str = Field(default="", max_length=200)
    safety_score: _Share
    quality_score: _Share
    permissions: tuple[Annotated[str, Field(min_length=1, max_length=4_096)], ...] = Field(
        default=(), max_length=50
    )
    capability: str | None = Field(default=None, pattern=rf"^{CAPABILITY}$")
    output_schema: dict[str, Any] | None = None
    examples: tuple[Example, ...] = Field(default=(), max_length=MOST_EXAMPLES)
    origins: tuple[Annotated[str, Field(max_length=500)], ...] = Field(default=(), max_length=50)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")

    @classmethod
    def create(
        cls, *, name: str, code: str, at: str, safety_score: float, quality_score: float, **others: Any
    ) -> DynamicTool:
        """Return a new tool with its id and hash, and the confidence that its scores give it.

        Args:
            at: now, in ISO 8601 with a zone.
            others: further attributes; the mode is detected where it is left out.

        Raises:
            DynamicToolError: the name is none (E101 to E104), or another value does not fit (E106).
        """
        check_name(name)
        values: dict[str, Any] = {"mode": detect_mode(code), "created_at": at, "updated_at": at, **others}
        values |= {"safety_score": safety_score, "quality_score": quality_score}
        values["confidence_score"] = round(min(safety_score, quality_score), 4)
        try:
            made = cls(name=name, code=code, id=tool_id(name, code), sha256="0" * 64, **values)
        except ValidationError as error:
            raise DynamicToolError(
                f"the tool cannot be made: {'; '.join(problems(error, cls))}", "Mend what is named.", "E106"
            ) from None
        return made.model_copy(update={"sha256": made.digest()})

    @property
    def input_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of what it takes; closed where parameters were declared, any object otherwise."""
        if self.parameters is None:
            return {"type": "object", "properties": {}, "additionalProperties": True}
        return schema_of(self.parameters)

    def digest(self) -> str:
        """Return the SHA-256 of what decides what the tool does and serves."""
        does = self.model_dump(mode="json", include=_PINNED)
        written = json.dumps(does, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(written.encode()).hexdigest()

    @property
    def is_intact(self) -> bool:
        """Return whether it does what it did when it was made."""
        return self.digest() == self.sha256 and self.id == tool_id(self.name, self.code)

    def check_intact(self) -> None:
        """Check that it may run.

        Raises:
            DynamicToolError: E204: the definition was changed since it was made.
        """
        if not self.is_intact:
            raise DynamicToolError(
                f"the definition of {self.name} was changed on the disk since the tool was made, so it is not run",
                f"Look at it; then delete {self.name} and create it anew.",
                "E204",
            )

    def used(self, success: bool, at: str) -> DynamicTool:
        """Return the tool after one more run.

        Confidence gains 0.02 by a success, up to 1, and loses 0.05 by a failure, down to 0.1; one that began lower
        stays there.

        Args:
            success: whether the run succeeded.
            at: when it ended, in ISO 8601 with a zone.
        """
        before = self.confidence_score
        after = (
            min(1.0, before + SUCCESS_STEP)
            if success
            else min(before, max(LEAST_CONFIDENCE, before - FAILURE_STEP))
        )
        return self.model_copy(
            update={
                "usage_count": self.usage_count + 1,
                "failure_count": self.failure_count + (not success),
                "last_used_at": _moment(at),
                "confidence_score": round(after, 4),
            }
        )

    def with_verification(self, status: Verification, at: str) -> DynamicTool:
        """Return the tool with another status, changed at a time in ISO 8601 with a zone."""
        return self.model_copy(update={"verification_status": status, "updated_at": _moment(at)})


def result_fault(tool: DynamicTool, value: Any) -> str | None:
    """Return why a result does not fit the output schema of a tool, as a sentence; None where nothing is wrong."""
    if tool.output_schema is None:
        return None
    import jsonschema_rs

    try:
        error = next(iter(jsonschema_rs.validator_for(tool.output_schema).iter_errors(value)), None)
    except ValueError as wrong:
        return f"Its result cannot be held to its output schema: {shorten(str(wrong), 300)}."
    if error is None:
        return None
    place = "".join(f"/{step}" for step in error.instance_path)
    return f"Its result does not fit its output schema{f' at {place}' if place else ''}: {shorten(error.message, 300)}."


def check_name(name: object) -> None:
    """Check the name of a new tool.

    Raises:
        DynamicToolError: it is empty (E101), too long (E102), of another form (E103), or reserved (E104).
    """
    rule = "a name starts with a letter and has letters, digits, _ and - only"
    if not isinstance(name, str) or not name.strip():
        raise DynamicToolError("a tool needs a name", f"Give one: {rule}.", "E101")
    if len(name) > LONGEST_NAME:
        raise DynamicToolError(
            f"the name {quoted(name)} has {len(name):,} characters", f"Use at most {LONGEST_NAME}.", "E102"
        )
    if not _NAME.fullmatch(name):
        near = re.sub(r"^[^A-Za-z]+|[^A-Za-z0-9_-]+$", "", re.sub(r"[^A-Za-z0-9_-]+", "_", name)).strip("_")
        offer = f" {near!r} would do." if _NAME.fullmatch(near) else ""
        raise DynamicToolError(f"{quoted(name)} is no name of a tool", f"{rule.capitalize()}.{offer}", "E103")
    if name.casefold().replace("-", "_") in _RESERVED:
        raise DynamicToolError(f"the name {name!r} is reserved", "Choose another name.", "E104")


def tool_id(name: str, code: str) -> str:
    """Return the id of a tool: the same name and code always give the same one.

    >>> tool_id("reverse", "def execute(params): return params")
    'dt_df611616048a'
    """
    return f"dt_{hashlib.sha256(f'{name}:{code}'.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def detect_mode(code: str) -> Mode:
    """Return the language of a tool's code: Python if it parses so or has no ``execute`` of TypeScript's kind either.

    >>> detect_mode("async function execute(params) { return params.text }")
    'typescript'
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parse_source(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "typescript" if _SCRIPT_EXECUTE.search(code) else "python"
    return "python"


def read_examples(given: object, parameters: Sequence[ToolParameter] | None) -> tuple[Example, ...]:
    """Return the examples that a list of objects with ``parameters`` and ``result`` gives.

    Args:
        given: the list.
        parameters: what the tool takes; None where any object is taken.

    Raises:
        DynamicToolError: E106, with all that does not fit, parameters that the tool does not take among it.
    """
    hint = 'Give examples as a list: [{"parameters": {"text": "ab"}, "result": "ba"}].'
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise DynamicToolError(f"examples must be an array, not {shown(given)}", hint, "E106")
    found: list[Example] = []
    faults: list[str] = []
    for number, each in enumerate(given, 1):
        own = list(json_faults(each))
        if not own:
            try:
                found.append(Example.model_validate(each))
            except ValidationError as error:
                own = problems(error, Example)
            else:
                own = [fault for _, fault in value_faults(parameters, plain_json(each["parameters"]))]
        faults += [f"example {number}: {fault}" for fault in own]
    if faults:
        raise DynamicToolError(f"the examples do not fit: {join_faults(faults)}", hint, "E106")
    return tuple(found)


def apply_parameters(tool: DynamicTool, given: object) -> dict[str, Any]:
    """Return what a tool's code is given: plain JSON, with the defaults of what was left out.

    Args:
        tool: whose parameters they are.
        given: the parameters of a call.

    Raises:
        DynamicToolError: a required one is missing (E105), or one is unknown, of another type, out of bounds, not
            among the allowed values or no JSON (E106); the message names all that is wrong.
    """
    if not isinstance(given, Mapping):
        raise DynamicToolError(
            f"the parameters of {tool.name} must be an object, not {shown(given)}", _takes(tool), "E106"
        )
    faults = [("E106", fault) for fault in json_faults(given)]
    values: dict[str, Any] = {} if faults else plain_json(given)
    for parameter in tool.parameters or ():
        if parameter.has_default and parameter.name not in values:
            values[parameter.name] = copy.deepcopy(parameter.default)
    if not faults:
        faults = list(value_faults(tool.parameters, values))
    if faults:
        missing = any(code == "E105" for code, _ in faults)
        raise DynamicToolError(
            f"{tool.name}: {join_faults(fault for _, fault in faults)}",
            _takes(tool),
            "E105" if missing else "E106",
        )
    return values


def _takes(tool: DynamicTool) -> str:
    if tool.parameters is None:
        return f"{tool.name} takes any object of plain JSON."
    if not tool.parameters:
        return f"{tool.name} takes no parameters; give {{}}."
    return f"{tool.name} takes {'; '.join(each.summary for each in tool.parameters)}."
