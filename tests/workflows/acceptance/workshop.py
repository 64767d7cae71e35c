"""A workspace with utilities, as a person, a model and a notebook reach it; and every name that the texts leave open.

The tests of this folder were written from the specification of utilities and workflows and from the architecture that
it comes from. What these do not name stands under "Names that the texts leave open", here and nowhere else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

import reyn_jupyter as reyn
from reyn_jupyter.config import user_path
from reyn_jupyter.models.base import ToolCall
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.sessions.result_objects import Result
from tests.security.security_support import invoke
from tests.support.trusting import trust

Json = dict[str, Any]

# Names that the texts leave open

DONE, FAILED, SKIPPED, PENDING = "done", "failed", "skipped", "not_run"  # the status of a step
LATE = "timed_out"
STEP_FIELDS = ("step_id", "capability", "tool", "status", "attempts", "outputs", "error")
INTERRUPTED = "interrupted"
WORKFLOW_INPUT_SCHEMA = "inputs"  # of a file in skills/
SAVE = "%reyn workflow save last --name {name}"  # keeps the last run as a workflow


def model_plan(*steps: Mapping[str, Any]) -> str:
    """What a language model answers that is asked for a plan."""
    return json.dumps({"steps": list(steps)}, ensure_ascii=False)


def model_step(capability: str, confidence: Any = 0.9, **more: Any) -> Json:
    """A step as a language model writes it; left out where `confidence` is None."""
    sure = {} if confidence is None else {"coverage_confidence": confidence}
    return {"capability": capability, "inputs": {}, "coverage_rationale": "It was asked for.", **sure, **more}


def rule(name: str, pattern: str, capability: str, **inputs: Any) -> Json:
    """A rule of the router as data; an input is a constant, or ``{"group": …}`` of the pattern."""
    return {"name": name, "pattern": pattern, "capability": capability, "inputs": inputs}


def rules_file(*rules: Mapping[str, Any]) -> str:
    return yaml.safe_dump({"rules": list(rules)}, sort_keys=False, allow_unicode=True)


def workflow_file(
    name: str, *steps: Mapping[str, Any], outputs: Mapping[str, str], takes: Mapping[str, Any]
) -> Json:
    """A workflow as it lies in skills/."""
    return {
        "name": name,
        "description": "A workflow of the tests.",
        WORKFLOW_INPUT_SCHEMA: closed(**takes),
        "steps": list(steps),
        "outputs": dict(outputs),
    }


def steps_of(run: Mapping[str, Any]) -> dict[str, Json]:
    """Return the steps of a run or a run file, by their id."""
    return {each["step_id"]: each for each in run["steps"]}


def statuses(run: Mapping[str, Any]) -> dict[str, str]:
    return {name: each["status"] for name, each in steps_of(run).items()}


def error_code(run: Mapping[str, Any], step_id: str) -> str | None:
    """Return the code of the error of a step."""
    error = steps_of(run)[step_id].get("error")
    return None if error is None else error["code"]


def is_done_text(text: str) -> bool:
    """Return whether the final text of a run says that it is done."""
    return (
        "not " not in text.lower().splitlines()[0] and re.search(r"\b(done|complete)", text, re.I) is not None
    )


def known(result: Result) -> Result:
    """Return the result of a call; a name that nobody knows fails the test, so that no refusal passes for another."""
    assert "Unknown action" not in (result.error or ""), result.error
    return result


def problems_of(result: Result) -> str:
    """Return all that an error says, as one text."""
    assert result.error is not None, result.value
    return json.dumps(result.payload, ensure_ascii=False, default=str)


# Schemas


def closed(*, required: Iterable[str] | None = None, **properties: Any) -> Json:
    """A schema of an object that has these properties and no other; all are required where nothing is said."""
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(properties) if required is None else sorted(required),
        "additionalProperties": False,
    }


def opened(*, required: Iterable[str] | None = None, **properties: Any) -> Json:
    """A schema of an object that may have more than these properties."""
    schema = closed(required=required, **properties)
    del schema["additionalProperties"]
    return schema


ANYTHING: Json = {"type": "object"}
TEXT: Json = {"type": "string"}
NOTHING = closed()

# Programs of utilities

READ = "import json, sys\ninputs = json.load(sys.stdin)\n"


def gives(expression: str, before: str = "") -> str:
    """A program that prints the value of an expression, in which `inputs` are its inputs."""
    return f"{READ}{before}\nprint(json.dumps({expression}))\n"


ECHO = gives('{"echo": inputs}')
SHOUT = gives('{"text": inputs["text"].upper()}')
FAILS = f"{READ}print('the pipe is broken', file=sys.stderr)\nsys.exit(3)\n"
# Leaves a file for each of its runs in the folder `log`, so that they can be counted from outside.
_LOGS = "import os, uuid\nfrom pathlib import Path\n(Path(inputs['log']) / uuid.uuid4().hex).touch()\n"
LOGS = gives('{"text": "logged"}', _LOGS)
LOGS_AND_FAILS = f"{READ}{_LOGS}sys.exit(3)\n"
FAILS_ONCE = gives('{"text": "at last"}', _LOGS + "if len(os.listdir(inputs['log'])) < 2:\n    sys.exit(3)\n")
LOG: Json = {"type": "string", "format": "writable-folder"}
# Says that it began by a file in its own folder, and then takes its time beside a child process that does the same.
SLEEPS = f"""{READ}
import subprocess, time
from pathlib import Path
code = "import time; time.sleep(600)"
subprocess.Popen([sys.executable, "-c", code, inputs.get("mark", "unmarked")])
Path("began").touch()
time.sleep(600)
print(json.dumps({{"text": "late"}}))
"""


def sample_of(schema: Mapping[str, Any], name: str = "") -> Any:
    """Return a value that fits a simple schema."""
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        wanted = schema.get("required", schema.get("properties", {}))
        return {each: sample_of(schema.get("properties", {}).get(each, TEXT), each) for each in wanted}
    if kind == "array":
        return [sample_of(schema.get("items", TEXT), name)]
    return {"string": f"a {name or 'text'}", "boolean": True, "null": None}.get(kind, 1)


def stand_in_program(schema: Mapping[str, Any]) -> str:
    """A program that gives a sample of a schema; the files that it names as its artifacts are there."""
    files = [
        name
        for name, each in schema.get("properties", {}).items()
        if isinstance(each, dict) and each.get("format") == "artifact-path"
    ]
    return (
        f"{READ}from pathlib import Path\noutput = {sample_of(schema)!r}\nfor name in {files!r}:\n"
        "    path = Path(f'{name}.bin').absolute()\n    path.write_bytes(b'stand-in')\n"
        "    output[name] = str(path)\nprint(json.dumps(output))\n"
    )


def manifest_of(name: str, **fields: Any) -> Json:
    """A manifest that is valid, but for what `fields` change; a field that is None is left out."""
    made: Json = {
        "name": name,
        "version": "1.0.0",
        "description": "A utility of the tests.",
        "capabilities": [f"{name}.run"],
        "entrypoint": {"type": "python", "command": "main.py"},
        "input_schema": ANYTHING,
        "output_schema": ANYTHING,
    } | fields
    return {key: value for key, value in made.items() if value is not None}


# Plans


def step(
    step_id: str, capability: str | None = None, inputs: Mapping[str, Any] | None = None, **more: Any
) -> Json:
    made: Json = {"step_id": step_id, "inputs": dict(inputs or {}), **more}
    return made if capability is None else {**made, "capability": capability}


def plan_of(*steps: Mapping[str, Any], **more: Any) -> Json:
    return {"plan_id": "plan-of-a-test", "steps": list(steps), **more}


def needs(
    input_schema: Mapping[str, Any] = NOTHING, output_schema: Mapping[str, Any] = ANYTHING
) -> dict[str, Json]:
    """The field of a step that says what it sends and needs."""
    return {"capability_contract": {"input_schema": dict(input_schema), "output_schema": dict(output_schema)}}


@dataclass
class Workshop:
    """A session on a workspace whose utilities a test writes.

    Args:
        root: the workspace.
        config: settings of the session.
        answer: the person's answer to every question.
        model: the language model; the offline one, which is none for a plan, where left out.
        secrets: of the session.
    """

    root: Path
    config: Mapping[str, Any] = field(default_factory=dict)
    answer: Answer = "once"
    model: ScriptedModel | None = None
    secrets: Mapping[str, str] | None = None
    questions: list[Question] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        self.session = reyn.Session(
            self.root, store="memory", namespace={}, config=dict(self.config), model=self.model, secrets=self.secrets
        )  # fmt: skip
        self.session.parts.ask_person = self._asked

    def _asked(self, question: Question) -> Answer:
        self.questions.append(question)
        return self.answer

    def close(self) -> None:
        self.session.close()

    # The workspace

    def write(self, name: str, program: str = ECHO, *, folder: str | None = None, **fields: Any) -> Path:
        """Write a utility, and trust nothing."""
        place = self.root / "tools" / (folder or name)
        place.mkdir(parents=True, exist_ok=True)
        manifest = manifest_of(name, **fields)
        (place / "tool.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True))
        (place / manifest["entrypoint"]["command"]).write_text(program)
        return place

    def add(self, name: str, program: str = ECHO, **fields: Any) -> Path:
        """Write a utility, and trust it."""
        place = self.write(name, program, **fields)
        trust(self.session)
        return place

    def text(self, path: str, text: str | Mapping[str, Any]) -> Path:
        """Write a file of the workspace; a mapping as YAML."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text if isinstance(text, str) else yaml.safe_dump(dict(text), sort_keys=False))
        return place

    def policy(self, **rules: Any) -> Path:
        return self.text("policy.yaml", rules)

    def own_policy(self, **rules: Any) -> None:
        """Write the person's own policy."""
        place = user_path().parent / "policy.yaml"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(yaml.safe_dump(rules))

    def log(self, name: str = "log") -> int:
        """Return how often a program that logs its runs has run."""
        folder = self.root / name
        return len(list(folder.iterdir())) if folder.is_dir() else 0

    def run_files(self) -> list[Path]:
        return sorted((self.root / "state" / "runs").glob("*.json"))

    def run_file(self) -> Json:
        """Return what the only run file holds."""
        (found,) = self.run_files()
        read: Json = json.loads(found.read_text())
        return read

    # The person

    def call(self, name: str, /, **args: Any) -> Result:
        """Call a utility that there is."""
        return known(self.attempt(f"utility__{name}", **args))

    def skill(self, name: str, /, **args: Any) -> Result:
        """Call a skill that there is."""
        return known(self.attempt(f"skill__{name}", **args))

    def attempt(self, action: str, /, **args: Any) -> Result:
        """Call an action that perhaps may not be there: whatever is not trusted."""
        return self.session.invoke_action(action, args)

    def route(self, text: str, /, **more: Any) -> Json:
        """Return the plan for a request."""
        value: Json = self.skill("request-router", text=text, **more).value
        return value

    def cover(self, *steps: Mapping[str, Any]) -> Json:
        """Return what the gap detector says of steps."""
        value: Json = self.skill("gap-detector", plan=plan_of(*steps)).value
        return value

    def gap(self, capability: str, **more: Any) -> Json:
        """Return the only gap of a plan of one step."""
        (found,) = self.cover(step("a", capability, **more))["gaps"]
        assert isinstance(found, dict)
        return found

    def judge(self, *steps: Mapping[str, Any]) -> Json:
        """Return what the policy engine says of steps."""
        value: Json = self.skill("policy-engine", plan=plan_of(*steps)).value
        return value

    def execute(self, *steps: Mapping[str, Any], **more: Any) -> Json:
        """Run a plan."""
        value: Json = self.skill("workflow-executor", plan=plan_of(*steps), **more).value
        return value

    def refused(self, *steps: Mapping[str, Any], **more: Any) -> Result:
        """Run a plan, which has to be refused as an error."""
        result = self.skill("workflow-executor", plan=plan_of(*steps), **more)
        assert not result.ok, result.payload
        return result

    def scaffold(self, capability: str, **more: Any) -> Json:
        value: Json = self.skill("tool-scaffolder", capability=capability, **more).value
        return value

    def stand_in(self, capability: str, contract: Mapping[str, Any] | None = None) -> str:
        """Write a utility that every step of a capability prefers, and trust it; return its name."""
        guaranteed = dict((contract or {}).get("output_schema") or ANYTHING)
        name = f"{capability.replace('.', '-')}-stand-in"
        self.add(name, stand_in_program(guaranteed), capabilities=[capability], output_schema=guaranteed, priority=100,
                 stability="stable", idempotency="safe")  # fmt: skip
        return name

    # The model

    def turn(self, *calls: Any, **options: Any) -> tuple[Trace, str]:
        """Let a model make calls, then say that it is done; return the trace, and what the model read."""
        self.questions.clear()
        model = ScriptedModel(*calls, "done")
        trace = self.session.ask("go", **{"model": model, "new": True, "surface": "universal", **options})
        assert trace.answer == "done", trace.error
        messages = model.requests[-1].messages
        return trace, "\n".join(each.content for each in messages if each.role == "tool")


def code_of(trace: Trace) -> str | None:
    """Return the code of the error of a turn's last call; "ok" where it did not fail."""
    last = trace.calls[-1]
    return "ok" if last.ok else last.finished.code if last.finished else None


def utility_call(name: str, /, **args: Any) -> ToolCall:
    """The model's call of a utility."""
    return invoke(f"utility__{name}", **args)


def skill_call(name: str, /, **args: Any) -> ToolCall:
    """The model's call of a skill."""
    return invoke(f"skill__{name}", **args)


@dataclass
class Notebook:
    """A notebook on a workshop's workspace."""

    workshop: Workshop
    run: Callable[[str], str]

    def say(self, cell: str) -> str:
        """Run a cell, and return what it printed; a verb that nobody knows fails the test."""
        said = self.run(cell)
        assert "There is no verb" not in said, said
        return said
