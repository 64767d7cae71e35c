"""Manifests of utilities: what `tool.yaml` says of one, read safely and checked whole.

Invariant: a `Manifest` that was read fits the schema of manifests, its schemas can be checked with, and its entry point
lies in its folder or is a program that it declares. What does not fit is reported with its file and its path in it, all
of it at once. Reading costs a bounded amount of time and memory, whatever the file holds.
Source: the architecture of utilities and skills, 3.1, "Contract of a utility".
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from reyn_jupyter.config import ConfigError
from reyn_jupyter.config.yaml_document import parse, read_bytes
from reyn_jupyter.guard.trust import MANIFEST
from reyn_jupyter.support.encoding import clip_line, one_line
from reyn_jupyter.support.network.hosts import HostError, read_host_pattern
from reyn_jupyter.support.text import MeantClauses, count
from reyn_jupyter.workflows.utilities.contract import Contract, Schema, schema_fault
from reyn_jupyter.workflows.workflow_error import WorkflowError

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

FILE = MANIFEST
SCHEMA_FILE = Path(__file__).parent.parent / "schemas" / "tool-manifest.schema.json"
MOST_PROBLEMS = 50  # of one manifest that are listed
_CAPABILITY = re.compile(r"[a-z0-9-]{1,126}\.[a-z0-9-]{1,126}")
EntrypointType = Literal["shell", "python", "node"]
Idempotency = Literal["safe", "unsafe", "unknown"]
Stability = Literal["experimental", "stable"]
Origin = Literal["workspace", "configured", "package"]


@dataclass(frozen=True)
class Entrypoint:
    """How a utility is started: a file of its folder, or a program, and arguments before none of a run's own."""

    type: EntrypointType
    command: str
    args: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dependency:
    """Something that a utility needs from outside of its folder.

    Attributes:
        kind: "service" (told to people, grants nothing), "host" (may be reached over the network), "command" (a program
            that has to be installed), "package" (a Python distribution that has to be installed), "secret" (given to
            the program as the environment variable of its name).
        name: of it; a host, with its port behind a colon where it is no usual one.
    """

    kind: Literal["service", "host", "command", "package", "secret"]
    name: str


@dataclass(frozen=True)
class Manifest:
    """What a utility declares of itself."""

    name: str
    version: str
    description: str
    capabilities: tuple[str, ...]
    entrypoint: Entrypoint
    input_schema: Schema
    output_schema: Schema
    dependencies: tuple[Dependency, ...] = ()
    idempotency: Idempotency = "unknown"
    stability: Stability = "experimental"
    priority: int = 0

    @cached_property
    def id(self) -> str:
        """Name and version, ``name@version``."""
        return f"{self.name}@{self.version}"

    @cached_property
    def contract(self) -> Contract:
        """Its schemas."""
        return Contract(self.input_schema, self.output_schema)

    def as_json(self) -> dict[str, Any]:
        """Return it as its file has it, with what was left out."""
        return {
            "name": self.name,
            "version": self.version,
            "description": self.description,
            "capabilities": list(self.capabilities),
            "entrypoint": {
                "type": self.entrypoint.type,
                "command": self.entrypoint.command,
                "args": list(self.entrypoint.args),
            },
            "input_schema": dict(self.input_schema),
            "output_schema": dict(self.output_schema),
            "dependencies": [
                each.name if each.kind == "service" else {each.kind: each.name} for each in self.dependencies
            ],
            "idempotency": self.idempotency,
            "stability": self.stability,
            "priority": self.priority,
        }

    def needs(self, kind: str) -> tuple[str, ...]:
        """Return the names of its dependencies of one kind."""
        return tuple(each.name for each in self.dependencies if each.kind == kind)


@dataclass(frozen=True)
class Utility:
    """A utility that was found.

    Attributes:
        manifest: what it declares.
        folder: where it lies.
        origin: who put it there: the workspace's ``tools/``, a folder that the configuration names, this package.
        digest: SHA-256 over the manifest and every file of the folder; another one is another utility to consent to.
        trusted: whether it may run: a workspace's utilities are somebody's code until the person trusts them.
        trust_name: under which a person trusts it, ``tools/<folder>``; "" where none needs to.
        files: its files by path, each as the hash of its content, ``+x`` behind that of a program, or a link's target.
    """

    manifest: Manifest
    folder: Path
    origin: Origin
    digest: str
    trusted: bool
    trust_name: str = ""
    files: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def id(self) -> str:
        """Name and version, ``name@version``."""
        return self.manifest.id


def read_manifest(path: Path) -> Manifest:
    """Read the manifest of a utility's folder, and check it whole.

    Args:
        path: of ``tool.yaml``.

    Raises:
        WorkflowError: ``manifest_invalid``; ``details["problems"]`` lists every problem with its ``file``, the ``path``
            in it (JSON Pointer) and a ``message``.

    Example:
        >>> read_manifest(Path("tools/csv-to-parquet/tool.yaml")).id  # doctest: +SKIP
        'csv-to-parquet@1.0.0'
    """
    file = f"{path.parent.name}/{path.name}"
    try:
        content = read_bytes(path, file)
    except ConfigError as error:
        raise _invalid(file, [("", error.message)]) from None
    if content is None:
        raise _invalid(file, [("", "is not there")])
    return manifest_of(content, path.parent, file)


def manifest_of(content: bytes, folder: Path, file: str) -> Manifest:
    """Return the manifest that the bytes of a ``tool.yaml`` hold, its entry point looked for in the folder.

    Args:
        content: of the file.
        folder: where it lies.
        file: what it is called in problems.

    Raises:
        WorkflowError: ``manifest_invalid``, as `read_manifest` has it.
    """
    try:
        data = parse(content, file).values
    except ConfigError as error:
        line = f"line {error.line}: " if error.line else ""
        place = "".join(f"/{part}" for part in error.key.split(".")) if error.key else ""
        raise _invalid(file, [(place, f"{line}{error.message}")]) from None
    manifest = parse_manifest(data, file)
    if fault := _file_fault(manifest, folder):
        raise _invalid(file, [("/entrypoint/command", fault)])
    return manifest


def parse_manifest(data: object, file: str = FILE) -> Manifest:
    """Return the manifest that plain data holds, without a look at any file.

    Args:
        data: as JSON has it.
        file: what the data came from, for problems.

    Raises:
        WorkflowError: ``manifest_invalid``, as `read_manifest` has it.

    Example:
        >>> parse_manifest(
        ...     {
        ...         "name": "csv-to-parquet",
        ...         "version": "1.0.0",
        ...         "description": "Writes a CSV file as Parquet.",
        ...         "capabilities": ["table.to-parquet"],
        ...         "entrypoint": {"type": "python", "command": "run.py"},
        ...         "input_schema": {"type": "object"},
        ...         "output_schema": {"type": "object"},
        ...     }
        ... ).stability
        'experimental'
    """
    problems = list(islice(_schema_problems(data), MOST_PROBLEMS + 1))
    if isinstance(data, Mapping):
        problems += _deeper_problems(data, {path for path, _ in problems})
    if problems:
        raise _invalid(file, problems)
    assert isinstance(data, Mapping)
    entry = data["entrypoint"]
    return Manifest(
        name=data["name"],
        version=data["version"],
        description=data["description"],
        capabilities=tuple(data["capabilities"]),
        entrypoint=Entrypoint(entry["type"], entry["command"], tuple(entry.get("args", ()))),
        input_schema=data["input_schema"],
        output_schema=data["output_schema"],
        dependencies=tuple(map(_dependency, data.get("dependencies", ()))),
        idempotency=data.get("idempotency", "unknown"),
        stability=data.get("stability", "experimental"),
        priority=int(data.get("priority", 0)),
    )


def is_capability(text: object) -> bool:
    """Return whether a value names a capability, ``domain.action``.

    >>> is_capability("youtube.download"), is_capability("Download"), is_capability(None)
    (True, False, False)
    """
    return isinstance(text, str) and len(text) <= 128 and _CAPABILITY.fullmatch(text) is not None


def semver_key(version: str) -> tuple[int, int, int, bool, tuple[tuple[bool, int, str], ...]]:
    """Return what a version is sorted by: the precedence of Semantic Versioning 2.0.0 (section 11).

    Args:
        version: a valid one; what is behind its ``+`` does not count.

    Example:
        >>> sorted(["0.10.0", "1.0.0", "0.9.0", "1.0.0-rc.2", "1.0.0-rc.11", "1.0.0-rc"], key=semver_key)
        ['0.9.0', '0.10.0', '1.0.0-rc', '1.0.0-rc.2', '1.0.0-rc.11', '1.0.0']
    """
    core, _, before = version.partition("+")[0].partition("-")
    major, minor, patch = map(int, core.split("."))
    # Numbers come before words; a version without anything before it comes last.
    parts = tuple(
        (not each.isdigit(), int(each) if each.isdigit() else 0, each) for each in before.split(".")
    )
    return major, minor, patch, not before, parts if before else ()


def _schema_problems(data: object) -> Iterator[tuple[str, str]]:
    """Yield where data does not fit the schema of manifests: the path and a message."""
    for error in _validator().iter_errors(data):
        path = "".join(f"/{_escaped(step)}" for step in error.instance_path)
        yield from ((path, message) for message in _messages(error))


@cache
def _validator() -> Draft202012Validator:
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(manifest_schema())


@cache
def manifest_schema() -> dict[str, Any]:
    """Return the schema of manifests that the package ships, ``schemas/tool-manifest.schema.json``."""
    schema: dict[str, Any] = json.loads(SCHEMA_FILE.read_text("utf-8"))
    return schema


def _messages(error: ValidationError) -> Iterator[str]:
    """Yield what is wrong at a place, in words for people."""
    kind = error.kind.as_dict()
    match error.kind.name:
        case "additionalProperties":
            known = ["host", "command", "package"]
            if "dependencies" not in error.schema_path:
                part: Any = manifest_schema()
                for step in error.schema_path[:-1]:
                    part = part[step]
                known = list(part["properties"])
            meant = MeantClauses()
            for name in kind["unexpected"]:
                yield f"{_quoted(name)} is not known here{meant(name, known)}"
        case "required":
            yield f"{_quoted(kind['property'])} is missing"
        case "pattern":
            yield f"{_quoted(error.instance)} is not {_FORMS.get(str(error.schema_path[-2]), 'of the right form')}"
        case _:
            yield clip_line(error.message, 300)


_FORMS = {
    "name": "a name of small letters, digits and -",
    "version": "a version such as 1.2.0 (Semantic Versioning)",
    "items": "a capability, domain.action in small letters, digits and -",
    "command": "the name of a program",
    "package": "the name of a Python package",
}


def _deeper_problems(data: Mapping[str, Any], known: set[str]) -> Iterator[tuple[str, str]]:
    """Yield what a schema cannot say, of the parts that are of the right form."""
    for name in ("input_schema", "output_schema"):
        if isinstance(data.get(name), Mapping) and (fault := schema_fault(data[name])):
            yield f"/{name}", fault
    entry = data.get("entrypoint")
    if isinstance(entry, Mapping) and not any(path.startswith("/entrypoint") for path in known):
        if fault := _command_fault(entry["command"]):
            yield "/entrypoint/command", fault
        for index, argument in enumerate(entry.get("args", ())):
            if "\0" in argument:
                yield f"/entrypoint/args/{index}", "holds a NUL, which no argument can"
    dependencies = data.get("dependencies")
    for index, each in enumerate(dependencies if isinstance(dependencies, list) else ()):
        host = each.get("host") if isinstance(each, Mapping) else None
        if isinstance(host, str) and (fault := _host_fault(host)):
            yield f"/dependencies/{index}/host", fault


def _command_fault(command: str) -> str | None:
    """Return why the command of an entry point cannot be a file of the folder or a program; None where it can."""
    if any(ord(each) < 32 or each == "\x7f" for each in command):
        return "holds a control character"
    if "\\" in command or command.startswith(("/", "~")) or re.match(r"[A-Za-z]:", command):
        return f"{_quoted(command)} is no path within the folder, parts of which are divided by /"
    if not all(part not in ("", ".", "..") for part in command.split("/")):
        return f"{_quoted(command)} is no plain path within the folder: it has no '..', '.' or empty parts"
    if command.startswith("-"):
        return "begins with -, so programs would take it for an option"
    return None


def _host_fault(host: str) -> str | None:
    if re.search(r"[/@?#\\\s]", host):
        return f"{_quoted(host)} is more than a host and a port, such as example.org or example.org:8080"
    try:
        read_host_pattern(host)
    except HostError as error:
        return clip_line(str(error), 300)
    return None


def _file_fault(manifest: Manifest, folder: Path) -> str | None:
    """Return why a folder does not hold the program of an entry point; None where it does, or it is declared."""
    entry = manifest.entrypoint
    place = folder
    for part in PurePosixPath(entry.command).parts:
        place = place / part
        try:
            mode = place.lstat().st_mode
        except OSError:
            mode = 0
        if stat.S_ISLNK(mode):
            return f"{_quoted(entry.command)} is a link, or leads through one"
        if not mode:
            break
    if stat.S_ISREG(mode):
        return None
    if entry.type == "shell" and "/" not in entry.command:
        if entry.command in manifest.needs("command"):
            return None
        return (
            f"{_quoted(entry.command)} is no file of the folder, and dependencies do not declare it "
            f"as a program: {{command: …}}"
        )
    return f"{_quoted(entry.command)} is no file of the folder"


def _dependency(item: str | Mapping[str, str]) -> Dependency:
    if isinstance(item, str):
        return Dependency("service", item)
    ((kind, name),) = item.items()
    return Dependency(kind, str(read_host_pattern(name)) if kind == "host" else name)  # type: ignore[arg-type]  # by the schema


def _escaped(step: str | int) -> str:
    return one_line(clip_line(str(step)).replace("~", "~0").replace("/", "~1"))


def _quoted(value: object) -> str:
    return f"'{clip_line(value, 100)}'" if isinstance(value, str) else clip_line(repr(value), 100)


def _invalid(file: str, problems: list[tuple[str, str]]) -> WorkflowError:
    """Return the error of a manifest that has problems, each a path and a message."""
    listed = [{"file": file, "path": path, "message": message} for path, message in problems[:MOST_PROBLEMS]]
    path, message = problems[0]
    more = f" (and {count(len(problems) - 1, 'more problem')})" if len(problems) > 1 else ""
    return WorkflowError(
        f"{file}{': ' + path if path else ''}: {message}{more}.",
        "Mend the manifest; '%reyn utilities --validate' lists every problem.",
        "manifest_invalid",
        {"problems": listed},
    )
