"""Run a utility once: a JSON object on its standard input, a JSON object at the end of its standard output.

Invariants: a utility runs in the sandbox in force or not at all, and only where the person trusts it. It sees its own
folder, its run folder (where it starts and may write), and the paths of the workspace that its inputs name; it reaches
the hosts that its manifest declares, and has the secrets that its manifest declares. Inputs fit the schema before it
begins, and outputs after it ended; a file that it says it made is there, below a folder that it may write in, and is no
link. Whatever it does is a `UtilityRun` or a `WorkflowError`, and none of its processes is left.
Source: the architecture of utilities and skills, 3.1 and "Protocol between orchestrator and utility".
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from reyn_jupyter.config.settings import SandboxSettings
from reyn_jupyter.guard.held_place import HeldFolder, open_folder
from reyn_jupyter.guard.sandbox import (
    Confinement,
    HostTraffic,
    Sandbox,
    SandboxError,
    SandboxLimits,
    SandboxResult,
    find_sandbox,
)
from reyn_jupyter.guard.sandbox.hidden_files import hidden_files
from reyn_jupyter.guard.sandbox.private_copies import ChangeRecord, PrivateCopies, Refusal, TakenOver
from reyn_jupyter.guard.sandbox.protected_places import protected_places
from reyn_jupyter.guard.workspace import Workspace, WorkspaceError, protects
from reyn_jupyter.support.secret import Secret
from reyn_jupyter.support.text import argument_name, count, last_lines, shorten
from reyn_jupyter.workflows.utilities.contract import Schema
from reyn_jupyter.workflows.utilities.manifest import Dependency, Utility
from reyn_jupyter.workflows.utilities.program import command_of, missing_dependencies
from reyn_jupyter.workflows.utilities.schema_values import (
    Place,
    at,
    pointer,
    replaced,
    texts_of_format,
    value_faults,
    with_defaults,
)
from reyn_jupyter.workflows.workflow_error import WorkflowError, WorkflowErrorCode

READABLE_PATH, WRITABLE_FOLDER, ARTIFACT_PATH = "readable-path", "writable-folder", "artifact-path"
LARGEST_OUTPUT = 16 << 20  # bytes of standard output
LARGEST_INPUT = 16 << 20  # bytes of the inputs as JSON
_KEPT = ("tools", "skills", "policy.yaml")  # what plans are made of
_KEPT_OF_STDERR = 64 << 10  # bytes, its end
_QUOTED = 4_000  # characters of either stream in an error
_PARSED_HERE = 1 << 18  # bytes; more are read in a thread
_MOST_BEGINNINGS = 100  # lines at which the object of the output may begin
_FILE_BYTES, _WRITTEN_BYTES = 4 << 30, 16 << 30  # videos, archives

# Hears what a utility writes on standard error, as it comes: "stderr" and the bytes.
OnStderr = Callable[[str, bytes], None]


@dataclass(frozen=True)
class UtilityRun:
    """What a utility gave.

    Attributes:
        output: fits its output schema; paths of artifacts are from the workspace's root on.
        seconds: wall time, with the start of the sandbox.
        stderr: the end of what it logged, 64 KiB at most.
        isolation, backend: what the sandbox keeps apart, in a sentence, and its name.
        artifacts: the files and folders that its output names as made, from the workspace's root on.
        traffic: what it exchanged with each host.
        refusals: what it tried to reach in vain, in sentences.
        planted: where it made something that no action may write, from the workspace's root on; that was not kept.
    """

    output: dict[str, Any]
    seconds: float
    stderr: str
    isolation: str
    backend: str
    artifacts: tuple[str, ...] = ()
    traffic: tuple[HostTraffic, ...] = ()
    refusals: tuple[str, ...] = ()
    planted: tuple[str, ...] = ()


def readable_paths(utility: Utility, inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return the files and folders that a utility reads, as its inputs name them, by their JSON Pointers; none where
    the inputs cannot be looked at."""
    values = with_defaults(utility.manifest.input_schema, inputs)
    try:
        marked = texts_of_format(utility.manifest.input_schema, values, (READABLE_PATH,))
    except (ValueError, TypeError):
        return {}
    return {pointer(place): str(at(values, place)) for place in marked}


@dataclass(frozen=True)
class UtilityInputs:
    """Inputs that fit a utility, and what they open of the workspace.

    Attributes:
        values: with defaults; paths are absolute.
        named: the same with paths from the workspace's root on.
        readable: files and folders that it reads, from the workspace's root on.
        writable: folders that it may write in, from the root on; they need not be there.
        written: the same by where they stand in the values.
    """

    values: dict[str, Any]
    named: dict[str, Any]
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    written: Mapping[Place, str] = field(default_factory=dict)


def prepare_inputs(utility: Utility, inputs: Mapping[str, Any], workspace: Workspace) -> UtilityInputs:
    """Return the inputs of a utility as its program is given them, and the places that a run of it opens.

    Args:
        utility: whose schema says what is a path.
        inputs: JSON values; paths from the workspace's root on, or absolute ones below it.
        workspace: as the call sees it.

    Raises:
        WorkflowError: "validation", with every problem and its path.

    Example:
        >>> prepare_inputs(utility, {"file": "data/a.csv"}, Workspace("/work")).readable   # doctest: +SKIP
        ('data/a.csv',)
    """
    schema = utility.manifest.input_schema
    values = with_defaults(schema, inputs)
    try:
        problems = value_faults(schema, values)
        marked = {} if problems else texts_of_format(schema, values, (READABLE_PATH, WRITABLE_FOLDER))
    except (ValueError, TypeError) as error:
        problems, marked = [{"path": "", "message": f"cannot be checked: {error}"}], {}
    places: dict[Place, str] = {}
    for place, kind in marked.items():
        try:
            places[place] = _named_place(str(at(values, place)), kind, workspace)
        except WorkspaceError as error:
            problems.append({"path": pointer(place), "message": str(error)})
    if problems:
        raise _invalid_inputs(utility, problems)
    absolute = {place: os.fspath(workspace.root / found) for place, found in places.items()}

    def of(kind: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(found for place, found in places.items() if marked[place] == kind))

    written = {place: found for place, found in places.items() if marked[place] == WRITABLE_FOLDER}
    return UtilityInputs(
        replaced(values, absolute), replaced(values, places), of(READABLE_PATH), of(WRITABLE_FOLDER), written
    )


async def run_utility(
    utility: Utility,
    inputs: Mapping[str, Any],
    *,
    run_folder: Path,
    workspace: Workspace,
    settings: SandboxSettings,
    timeout_seconds: float,
    on_stderr: OnStderr | None = None,
    secrets: Mapping[str, Secret] | None = None,
    record: ChangeRecord | None = None,
) -> UtilityRun:
    """Run a utility to its end. A cancellation ends it, and all that it started.

    Args:
        utility: a trusted one.
        inputs: JSON values; paths from the workspace's root on, or absolute ones below it.
        run_folder: where it starts and may write, below the workspace's root; made where it is not there, and removed
            where nothing was made in it.
        workspace: as the call sees it: what its rules keep back is kept from the program.
        settings: which sandbox is admitted.
        timeout_seconds: of wall time, with the start of the sandbox.
        on_stderr: hears its log as it comes, on the loop.
        secrets: by name; those that its manifest declares are given to it, and no others.
        record: keeps what files held that it changes outside of its run folder.

    Raises:
        WorkflowError: "validation" (the inputs do not fit), "tool_failed" (it cannot run, or ended with an error; see
            ``details["kind"]``), "tool_timeout", "tool_invalid_output" (it gave what its manifest does not say).

    Example:
        >>> run = await run_utility(                                   # doctest: +SKIP
        ...     utility, {"file": "a.csv"}, run_folder=Path("/work/state/runs/1/convert"),
        ...     workspace=Workspace("/work"), settings=Settings().sandbox, timeout_seconds=60)
        >>> run.output                                                 # doctest: +SKIP
        {'file': 'state/runs/1/convert/a.parquet', 'rows': 12}
    """
    began = time.monotonic()
    environment = _environment(utility, secrets or {})
    prepared = await asyncio.to_thread(prepare_inputs, utility, inputs, workspace)
    data = _encoded(utility, prepared.values)
    seconds = max(0.0, timeout_seconds)
    heard, result, copies, taken = _Heard(on_stderr), None, None, TakenOver()
    with ExitStack() as held:
        try:
            async with asyncio.timeout(seconds) as deadline:
                heard.on_overflow = lambda: _end_now(deadline)
                sandbox = await asyncio.to_thread(find_sandbox, "program", settings.backend, settings.minimum)
                confinement, copies = await asyncio.to_thread(
                    _confinement, utility, prepared, run_folder, workspace, environment, sandbox, held
                )
                if sandbox.view != "own":
                    shown = {
                        place: os.fspath(copies.seen(found)) for place, found in prepared.written.items()
                    }
                    data = _encoded(utility, replaced(prepared.values, shown))
                result = await sandbox.run(
                    command_of(utility), confinement, _limits(seconds), stdin=data, on_output=heard.hear
                )
        except TimeoutError:
            _fail_late(utility, heard, seconds)
        except SandboxError as error:
            raise WorkflowError(
                f"{utility.id} did not {'run to its end' if error.began else 'run'}: {error}.",
                error.hint,
                "tool_timeout" if error.began else "tool_failed",
                {"utility": utility.id, "kind": "not_ended" if error.began else "no_sandbox"},
            ) from error
        finally:
            if copies is not None and not sandbox.has_left_processes:  # what still runs may still write
                taken = await copies.take_over(record)
            _remove_empty(run_folder)
    assert copies is not None
    _check_end(utility, heard, result)
    folders = (run_folder, *(workspace.root / each for each in prepared.writable))
    if taken.refusals:
        _fail_unapplied(utility, heard, taken.refusals)
    output, artifacts = await _checked_output(utility, heard, folders, workspace, copies.meant)
    return UtilityRun(
        output, time.monotonic() - began, heard.log, result.isolation, result.backend, artifacts,
        result.traffic, result.refusals, taken.planted,
    )  # fmt: skip


def _end_now(deadline: asyncio.Timeout) -> None:
    if not deadline.expired():
        deadline.reschedule(asyncio.get_running_loop().time())


def _named_place(text: str, kind: str, workspace: Workspace) -> str:
    """Return the place that an input names, from the workspace's root on. Raises WorkspaceError."""
    place = workspace.place(text)
    path = workspace.root / place
    if kind == READABLE_PATH:
        if not path.exists():
            raise WorkspaceError(f"there is no file or folder {shorten(text, 200)!r} in the workspace")
        if path.is_file() and workspace.decision(place) == "deny":
            raise WorkspaceError(f"a permission rule denies reading {shorten(text, 200)!r}")
        return place
    if (why := protects(place.split("/"), for_write=True)) is not None:
        raise WorkspaceError(f"{shorten(text, 200)!r} is protected: {why}")
    if place == ".":
        raise WorkspaceError(
            "the workspace as a whole is not given to a program to write in; name a folder of it"
        )
    if place.split("/")[0].casefold() in _KEPT:  # some file systems do not tell A from a
        raise WorkspaceError(
            f"{shorten(text, 200)!r} is kept for what plans are made of; name another folder"
        )
    if path.exists() and not path.is_dir():
        raise WorkspaceError(f"{shorten(text, 200)!r} is no folder")
    return place


def _environment(utility: Utility, secrets: Mapping[str, Secret]) -> dict[str, Secret]:
    """Return the secrets that a utility is given. Raises WorkflowError where it cannot run."""
    if not utility.trusted:
        raise WorkflowError(
            f"{utility.id} is not trusted, so it does not run.", "Look at it with %reyn trust.", "tool_failed",
            {"utility": utility.id, "kind": "untrusted"},
        )  # fmt: skip
    missing = missing_dependencies(utility)
    declared = utility.manifest.needs("secret")
    missing += tuple(Dependency("secret", name) for name in declared if name not in secrets)
    if missing:
        raise WorkflowError(
            f"{utility.id} needs what is not there: {_listed(missing)}.",
            "Install or set it, then run the step again.",
            "tool_failed",
            {"utility": utility.id, "kind": "missing_dependency",
             "missing": [{"kind": each.kind, "name": each.name} for each in missing]},
        )  # fmt: skip
    return {name: secrets[name] for name in declared}


def _listed(missing: tuple[Dependency, ...]) -> str:
    words = {"command": "the program", "package": "the Python package", "secret": "the secret"}
    return ", ".join(f"{words.get(each.kind, each.kind)} {each.name}" for each in missing)


def _invalid_inputs(utility: Utility, problems: list[dict[str, str]]) -> WorkflowError:
    first = problems[0]
    name = argument_name(first["path"])
    where = f"{name}: " if name else ""
    more = f" (and {count(len(problems) - 1, 'further problem')})" if len(problems) > 1 else ""
    return WorkflowError(
        f"The inputs do not fit {utility.id}: {where}{first['message']}{more}.",
        f"%reyn describe utility__{utility.manifest.name} shows its schema.",
        "validation",
        {"utility": utility.id, "problems": problems},
    )


def _encoded(utility: Utility, values: Mapping[str, Any]) -> bytes:
    data = json.dumps(values, allow_nan=False).encode()
    if len(data) > LARGEST_INPUT:
        raise _invalid_inputs(
            utility, [{"path": "", "message": f"is larger than {LARGEST_INPUT >> 20} MiB of JSON"}]
        )
    return data


def _limits(seconds: float) -> SandboxLimits:
    # Its own deadline is the looser one: it is what has the sandbox look at the run often.
    return SandboxLimits(
        seconds=seconds + 30, cpu_seconds=max(120, int(seconds + 1) * (os.cpu_count() or 1)),
        file_bytes=_FILE_BYTES, written_bytes=_WRITTEN_BYTES, output=0,
    )  # fmt: skip


def _confinement(
    utility: Utility,
    prepared: UtilityInputs,
    run_folder: Path,
    workspace: Workspace,
    environment: Mapping[str, Secret],
    sandbox: Sandbox,
    held: ExitStack,
) -> tuple[Callable[[], Confinement], PrivateCopies]:
    """Make the folders of a run, and return what makes its view, and the copies that it writes in.

    Args:
        held: closes what the run needs open.

    Raises:
        WorkflowError, SandboxError: it cannot be given what its inputs name.
    """
    root, own = workspace.root, Path(os.path.realpath(utility.folder))
    runs = workspace.relative(run_folder)
    for place in prepared.writable:
        if (
            place == runs
            or runs.startswith(f"{place}/")
            or place.split("/")[0].casefold() == runs.split("/")[0]
        ):
            message = f"{place!r} holds the records of runs, so no program writes in it; name another folder"
            raise _invalid_inputs(utility, [{"path": "", "message": message}])
    try:
        for place in (runs, *prepared.writable):
            make_folder(root, place)
    except OSError as error:
        raise WorkflowError(
            f"{utility.id} did not run: a folder could not be made ({error.strerror or error}).",
            "Make room, or name another folder.",
            "tool_failed",
            {"utility": utility.id, "kind": "no_folder"},
        ) from error
    # A folder to write in can be read as well.
    opened = dict.fromkeys((*prepared.readable, *prepared.writable))
    folders = tuple(place for place in opened if (root / place).is_dir())
    seen = (own, *(root / place for place in prepared.readable))

    def hidden() -> dict[Path, int]:
        found = hidden_files(workspace, folders) if folders else {}
        return found | {path: path.lstat().st_ino for path in map(own.joinpath, protected_places(own))}

    try:
        top, direct, *written = (
            held.enter_context(closing(HeldFolder(os.fspath(root), place)))
            for place in (".", runs, *prepared.writable)
        )
    except WorkspaceError as error:
        raise SandboxError(str(error), "Look where the folder is now.") from None
    kept_back = [workspace.relative(path) for path in hidden() if path.is_relative_to(root)]
    copies = held.enter_context(
        closing(PrivateCopies(top, written, kept_back, view=sandbox.view, direct=direct))
    )
    hosts = utility.manifest.needs("host")
    return lambda: copies.confinement(runs, seen, hidden(), environment, hosts), copies


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def make_folder(root: Path, place: str) -> None:
    """Make a folder with those above it, through no link. Raises OSError."""
    parts = place.split("/")
    for depth, name in enumerate(parts):
        above = open_folder(os.fspath(root), parts[:depth])
        try:
            with suppress(FileExistsError):
                os.mkdir(name, mode=0o755 if depth < len(parts) - 1 else 0o700, dir_fd=above)
        finally:
            os.close(above)
    os.close(open_folder(os.fspath(root), parts))


class _Heard:
    """What a program wrote: its standard output, and the end of its standard error.

    Attributes:
        on_overflow: called when standard output grew beyond its bound.
        overflowed: whether it did.
    """

    def __init__(self, on_stderr: OnStderr | None) -> None:
        self.on_overflow: Callable[[], None] = lambda: None
        self.overflowed = False
        self.stdout = bytearray()
        self._log = bytearray()
        self._on_stderr = on_stderr

    def hear(self, stream: str, piece: bytes) -> None:
        """Take what the program wrote on one of its streams."""
        if stream == "stderr":
            self._log += piece
            if len(self._log) > 2 * _KEPT_OF_STDERR:
                del self._log[:-_KEPT_OF_STDERR]
            if self._on_stderr is not None:
                self._on_stderr(stream, piece)
        elif not self.overflowed:
            self.stdout += piece
            if len(self.stdout) > LARGEST_OUTPUT:
                self.overflowed = True
                del self.stdout[:-_QUOTED]
                self.on_overflow()

    @property
    def log(self) -> str:
        """The end of standard error."""
        return self._log[-_KEPT_OF_STDERR:].decode("utf-8", "replace")

    @property
    def details(self) -> dict[str, str]:
        """What an error tells of both streams."""
        return {
            "stderr": last_lines(self.log, _QUOTED),
            "stdout": self.stdout[-_QUOTED:].decode("utf-8", "replace"),
        }

    def last_words(self) -> str:
        """Return the last line of standard error, in parentheses; "" where there is none."""
        lines = self.log[-_QUOTED:].strip().splitlines()
        return f" ({shorten(lines[-1].strip(), 300)})" if lines else ""


def _signal_name(number: int) -> str:
    """Return what a signal is called: ``SIGKILL (signal 9)``."""
    try:
        return f"{signal.Signals(number).name} (signal {number})"
    except ValueError:
        return f"signal {number}"


def _fail(
    utility: Utility, heard: _Heard, code: WorkflowErrorCode, message: str, hint: str = "", **details: Any
) -> NoReturn:
    raise WorkflowError(
        f"{utility.id} {message}.", hint, code, {"utility": utility.id, **details, **heard.details}
    )


def _fail_late(utility: Utility, heard: _Heard, seconds: float) -> NoReturn:
    if heard.overflowed:
        too_much = f"printed more than {LARGEST_OUTPUT >> 20} MiB on standard output, so it was ended"
        _fail(utility, heard, "tool_invalid_output", too_much, "Large results are files: give their paths.")
    _fail(
        utility, heard, "tool_timeout", f"took more than {seconds:g} seconds, so it was ended{heard.last_words()}",
        "Give it more time, or less to do.", seconds=seconds,
    )  # fmt: skip


def _fail_unapplied(utility: Utility, heard: _Heard, refusals: Sequence[Refusal]) -> NoReturn:
    _fail(
        utility, heard, "tool_failed", f"ran, and what it wrote was not applied: {refusals[0]}",
        "Look at the files, then run the step again.", kind="not_applied", refusals=[str(each) for each in refusals],
    )  # fmt: skip


def _check_end(utility: Utility, heard: _Heard, result: SandboxResult) -> None:
    """Raise WorkflowError where a program did not end well."""
    if heard.overflowed:
        _fail_late(utility, heard, 0)
    code, said = result.returncode, heard.last_words()
    details: dict[str, Any] = {"refused": list(result.refusals)} if result.refusals else {}
    if code == 0:
        return
    if result.reason or code is None:
        message = f"was ended: it used {result.reason}"
        details["kind"] = "limit"
    elif code > 128:
        message = f"was ended by {_signal_name(code - 128)}{said}"
        details |= {"kind": "signal", "signal": code - 128}
    else:
        message = f"ended with exit code {code}{said}"
        details |= {"kind": "exit", "exit_code": code}
    _fail(utility, heard, "tool_failed", message, " ".join(result.refusals[-1:]), **details)


async def _checked_output(
    utility: Utility,
    heard: _Heard,
    folders: tuple[Path, ...],
    workspace: Workspace,
    meant: Callable[[Any], Any],
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return what a program printed as its result, and the artifacts that it names. Raises WorkflowError."""
    judge = partial(_judged, utility.manifest.output_schema, heard.stdout)
    is_small = len(heard.stdout) < _PARSED_HERE
    found, problems, marked = judge() if is_small else await asyncio.to_thread(judge)
    if found is None:
        _fail(
            utility, heard, "tool_invalid_output", "did not end its standard output with a JSON object",
            "Print one JSON object last, and logs on standard error.",
        )  # fmt: skip
    artifacts: dict[Place, str] = {}
    for place in marked:
        try:
            artifacts[place] = workspace.relative(artifact_path(str(meant(at(found, place))), folders))
        except WorkspaceError as error:
            problems.append({"path": pointer(place), "message": str(error)})
    if problems:
        first = problems[0]
        where = f"{first['path']}: " if first["path"] else ""
        _fail(
            utility, heard, "tool_invalid_output",
            f"gave what its manifest does not say: {where}{first['message']}", "Mend the program or its manifest.",
            problems=problems,
        )  # fmt: skip
    return replaced(found, artifacts), tuple(dict.fromkeys(artifacts.values()))


def _judged(
    schema: Schema, printed: bytearray
) -> tuple[dict[str, Any] | None, list[dict[str, str]], dict[Place, str]]:
    """Return the object that was printed, what is wrong with it, and where artifacts stand in it."""
    found = last_object(printed)
    if found is None:
        return None, [], {}
    try:
        problems = value_faults(schema, found)
        return found, problems, {} if problems else texts_of_format(schema, found, (ARTIFACT_PATH,))
    except (ValueError, TypeError) as error:
        return found, [{"path": "", "message": f"cannot be checked: {error}"}], {}


def artifact_path(text: str, folders: tuple[Path, ...]) -> Path:
    """Return the file or folder that a program says it made. Raises WorkspaceError.

    Args:
        text: absolute, or from the run folder on, which is the first of `folders`.
        folders: those that it may write in.
    """
    named = repr(shorten(text, 200))
    path = Path(os.path.normpath(folders[0] / text)) if "\0" not in text else folders[0] / "\ufffd"
    if not any(path.is_relative_to(folder) and path != folder for folder in folders):
        raise WorkspaceError(f"{named} is not below a folder that it may write in")
    try:
        mode = path.lstat().st_mode
    except (OSError, ValueError):
        raise WorkspaceError(f"{named} is not there") from None
    if os.path.realpath(path) != os.fspath(path):
        raise WorkspaceError(f"{named} is a link, or lies behind one")
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise WorkspaceError(f"{named} is no regular file or folder")
    return path


def last_object(printed: bytes | bytearray) -> dict[str, Any] | None:
    """Return the JSON object at the end of what a program printed; None where there is none.

    It begins at the start of a line, or is all that was printed. Numbers that JSON lacks make it none.

    Example:
        >>> last_object(b"3 files found\\n{\\n \\"files\\": [{}]\\n}\\n")
        {'files': [{}]}
        >>> last_object(b'{"a": NaN}') is None
        True
    """
    text = bytes(printed).decode("utf-8", "replace").strip()
    if not text.endswith("}"):
        return None
    start, left = len(text), 4 * LARGEST_OUTPUT
    for _ in range(_MOST_BEGINNINGS):
        start = text.rfind("\n{", 0, start)
        begin = start + 1
        left -= len(text) - begin
        if (found := _object(text[begin:])) is not None:
            return found
        if start < 0 or left < 0:
            return None
    return _object(text)


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _no_number(text: str) -> NoReturn:
    raise ValueError(text)


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(text)
    return number
