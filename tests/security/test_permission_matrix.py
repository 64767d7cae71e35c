"""The permission matrix: every kind of effect × every form of rule × every entrance, by one table of what must happen.

A rule is for one kind, for one action, or for targets without a kind, and stands in each list. An entrance is a way to
a handler: a model's call (under each of `--approve`), `%reyn invoke`, the form of a page, a replay, a script, a
question in the middle of a call, a trial, an MCP client of a served session. The table `expected` knows nothing of how
the gate works.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal

import pytest
from IPython.core.interactiveshell import InteractiveShell
from mcp import Client

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Arguments, Category, Effect, EffectKind, Operation, Purity, Tool
from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.notebook import extension
from reyn_jupyter.notebook.serving.connection import Connection
from reyn_jupyter.notebook.serving.hub import Hub
from reyn_jupyter.notebook.serving.protocol import PROTOCOL
from reyn_jupyter.runtime.questions.approval_queue import all_pending, queue_of
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.runtime.services import ToolContext
from reyn_jupyter.sessions import current
from reyn_jupyter.sessions.result_objects import ActionFailedError
from tests.evaluation.trial_support import Scripts, scenario, suite
from tests.security.security_support import invoke
from tests.support.courier import schema
from tests.support.mcp_client import by_client, call
from tests.support.waiting import PATIENCE, awaited

Outcome = Literal["ran", "asked", "denied", "recorded"]
Listed = Literal["allow", "ask", "deny", "always", "allow_actions"]
PATHS = frozenset({"read", "write", "edit", "create", "delete"})
TARGETS = dict.fromkeys(PATHS, "data/a") | {
    "network": "A.Example.org.",
    "exec": "run  data/a",
    "mcp": "data/a",
    "secret": "DATA_KEY",
}
PATTERNS = dict.fromkeys(PATHS, "data/**") | {
    "network": "*.example.org",
    "exec": "run **",
    "mcp": "data/*",
    "secret": "DATA_*",
}


@dataclass(frozen=True)
class Rule:
    """One rule, in one list; `kind` is the kind that it names, `form` how it is written."""

    listed: Listed
    form: Literal["kind", "bare", "action", "reading", "everything"]
    kind: str = ""

    @property
    def pattern(self) -> str:
        return {
            "kind": f"*({self.kind}:{PATTERNS.get(self.kind)})",
            "bare": "*(data/**)",
            "action": f"world__*{self.kind}",
            "reading": "file__read(data/**)",
            "everything": "*",
        }[self.form]

    def is_about(self, kind: str) -> bool:
        """Return whether the rule's list speaks of an effect of this kind; the table of the matrix."""
        if self.form == "kind":
            return kind == self.kind
        if self.form == "bare":  # what loosens without a kind is about files; `data` is a server's name too
            return kind in PATHS or (kind == "mcp" and self.listed in ("ask", "deny"))
        if (
            self.form == "reading"
        ):  # what tightens it is about whatever reads, what loosens about file__read alone
            return kind == "read" and self.listed in ("ask", "deny")
        return self.form == "everything" or kind == self.kind

    def __str__(self) -> str:
        return f"{self.listed} {self.pattern}"


RULES = [
    None,
    *(Rule(listed, "kind", kind) for listed in ("allow", "ask", "deny", "always") for kind in EffectKind),
    *(Rule(listed, "bare") for listed in ("allow", "ask", "deny", "always")),
    *(
        Rule(listed, "action", kind)
        for listed in ("allow", "deny", "always")
        for kind in ("write", "network")
    ),
    *(Rule(listed, "reading") for listed in ("allow", "ask", "deny", "always")),
    *(Rule(listed, "everything") for listed in ("allow", "ask", "deny", "always")),
]


def expected(rule: Rule | None, kind: str, entrance: str) -> Outcome:
    """Return what must happen; written from the manual page, not from the code."""
    said = rule.listed if rule is not None and rule.is_about(kind) else None
    if said == "deny":
        return "denied"
    if entrance in ("%reyn invoke", "script"):
        return "ran"  # the person's call is consent
    if entrance == "replay":
        return "recorded"  # nothing that changes the world is done again
    if entrance == "trial":
        return "ran" if kind in PATHS else "denied"  # its own workspace, and nobody to ask
    if entrance == "model, approve all":
        return "ran"
    if said in ("allow", "always") or (kind == "read" and said is None):
        return "ran"
    return "denied" if entrance == "model, approve read" else "asked"


@dataclass
class World:
    """A category with an action for each kind of effect, and one that asks for it in the middle of its call."""

    ran: list[str] = field(default_factory=list)

    def category(self) -> Category:
        return Category(
            "world", "Act on the world.", (*map(self._at_once, EffectKind), *map(self._later, EffectKind))
        )

    def _at_once(self, kind: EffectKind) -> Operation:
        async def act(args: Arguments, context: ToolContext) -> str:
            self.ran.append(kind)
            return "acted"

        purity = Purity.READ if kind == "read" else Purity.WRITE
        tool = Tool(f"act_{kind}", act, purity, lambda args, context: [Effect(kind, TARGETS[kind])])
        return Operation(kind, "Act.", schema(), tool)

    def _later(self, kind: EffectKind) -> Operation:
        async def act(args: Arguments, context: ToolContext) -> str:
            await context.ask(Effect(kind, TARGETS[kind]))
            self.ran.append(kind)
            return "acted"

        return Operation(f"later_{kind}", "Act.", schema(), Tool(f"act_later_{kind}", act, Purity.READ))


class Bench:
    """One rule in force, and each entrance to the world."""

    def __init__(self, root: Path, rule: Rule | None) -> None:
        self.root = root
        self.rule = rule
        self.world = World()
        self.asked: list[str] = []
        self.session = self._session(rule)
        if rule is not None and rule.listed == "always":
            self.session.parts.approvals.add(rule.pattern)

    def _session(self, rule: Rule | None) -> reyn.Session:
        rules = {rule.listed: [rule.pattern]} if rule is not None and rule.listed != "always" else {}
        config = {"permissions": rules}
        made = reyn.Session(self.root, categories=(self.world.category(),), config=config, namespace={})
        made.parts.ask_person = self._deny
        return made

    def _deny(self, question: Question) -> Answer:
        self.asked.append(question.action.removeprefix("world__").removeprefix("later_"))
        return "deny"

    def outcomes(self, enter: Callable[[], Any]) -> dict[str, Outcome]:
        """Return what happened for each kind."""
        self.world.ran.clear()
        self.asked.clear()
        recorded = enter() or ()
        return {
            kind: "ran"
            if kind in self.world.ran
            else "asked"
            if kind in self.asked
            else "recorded"
            if kind in recorded
            else "denied"
            for kind in EffectKind
        }

    def model(self, prefix: str = "", **options: Any) -> None:
        calls = [invoke(f"world__{prefix}{kind}") for kind in EffectKind]
        trace = self.session.ask("go", model=ScriptedModel(calls, "done"), new=True, **options)
        for made in trace.calls:  # the record names the target that the rule was held against
            decided = made.further[0] if prefix and made.further else made.decision
            if decided is not None and decided.effects:
                kind = str(made.resolved.name).rpartition("_")[2]
                assert decided.effects == (str(Effect(kind, TARGETS[kind])),)

    def magic(self, shell: InteractiveShell) -> None:
        current._current[:] = [self.session]
        for kind in EffectKind:
            shell.run_cell(f"%reyn invoke world__{kind}", store_history=False)

    def form(self) -> None:
        messages: SimpleQueue[dict[str, Any]] = SimpleQueue()
        hub = Hub(lambda: self.session)
        page = Connection(hub, messages.put, None)
        try:
            hello = {"protocol": PROTOCOL, "host": "page", "version": "0", "approves": True}
            page.receive({"type": "request", "id": 1, "op": "hello", "args": hello})
            for number, kind in enumerate(EffectKind, 2):
                args = {"name": f"world__{kind}", "typed": {}}
                page.receive({"type": "request", "id": number, "op": "catalog.invoke", "args": args})
                while (message := messages.get(timeout=PATIENCE)).get("id") != number:
                    self._answer(message.get("event", {}), page)
        finally:
            page.close()

    def _answer(self, event: dict[str, Any], page: Connection) -> None:
        if event.get("name") != "approval":
            return
        self.asked.append(event["action"].removeprefix("world__"))
        (secret,) = [each["secret"] for each in event["choices"] if each["answer"] == "deny"]
        args = {"id": event["id"], "answer": "deny", "secret": secret}
        page.receive({"type": "request", "id": 100 + len(self.asked), "op": "approval.answer", "args": args})

    @cached_property
    def free(self) -> tuple[reyn.Session, str]:
        """A session in which no rule stood against anything, and its run."""
        session = self._session(None)
        calls = [invoke(f"world__{kind}") for kind in EffectKind]
        trace = session.ask("go", model=ScriptedModel(calls, "done"), approve="all")
        self.world.ran.clear()
        return session, trace.run

    def replay(self) -> list[str]:
        again = self.session.replay(self.free[1])
        return [str(call.resolved.name).partition("__")[2] for call in again.calls if call.ok]

    def client(self) -> None:
        """Call as an MCP client does, whose questions are asked where those of background runs are."""

        async def call_each(client: Client) -> None:
            for kind in EffectKind:
                calling = asyncio.ensure_future(call(f"world__{kind}")(client))
                await awaited(lambda calling=calling: calling.done() or all_pending())
                for pending in all_pending():
                    self.asked.append(pending.question.action.removeprefix("world__"))
                    queue_of(pending.id).answer(pending.id, "deny")
                await calling

        by_client(self.session, call_each)
        if (served := self.session.served) is not None:
            served.stop()

    def script(self) -> None:
        session, run = self.free
        current._current[:] = [self.session]
        with suppress(ActionFailedError):  # its last line takes the value of the last call
            exec(session.script(run).code, {})

    def trial(self) -> None:
        steps = [*([invoke(f"world__{kind}")] for kind in EffectKind), "Done."]
        catalog = Catalog.standard() + Catalog((self.world.category(),))
        task = scenario(catalog="world", workspace={"notes.md": "hello\n"})
        rules = (
            {}
            if self.rule is None or self.rule.listed == "always"
            else {self.rule.listed: [self.rule.pattern]}
        )
        study = Study(
            None,
            suite(task, catalogs={"world": lambda: catalog}),
            models={"scripted": Scripts(*steps)},
            config={"permissions": rules},
        )
        study.run(Variant("plain", model="scripted"), repeats=1)


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    made = InteractiveShell(colors="nocolor")
    made.history_manager.enabled = False
    extension.load(made)
    yield made
    extension.unload(made)


@pytest.fixture
def bench(workspace: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Bench:
    monkeypatch.setattr(current, "_current", [])
    return Bench(workspace, request.param)


ENTRANCES: dict[str, Callable[[Bench, InteractiveShell], Any]] = {
    "model": lambda bench, shell: bench.model(),
    "model, approve read": lambda bench, shell: bench.model(approve="read"),
    "model, approve all": lambda bench, shell: bench.model(approve="all"),
    "%reyn invoke": lambda bench, shell: bench.magic(shell),
    "form": lambda bench, shell: bench.form(),
    "replay": lambda bench, shell: bench.replay(),
    "script": lambda bench, shell: bench.script(),
    "context.ask": lambda bench, shell: bench.model("later_"),
    "trial": lambda bench, shell: bench.trial(),
    "MCP client": lambda bench, shell: bench.client(),
}


@pytest.mark.parametrize("bench", RULES, indirect=True, ids=str)
def test_what_happens_is_what_the_table_says(bench: Bench, shell: InteractiveShell) -> None:
    wrong = {}
    for entrance, enter in ENTRANCES.items():
        happened = bench.outcomes(lambda enter=enter: enter(bench, shell))
        for kind, outcome in happened.items():
            must = expected(bench.rule, kind, entrance)
            if outcome != must:
                wrong[entrance, kind.value] = f"{outcome}, must be {must}"
    assert not wrong


def test_the_matrix_has_every_kind_every_list_and_every_entrance() -> None:
    assert set(TARGETS) == set(PATTERNS) == set(EffectKind)
    assert len(RULES) * len(ENTRANCES) * len(EffectKind) == 4950
