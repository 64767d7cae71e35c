"""The file of a run of a plan, `state/runs/<run_id>.json` of the workspace: written at each change, read for a resume.

Invariant: whenever the process is killed, the file is whole and says which steps were done and which were under way.
It holds no secret; what one was taken out of is marked as such, and is never given on as if it were whole. While a run
is held, no other process runs it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import uuid_utils
from pydantic import TypeAdapter, ValidationError

from reyn_jupyter.support.files.locks import release, try_lock
from reyn_jupyter.support.files.plain_files import NO_FOLLOW, NO_WAIT, PlainFolder, parse_json
from reyn_jupyter.support.sanitize import printable
from reyn_jupyter.support.text import shorten
from reyn_jupyter.workflows.execution.workflow_run import (
    EXIT_CODES,
    StepArtifact,
    StepAttempt,
    StepRun,
    StepStatus,
    WorkflowRun,
    WorkflowRunStatus,
)
from reyn_jupyter.workflows.planning.plan import MOST_PLAN_STEPS, WorkflowPlan
from reyn_jupyter.workflows.utilities.registry import STATE_FOLDER
from reyn_jupyter.workflows.workflow_error import WorkflowError

FORMAT = 1
LARGEST = 64 << 20  # bytes of a file that is read
LOST = ""  # in place of the id of a blob: outputs that could not be stored
INLINE = 64 << 10  # bytes of outputs or inputs that the file itself holds
STATE, RUNS = STATE_FOLDER, "runs"
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_LOCK = ".lock"
_PIECE = 1 << 20  # bytes of a file that are read at a time


@dataclass(frozen=True)
class StoredStep:
    """A step as the file of a run has it.

    Attributes:
        inputs: those that the file holds, secrets taken out; large ones are left out.
        inputs_digest: SHA-256 of the same.
        outputs: None where they lie in the blob, or where none were given.
        outputs_whole: whether they stand there as they were given, without anything taken out.
        reads, writes, unchecked: As `StepRun` has them; `reads` is None if the file does not say.
    """

    step_id: str
    status: StepStatus
    operation: str = ""
    tool: str | None = None
    tool_digest: str = ""
    inputs: dict[str, Any] = field(default_factory=dict)
    inputs_digest: str = ""
    outputs: dict[str, Any] | None = None
    outputs_blob: str | None = None
    outputs_whole: bool = True
    artifacts: tuple[StepArtifact, ...] = ()
    reads: tuple[StepArtifact, ...] | None = None
    writes: tuple[StepArtifact, ...] = ()
    unchecked: str = ""
    attempts: tuple[StepAttempt, ...] = ()
    error: dict[str, Any] | None = None
    reason: str = ""
    log: str = ""


@dataclass(frozen=True)
class StoredRun:
    """A run as its file has it.

    Attributes:
        plan: as JSON, with its request; secrets are taken out of it.
        steps: by their ids.
        entries: the same as they stand in the file.
    """

    run_id: str
    status: WorkflowRunStatus
    plan: dict[str, Any]
    steps: Mapping[str, StoredStep]
    entries: Mapping[str, dict[str, Any]]
    started_at: float = 0.0
    ended_at: float | None = None
    text: str = ""
    problem: str = ""

    @property
    def run(self) -> WorkflowRun:
        """The run as it stood when the file was written; outputs that lie in a blob are left out."""
        steps = tuple(
            StepRun(
                each.step_id, each.operation, each.tool, each.status, each.inputs, each.outputs or {}, each.attempts,
                each.error, each.reason, each.artifacts, each.tool_digest, log=each.log,
            )
            for each in self.steps.values()
        )  # fmt: skip
        outputs = {each.step_id: each.outputs for each in steps if each.outputs}
        return WorkflowRun(self.run_id, self.status, steps, outputs, self.text, problem=self.problem)


class RunFile:
    """The file of one run.

    Args:
        workspace: its root; the file lies in `state/runs` below it, reached through no link.
        run_id: of the run; a new one for a run that begins.
        redact: takes secrets out of a JSON value.
        store, load: keep and give back the bytes of large outputs, by an id; without them the file holds all.

    Example:
        >>> run_file = RunFile(workspace, redact=redactor.value)                   # doctest: +SKIP
        >>> await execute_plan(plan, call_step=call, limits=RunLimits(), run_file=run_file)   # doctest: +SKIP
        >>> run_file.read().status                                                 # doctest: +SKIP
        'executed'
    """

    def __init__(
        self,
        workspace: Path,
        run_id: str | None = None,
        *,
        redact: Callable[[Any], Any] = lambda value: value,
        store: Callable[[bytes], Awaitable[str]] | None = None,
        load: Callable[[str], Awaitable[bytes]] | None = None,
    ) -> None:
        self.workspace, self.run_id = workspace, run_id or str(uuid_utils.uuid7())
        if not _RUN_ID.fullmatch(self.run_id):
            raise WorkflowError(
                f"{self.run_id!r} is no id of a run.", "Give the name of a file in state/runs.", "validation"
            )
        self._redact, self._store, self._load = redact, store, load
        self._folder = PlainFolder(workspace, STATE, RUNS)
        self._head: dict[str, Any] = {}
        self._plan = b"{}"
        self._steps: dict[str, bytes] = {}
        self._held: int | None = None

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self._folder.path / f"{self.run_id}.json"

    def step_folder(self, step_id: str) -> Path:
        """Return where a step of the run works; it need not exist."""
        return self._folder.path / self.run_id / step_id

    def hold(self) -> None:
        """Hold the run for this process, until `let_go`.

        Raises:
            WorkflowError: another run of a process holds it.
            OSError: the folder cannot be written.
        """
        folder = PlainFolder(self.workspace, STATE, RUNS, self.run_id)
        descriptor = folder.open(_LOCK, os.O_RDWR | os.O_CREAT, make=True)
        if not try_lock(descriptor, required=False):
            os.close(descriptor)
            raise WorkflowError(
                f"The run {self.run_id} is under way.", "Wait until it ends, or interrupt it.", "validation"
            )
        self._held = descriptor

    def let_go(self) -> None:
        """Give the run free."""
        if self._held is not None:
            release(self._held)
            self._held = None

    @property
    def exists(self) -> bool:
        """Whether there is such a file, or anything in its place."""
        return self._folder.holds(self.path.name)

    def begin(
        self,
        plan: WorkflowPlan,
        steps: Sequence[StepRun],
        started_at: float,
        earlier: StoredRun | None = None,
    ) -> None:
        """Write the file with all its steps. Raises OSError.

        Args:
            started_at: seconds since the epoch.
            earlier: the run as an earlier start left it; what that did of a step stands until the step is run again.
        """
        self._head = {"run_id": self.run_id, "status": "running", "started_at": round(started_at, 3)}
        if earlier is not None:
            self._head |= {"started_at": earlier.started_at, "resumed_at": round(started_at, 3)}
        self._plan = encode_json(self._redact(plan.as_json()))
        entries = earlier.entries if earlier is not None else {}
        self._steps = {
            step.step_id: encode_json(entries[step.step_id]) if step.step_id in entries else self._step(step)
            for step in steps
        }
        state = PlainFolder(self.workspace, STATE)
        if not state.holds(".gitignore"):
            state.replace(".gitignore", b"*\n")
        self._remove_leftovers()
        self._write()

    def change(self, *steps: StepRun, outputs_blob: str | None = None) -> None:
        """Write what some steps have become. Raises OSError."""
        for step in steps:
            self._steps[step.step_id] = self._step(step, outputs_blob)
        self._write()

    def end(self, status: WorkflowRunStatus, steps: Sequence[StepRun], text: str, problem: str) -> None:
        """Write how the run ended. Raises OSError.

        Args:
            steps: those that have become something else since the last change.
        """
        self._head |= {
            "status": status,
            "exit_code": EXIT_CODES[status],
            "ended_at": round(time.time(), 3),
            "text": self._redact(text),
        }
        if problem:
            self._head["problem"] = self._redact(problem)
        self.change(*steps)

    async def store_outputs(self, outputs: Mapping[str, Any]) -> str | None:
        """Return the id of the blob that outputs were stored in; None for those that the file itself holds."""
        if self._store is None:
            return None
        content = encode_json(self._redact(dict(outputs)))
        return await self._store(content) if len(content) > INLINE else None

    def inputs_digest(self, inputs: Mapping[str, Any]) -> str:
        """Return the SHA-256 of inputs as the file keeps them. Raises ValueError, TypeError: they are no JSON."""
        return hashlib.sha256(encode_json(self._redact(dict(inputs)), sort=True)).hexdigest()

    def _remove_leftovers(self) -> None:
        """Remove what writes that were killed have left."""
        for name in self._folder.entries()[0]:
            if name.startswith(f".{self.path.name}.") and name.endswith(".part"):
                self._folder.remove(name)

    def _step(self, step: StepRun, outputs_blob: str | None = None) -> bytes:
        inputs = self._redact(dict(step.inputs))
        content = encode_json(inputs, sort=True)
        entry: dict[str, Any] = {
            "step_id": step.step_id,
            "operation": step.operation,
            "tool": step.tool,
            "tool_digest": step.tool_digest,
            "status": step.status,
            **({"inputs": inputs} if len(content) <= INLINE else {"inputs_size": len(content)}),
            "inputs_digest": hashlib.sha256(content).hexdigest(),
            "attempts": self._redact([asdict(attempt) for attempt in step.attempts]),
        }
        if step.status == "done":
            outputs = self._redact(dict(step.outputs))
            entry |= {"outputs": outputs} if outputs_blob is None else {"outputs_blob": outputs_blob}
            entry |= {"outputs_whole": outputs == step.outputs and outputs_blob != LOST}
            for name in ("artifacts", "reads", "writes"):
                entry[name] = [asdict(each) for each in getattr(step, name)]
            if step.unchecked:
                entry["unchecked"] = self._redact(step.unchecked)
        if step.error is not None:
            entry["error"] = self._redact(dict(step.error))
        if step.log:
            entry["log"] = self._redact(step.log)
        if step.reason:
            entry["reason"] = self._redact(step.reason)
        return encode_json(entry)

    def _write(self) -> None:
        head = encode_json({"format": FORMAT, **self._head, "updated_at": round(time.time(), 3)})
        steps = b",\n".join(self._steps.values())
        content = b'%s,\n"plan": %s,\n"steps": [\n%s\n]}\n' % (head[:-1], self._plan, steps)
        self._folder.replace(self.path.name, content)

    def read(self) -> StoredRun:
        """Return the run as the file has it.

        Raises:
            WorkflowError: there is none, or it is no file of a run.
        """
        try:
            data = parse_json(self._folder.read(self.path.name, LARGEST))
        except FileNotFoundError:
            raise WorkflowError(
                f"There is no run {self.run_id} in {STATE}/{RUNS}.", "Look for its file there.", "validation"
            ) from None
        except (OSError, ValueError) as error:
            raise _damaged(self.run_id, str(error)) from None
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise _damaged(self.run_id, f"its format is not {FORMAT}")
        if data.get("run_id") != self.run_id:
            raise _damaged(self.run_id, "it is the file of another run")
        steps = data.get("steps")
        if not isinstance(steps, list) or not all(isinstance(each, dict) for each in steps):
            raise _damaged(self.run_id, "it has no list of steps")
        if len(steps) > MOST_PLAN_STEPS:
            raise _damaged(self.run_id, f"it has more than {MOST_PLAN_STEPS:,} steps, which no plan has")
        entries = {str(each.get("step_id")): each for each in steps}
        try:
            return _stored_run().validate_python({**data, "steps": entries, "entries": entries})
        except ValidationError as error:
            place = shorten(printable(".".join(str(part) for part in error.errors()[0]["loc"])), 100)
            raise _damaged(self.run_id, f"{place}: {error.errors()[0]['msg']}") from None

    async def outputs_of(self, step: StoredStep) -> dict[str, Any] | None:
        """Return what a step that is done gave; None where the file no longer has it whole."""
        if step.status != "done" or not step.outputs_whole:
            return None
        if step.outputs_blob is None:
            return step.outputs
        if self._load is None:
            return None
        try:
            value = parse_json(await self._load(step.outputs_blob))
        except Exception:  # noqa: BLE001 - a store of somebody else's: whatever it raises, there is no result
            return None
        return value if isinstance(value, dict) else None

    def artifacts(self, paths: Sequence[str]) -> tuple[StepArtifact, ...]:
        """Return files and folders with their hashes as they are now; blocks while it reads."""
        return tuple(_artifact(self.workspace, path) for path in paths)

    def changed(
        self,
        artifacts: Sequence[StepArtifact],
        is_over: Callable[[], bool] = lambda: False,
        own: Collection[StepArtifact] = (),
    ) -> tuple[str, ...]:
        """Return the paths of files and folders that are no longer as a step made or read them; blocks while it reads.

        Args:
            artifacts: As they were. One without a hash was not read, and counts as changed.
            is_over: True once no one waits for the result.
            own: What steps of the same run left there, which is no change.
        """
        found = []
        left: dict[str, list[StepArtifact]] = {}
        for mine in own:
            left.setdefault(mine.path, []).append(mine)
        for each in artifacts:
            known = [each, *left.get(each.path, ())]
            most = max(one.size for one in known)
            now = _artifact(self.workspace, each.path, _Reading(most, is_over))
            if not each.sha256 or now.sha256 not in (one.sha256 for one in known):
                found.append(each.path)
        return tuple(found)


def last_run_id(workspace: Path) -> str:
    """Return the id of the run whose file was written last. Raises WorkflowError where there is none."""
    folder = PlainFolder(workspace, STATE, RUNS)
    written: dict[str, int] = {}
    for name in folder.entries()[0]:
        run_id, dot, ending = name.partition(".")
        if dot and ending == "json" and _RUN_ID.fullmatch(run_id):
            with suppress(FileNotFoundError):
                written[run_id] = (folder.path / name).lstat().st_mtime_ns
    if not written:
        raise WorkflowError(f"There is no run in {STATE}/{RUNS}.", "%reyn dispatch begins one.", "validation")
    return max(written, key=written.__getitem__)


def encode_json(value: Any, *, sort: bool = False) -> bytes:
    """Return a value as JSON that people can read.

    Raises:
        TypeError, ValueError: JSON does not have it: a date, NaN, a circle.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=sort).encode()
    except UnicodeEncodeError:  # half a pair of surrogates: escaped instead of refused
        return json.dumps(value, allow_nan=False, sort_keys=sort).encode()


class _Reading:
    """What may be read of an artifact: as much as it is said to hold, as long as somebody waits for it.

    Raises:
        OSError: from `add`, where there is more.
    """

    def __init__(self, most: float = float("inf"), is_over: Callable[[], bool] = lambda: False) -> None:
        self.size, self._most, self._is_over = 0, most, is_over

    def add(self, size: int) -> None:
        self.size += size
        if self.size > self._most or self._is_over():
            raise OSError("it holds more than it did, or nobody waits for it")


def _artifact(workspace: Path, path: str, reading: _Reading | None = None) -> StepArtifact:
    """Return a file or folder with its hash; followed through no link of its own, and through none to elsewhere."""
    missing = StepArtifact(path, "", 0)
    place = workspace / path
    try:
        if not Path(os.path.realpath(place)).is_relative_to(workspace.resolve()):
            return missing
        reading = reading or _Reading()
        is_folder = stat.S_ISDIR(place.lstat().st_mode)
        left_out = (lambda name: name == STATE or name.startswith(".")) if place.samefile(workspace) else None
        digest = _hash_folder(place, reading, left_out) if is_folder else _hash_file(place, reading)
        return StepArtifact(path, digest, reading.size)
    except (OSError, ValueError, RecursionError):  # the last for folders in folders, a thousand deep
        return missing


def _hash_file(path: Path, reading: _Reading) -> str:
    """Return the hash of a file. Raises OSError where it is no plain one, or too large."""
    with os.fdopen(os.open(path, os.O_RDONLY | NO_FOLLOW | NO_WAIT), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{path} is no plain file")
        digest = hashlib.sha256()
        while piece := file.read(_PIECE):
            reading.add(len(piece))
            digest.update(piece)
        return digest.hexdigest()


def _hash_folder(folder: Path, reading: _Reading, left_out: Callable[[str], bool] | None = None) -> str:
    """Return the hash of all that lies in a folder, where a link counts as what stands in it. Raises OSError.

    Args:
        left_out: Whether an entry of the folder itself does not count.
    """

    def fail(error: OSError) -> None:
        raise error

    digest = hashlib.sha256()
    for root, folders, files in os.walk(folder, onerror=fail):
        if left_out is not None and Path(root) == folder:
            folders[:] = [each for each in folders if not left_out(each)]
            files = [each for each in files if not left_out(each)]
        folders.sort()
        for name in sorted([*folders, *files]):
            place = Path(root, name)
            mode, held = place.lstat().st_mode, ""
            reading.add(0)
            if stat.S_ISLNK(mode):
                held = str(place.readlink())
            elif not stat.S_ISDIR(mode):
                held = _hash_file(place, reading)
            digest.update(repr((place.relative_to(folder).as_posix(), stat.S_IFMT(mode), held)).encode())
    return digest.hexdigest()


def _damaged(run_id: str, why: str) -> WorkflowError:
    return WorkflowError(
        f"The file of the run {run_id} cannot be read: {why}.", "Run the plan anew.", "validation"
    )


@cache
def _stored_run() -> TypeAdapter[StoredRun]:
    return TypeAdapter(StoredRun)
