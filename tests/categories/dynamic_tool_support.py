"""Dynamic tools as people and models reach them: a session, what was asked of the person, and what lies on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import reyn_jupyter as reyn
from reyn_jupyter.guard.state_folder import StateFolder
from reyn_jupyter.models.base import Request, ToolCall
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.runtime.record.run_steps import Call
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.sessions.result_objects import Result
from tests.security.security_support import invoke

OPERATION = "dynamic_tool_operation__"
REVERSE = 'def execute(params):\n    return params.get("text", "")[::-1]\n'
ECHO = "def execute(params):\n    return params\n"


def create(name: str, code: str = ECHO, /, **more: Any) -> ToolCall:
    """The model's call that makes a tool."""
    return invoke(f"{OPERATION}create", name=name, description="A tool of a test.", code=code, **more)


@dataclass(frozen=True)
class Turn:
    """A turn of a scripted model.

    Attributes:
        trace: its run.
        requests: what the model was sent.
    """

    trace: Trace
    requests: list[Request]

    @property
    def calls(self) -> tuple[Call, ...]:
        return self.trace.calls

    @property
    def codes(self) -> list[str | None]:
        """The codes of the calls' errors, in order; "ok" for a call that did not fail."""
        return ["ok" if each.ok else each.finished.code if each.finished else None for each in self.calls]

    @property
    def outputs(self) -> list[str]:
        """What the model read of each call."""
        return [each.finished.output if each.finished else "" for each in self.calls]


@dataclass
class Bench:
    """A session whose person and whose model make tools.

    Args:
        root: the workspace.
        config: settings of the session.
        answer: the person's answer to every question.
    """

    root: Path
    config: Mapping[str, Any] = field(default_factory=dict)
    answer: Answer = "once"
    questions: list[Question] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        self.session = reyn.Session(self.root, store="memory", namespace={}, config=dict(self.config))
        self.session.parts.ask_person = self._asked

    def _asked(self, question: Question) -> Answer:
        self.questions.append(question)
        return self.answer

    # The person

    def operation(self, verb: str, /, **args: Any) -> Result:
        return self.session.invoke_action(OPERATION + verb, args)

    def create(self, name: str, code: str = ECHO, /, **more: Any) -> Result:
        return self.operation("create", name=name, code=code, **{"description": "A tool of a test.", **more})

    def make(self, name: str, code: str = ECHO, /, **more: Any) -> dict[str, Any]:
        """Create a tool, which has to go well, and return the answer."""
        made: dict[str, Any] = self.create(name, code, **more).value
        return made

    def run(self, name: str, parameters: Mapping[str, Any] | None = None, /, **more: Any) -> Result:
        return self.operation("run", tool_name=name, parameters=dict(parameters or {}), **more)

    def call(self, name: str, /, **parameters: Any) -> Result:
        """Call a tool by its own name."""
        return self.session.invoke_action(f"dynamic_tool__{name}", parameters)

    def tools(self, **filters: Any) -> dict[str, dict[str, Any]]:
        """Return what is listed, by name."""
        return {each["name"]: each for each in self.operation("list", **filters).value["tools"]}

    # The model

    def turn(self, *steps: Any, **options: Any) -> Turn:
        """Let the model take these steps in a conversation of their own, then say that it is done."""
        self.questions.clear()
        model = ScriptedModel(*steps, "done")
        trace = self.session.ask("go", **{"model": model, "new": True, "surface": "universal", **options})
        assert trace.answer == "done", trace.error
        return Turn(trace, model.requests)

    # The disk

    @property
    def state(self) -> Path:
        """The folder of the person's own state of this workspace."""
        return StateFolder(self.root).path

    def definition(self, name: str) -> Path:
        """Return the file of a tool; there is exactly one."""
        (found,) = self.state.rglob(f"{name}.json")
        return found

    def saved(self) -> list[str]:
        """Return the names of the tools that lie on disk."""
        return sorted(name for name in map(_name_in, self.state.rglob("*.json")) if name is not None)

    def audit(self) -> list[dict[str, Any]]:
        """Return the lines of the audit, oldest first."""
        lines = [
            line for path in sorted(self.state.rglob("*.jsonl*")) for line in path.read_text().split("\n")
        ]
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return [each for each in found if str(each.get("action", "")).startswith(("tool.", "verification."))]


def _name_in(path: Path) -> str | None:
    try:
        value = json.loads(path.read_text())
    except ValueError:
        return None
    return (
        str(value["name"]) if isinstance(value, dict) and {"name", "code", "sha256"} <= set(value) else None
    )
