"""Workflows kept as files, `skills/<name>.yaml` of a workspace: read safely, written so that they can be read back.

Invariant: a `Workflow` that was read can become a plan: its schema is one, and its references lead to its inputs and
its steps. What keeps a file from being one is listed with its place, and hides no other file. The very bytes that were
read are those that are judged for trust.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reyn_jupyter.catalog.schema_check import check_schema
from reyn_jupyter.config import ConfigError
from reyn_jupyter.config.yaml_document import parse, read_bytes
from reyn_jupyter.guard.trust import WORKFLOW_SUFFIX, WORKFLOWS
from reyn_jupyter.support.files.plain_files import PlainFolder
from reyn_jupyter.support.text import MeantClauses
from reyn_jupyter.support.validation_messages import fields_at, reason
from reyn_jupyter.workflows.execution.workflow_run import WorkflowRun
from reyn_jupyter.workflows.planning.plan import WorkflowPlan, WorkflowStep, read_plan
from reyn_jupyter.workflows.planning.references import near_references, references_of, resolve_inputs
from reyn_jupyter.workflows.workflow_error import WorkflowError

FOLDER, SUFFIX = WORKFLOWS, WORKFLOW_SUFFIX
NAME = r"^[a-z0-9]+(?:-[a-z0-9]+)*$"
MOST_FILES = 1_000  # of a folder that are read
RESERVED = ("request-router", "gap-detector", "policy-engine", "workflow-executor", "tool-scaffolder")
_STEP_DEFAULTS: Mapping[str, Any] = WorkflowStep("").as_json()


@dataclass(frozen=True)
class Workflow:
    """Steps under a name, with inputs that are given anew each time.

    Attributes:
        name: lower-case words with hyphens; the action that runs it is ``skill__<name>``.
        description: what it does, for whoever chooses it.
        inputs: JSON Schema of an object: what ``request.inputs.<key>`` leads to.
        steps: as in a plan.
        outputs: what it gives, by name: references to outputs and inputs, or values. Empty gives the outputs of every
            step, by its id.
    """

    name: str
    description: str
    inputs: Mapping[str, Any]
    steps: tuple[WorkflowStep, ...]
    outputs: Mapping[str, Any] = field(default_factory=dict)

    def plan(self, inputs: Mapping[str, Any]) -> WorkflowPlan:
        """Return the plan of one run of it.

        Args:
            inputs: by name; where one is not given, its default counts.

        Raises:
            WorkflowError: "validation": an input is missing, or not one of its own.
        """
        properties = _properties(self.inputs)
        unknown = [name for name in inputs if name not in properties]
        missing = [name for name in self.inputs.get("required", ()) if name not in inputs]
        meant = MeantClauses()
        if unknown or missing:
            said = [f"{name!r} is missing" for name in missing]
            said += [f"it has no input {name!r}{meant(name, properties)}" for name in unknown]
            problems = [
                {"path": f"/{name}", "message": text}
                for name, text in zip(missing + unknown, said, strict=True)
            ]
            raise WorkflowError(
                f"The workflow {self.name} cannot run: {'; '.join(said)}.",
                "Give the inputs that it names.",
                "validation",
                {"problems": problems},
            )
        given = {**_with_defaults(properties), **inputs}
        return WorkflowPlan(self.name, self.description, request_inputs=given, steps=self.steps)

    def result(self, run: WorkflowRun, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return what it gives after a run. Raises WorkflowError where a step that it needs was skipped."""
        if not self.outputs:
            return dict(run.outputs)
        return resolve_inputs(
            self.outputs, {**_with_defaults(_properties(self.inputs)), **inputs}, run.outputs
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as its file has it; what is left out has its default."""
        steps = [
            {name: value for name, value in step.as_json().items() if value != _STEP_DEFAULTS[name]}
            for step in self.steps
        ]
        made = {
            "name": self.name,
            "description": self.description,
            "inputs": dict(self.inputs),
            "steps": steps,
        }
        return {**made, "outputs": dict(self.outputs)} if self.outputs else made


@dataclass(frozen=True)
class WorkflowFile:
    """A file of a workflow.

    Attributes:
        file: from the root of the workspace, ``skills/<name>.yaml``; trust knows it by this name.
        content: its bytes; trust is asked about these.
        workflow: None where it is none.
        problem: why it is none.
        trusted: whether it may run: a file of a workspace is somebody's until the person trusts it.
    """

    file: str
    content: bytes
    workflow: Workflow | None
    problem: WorkflowError | None
    trusted: bool

    @property
    def digest(self) -> str:
        """SHA-256 of its content."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def name(self) -> str:
        """The name of the workflow that it holds or should hold."""
        return Path(self.file).stem


def parse_workflow(content: bytes, file: str) -> Workflow:
    """Return the workflow that a file holds.

    Args:
        content: of the file, YAML.
        file: its name, ``skills/<name>.yaml``; the workflow has the same.

    Raises:
        WorkflowError: "plan_invalid"; ``details["problems"]`` holds every problem with its file and its path.

    Example:
        >>> text = b"description: Reads a file.\\nsteps: [{step_id: read, action: file__read, inputs: {path: a.csv}}]"
        >>> parse_workflow(text, "skills/read-it.yaml").name
        'read-it'
    """
    try:
        data = parse(content, file).values
    except ConfigError as error:
        line = "" if error.line is None else f"line {error.line}: "
        raise _invalid(file, [("", line + error.message)]) from None
    return _workflow(data, file)


def read_workflows(
    workspace: Path, is_trusted: Callable[[bytes, str], bool] = lambda content, name: False
) -> tuple[WorkflowFile, ...]:
    """Return the files of workflows of a workspace, those too that hold none, by name.

    Args:
        is_trusted: whether the person trusts a content under a name.
    """
    return tuple(_read(workspace, name, is_trusted) for name in _names(workspace))


def write_workflow(workspace: Path, workflow: Workflow, *, replace: bool = False) -> WorkflowFile:
    """Write a workflow into `skills/`, and return its file, not yet trusted.

    Args:
        replace: whether one of the same name may be replaced.

    Raises:
        WorkflowError: it would not be read back as what it is, there is one of its name, or it cannot be written.
    """
    import yaml

    file = f"{FOLDER}/{workflow.name}{SUFFIX}"
    workflow = _workflow(workflow.as_json(), file)
    try:
        text = yaml.safe_dump(workflow.as_json(), sort_keys=False, allow_unicode=True, width=100)
        content = text.encode()
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise _invalid(file, [("", f"it holds what YAML does not have: {error}")]) from None
    if parse_workflow(content, file) != workflow:
        raise _invalid(file, [("", "it holds values that do not come back from YAML as they are")])
    folder = PlainFolder(workspace, FOLDER)
    try:
        if folder.holds(f"{workflow.name}{SUFFIX}") and not replace:
            raise WorkflowError(
                f"There is a file {file} already.", "Choose another name, or replace it.", "validation"
            )
        folder.replace(f"{workflow.name}{SUFFIX}", content)
    except OSError as error:
        raise WorkflowError(
            f"{file} cannot be written: {error.strerror or error}.", "Mend the folder.", "validation"
        ) from None
    return WorkflowFile(file, content, workflow, None, trusted=False)


class _WorkflowData(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field(default="", max_length=100)
    description: str = Field(min_length=10, max_length=2_000)
    inputs: dict[str, Any] = Field(default_factory=dict)
    steps: list[Any] = Field(min_length=1)
    outputs: dict[str, Any] = Field(default_factory=dict)


def _workflow(data: Mapping[str, Any], file: str) -> Workflow:
    try:
        head = _WorkflowData.model_validate(data)
    except ValidationError as error:
        raise _invalid(
            file,
            [
                (
                    "".join(f"/{part}" for part in item["loc"]),
                    reason(item, fields_at(_WorkflowData, item["loc"][:-1])),
                )
                for item in error.errors(include_url=False)
            ],
        ) from None
    name = Path(file).stem
    problems = list(_name_problems(name, head.name))
    properties = _properties(head.inputs)
    unsound = list(_schema_problems(head.inputs))
    steps: tuple[WorkflowStep, ...] = ()
    try:
        steps = read_plan({"steps": head.steps}, input_names=properties).steps
    except WorkflowError as error:
        problems += unsound
        problems += [(each["path"], each["message"]) for each in error.details.get("problems", ())]
    else:
        problems += unsound or _reference_problems(head, steps)
    if problems:
        raise _invalid(file, problems)
    inputs = {"type": "object", "properties": {}, "additionalProperties": False, **head.inputs}
    return Workflow(name, head.description, inputs, steps, head.outputs)


def _name_problems(name: str, given: str) -> Iterator[tuple[str, str]]:
    if not re.fullmatch(NAME, name):
        yield "/name", f"{name!r}: the name of the file is lower-case words with hyphens"
    elif name in RESERVED:
        yield "/name", f"{name!r} is a skill of this package; choose another name"
    if given and given != name:
        yield "/name", f"it says {given!r} and the file is called {name!r}; leave it out"


def _schema_problems(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if not schema:
        return
    if schema.get("type", "object") != "object" or not isinstance(schema.get("properties", {}), Mapping):
        yield "/inputs", "a JSON Schema of an object is needed: type: object, properties: …"
    elif (problem := check_schema(schema)) is not None:
        yield "/inputs", f"it {problem}"


def _reference_problems(head: _WorkflowData, steps: tuple[WorkflowStep, ...]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with references of the outputs, and with those to inputs that may be left out."""
    properties, ids = _properties(head.inputs), {step.step_id for step in steps}
    meant = MeantClauses()
    always = {*head.inputs.get("required", ()), *_with_defaults(properties)}
    for path, text in near_references(head.outputs):
        yield f"/outputs{path}", f"{text} is no reference"
    found = [(f"/steps/{at}/inputs", each) for at, step in enumerate(steps) for each in step.references]
    found += [("/outputs", each) for each in references_of(head.outputs)]
    for place, each in found:
        if each.step_id is not None:
            if each.step_id not in ids:
                yield (
                    place + each.path,
                    f"{each.text}: there is no step {each.step_id!r}{meant(each.step_id, ids)}",
                )
        elif each.keys and each.keys[0] not in properties:
            near = meant(each.keys[0], properties)
            yield place + each.path, f"{each.text}: there is no input {each.keys[0]!r}{near}"
        elif each.keys and each.keys[0] not in always:
            yield (
                place + each.path,
                f"{each.text}: the input may be left out; require it, or give it a default",
            )


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found = schema.get("properties", {})
    return found if isinstance(found, Mapping) else {}


def _with_defaults(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: each["default"]
        for name, each in properties.items()
        if isinstance(each, Mapping) and "default" in each
    }


def _names(workspace: Path) -> list[str]:
    """Return the names of files that should hold workflows, links and the like too: these are told of."""
    found = PlainFolder(workspace, FOLDER).entries()
    return [name for name in sorted((*found[0], *found[1])) if name.endswith(SUFFIX) and name[0] != "."][
        :MOST_FILES
    ]


def _read(workspace: Path, name: str, is_trusted: Callable[[bytes, str], bool]) -> WorkflowFile:
    file, content = f"{FOLDER}/{name}", b""
    try:
        if os.path.islink(workspace / FOLDER):  # noqa: PTH114
            raise _invalid(file, [("", f"{FOLDER} is a link, and links are not followed")])
        content = read_bytes(workspace / file, file) or b""
        workflow = parse_workflow(content, file)
    except ConfigError as error:
        return WorkflowFile(file, content, None, _invalid(file, [("", error.message)]), trusted=False)
    except WorkflowError as error:
        return WorkflowFile(file, content, None, error, trusted=False)
    return WorkflowFile(file, content, workflow, None, is_trusted(content, file))


def _invalid(file: str, problems: list[tuple[str, str]]) -> WorkflowError:
    path, message = problems[0]
    more = f" ({len(problems) - 1} more)" if len(problems) > 1 else ""
    return WorkflowError(
        f"{file} is no workflow: {f'{path}: ' if path else ''}{message}{more}.",
        "Mend the file.",
        "plan_invalid",
        {"problems": [{"file": file, "path": path, "message": message} for path, message in problems]},
    )
