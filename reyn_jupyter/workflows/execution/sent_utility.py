"""Steps of utilities on an executor: what is sent of them, what another process or machine runs, what is taken back.

Invariants: all that decides stays here: trust, policy, permission, consent, the record. What is sent is the utility's
files, whose digest is the trusted one and is compared again where they arrive, the inputs, and the files that these
name, none that rules keep back. A worker runs it in a sandbox of its own, by the settings of this session, and writes
in a folder that goes with the call. What it made comes back as bytes; this process alone writes it, and judges it as
if a program here had given it. What needs a secret, or writes in a folder of the workspace, is never sent.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reyn_jupyter.config.settings import SandboxSettings
from reyn_jupyter.executors.executor import Executor, ExecutorLostError, SentSpec, Task, WorkerLostError
from reyn_jupyter.guard.sandbox import SandboxError
from reyn_jupyter.guard.sandbox.hidden_files import hidden_files
from reyn_jupyter.guard.sandbox.protected_places import is_protected
from reyn_jupyter.guard.workspace import Workspace, WorkspaceError
from reyn_jupyter.support.files.plain_files import PlainFolder
from reyn_jupyter.support.files.tree_removal import remove_tree
from reyn_jupyter.support.user_errors import UserError
from reyn_jupyter.workflows.utilities.manifest import FILE, Utility, manifest_of
from reyn_jupyter.workflows.utilities.protocol import (
    ARTIFACT_PATH,
    UtilityInputs,
    UtilityRun,
    artifact_path,
    make_folder,
    run_utility,
)
from reyn_jupyter.workflows.utilities.schema_values import at, texts_of_format, value_faults
from reyn_jupyter.workflows.utilities.utility_files import UtilityFolderError, read_folder
from reyn_jupyter.workflows.workflow_error import WorkflowError

MOST_BYTES = 64 << 20  # of the files that a step reads, or gives back, on an executor
MOST_FILES = 2_000
_ATTEMPTS = 2
_KEPT = 50  # utilities that are kept as they are sent
_LINK = "-> "
_EXECUTABLE = " +x"


class SentStepLostError(UserError):
    """The worker, or the whole executor, that a step was sent to is gone, and the step is not sent again."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(f"{message} {hint}".strip())
        self.message, self.hint = message, hint


@dataclass(frozen=True)
class SentUtility:
    """A utility as it is sent: what a worker is made from.

    Attributes:
        name: of its folder, for messages.
        digest: over all of its files, as it is trusted.
        hashes, contents: of each file by path, see `FolderFiles`.
    """

    name: str
    digest: str
    hashes: Mapping[str, str] = field(repr=False)
    contents: Mapping[str, bytes] = field(repr=False)

    def open(self, folder: Path) -> UtilityWorker:
        """Write the files, and compare them with the digest. Raises WorkflowError where they differ."""
        place = folder / "utility"
        for path, told in self.hashes.items():
            file = place / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if told.startswith(_LINK):
                file.symlink_to(json.loads(told.removeprefix(_LINK)))
                continue
            file.write_bytes(self.contents[path])
            file.chmod(0o755 if told.endswith(_EXECUTABLE) else 0o644)
        found = read_folder(place, FILE)
        if found.digest != self.digest or found.manifest is None:
            raise WorkflowError(
                f"{self.name} arrived with other files than those that are trusted, so it does not run.",
                "Run it without an executor.",
                "tool_failed",
            )
        manifest = manifest_of(found.manifest, place, f"{self.name}/{FILE}")
        return UtilityWorker(Utility(manifest, place, "workspace", self.digest, trusted=True), folder)


@dataclass(frozen=True)
class SentCall:
    """One call of a utility, as it is sent.

    Attributes:
        inputs: paths from the root of the workspace on.
        files, folders: what the inputs name there.
        run_folder: from the root on.
        settings: which sandbox is admitted.
        seconds: that the call may take.
    """

    inputs: Mapping[str, Any]
    files: Mapping[str, bytes] = field(repr=False)
    folders: tuple[str, ...]
    run_folder: str
    settings: SandboxSettings
    seconds: float


@dataclass(frozen=True)
class SentRun:
    """What comes back of a call: the run, and the files of its folder by their path in it."""

    run: UtilityRun
    files: Mapping[str, bytes] = field(repr=False)


class UtilityWorker:
    """Runs one utility where it was opened, each call in a workspace of its own."""

    def __init__(self, utility: Utility, folder: Path) -> None:
        self._utility, self._folder = utility, folder
        self._calls = 0

    async def run(self, payload: SentCall) -> SentRun:
        """Run one call. Raises WorkflowError."""
        self._calls += 1
        root = self._folder / f"call-{self._calls}"
        try:
            for place in (".", *payload.folders):
                (root / place).mkdir(parents=True, exist_ok=True)
            for place, data in payload.files.items():
                (root / place).parent.mkdir(parents=True, exist_ok=True)
                (root / place).write_bytes(data)
            run_folder = root.resolve() / payload.run_folder
            run = await run_utility(
                self._utility, payload.inputs, run_folder=run_folder, workspace=Workspace(root, off_limits=()),
                settings=payload.settings, timeout_seconds=payload.seconds,
            )  # fmt: skip
            return SentRun(run, _made_files(self._utility, run_folder))
        finally:
            with suppress(OSError):
                remove_tree(root)

    async def release(self) -> None:
        """Do nothing: no program outlives its call."""

    def close(self) -> None:
        """Do nothing: the folder is its owner's."""


def _made_files(utility: Utility, folder: Path) -> dict[str, bytes]:
    """Return the regular files of a run folder. Raises WorkflowError where they are too many, or too large."""
    found: dict[str, bytes] = {}
    left = MOST_BYTES
    for above, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(above, name)
            status = path.lstat()
            if not stat.S_ISREG(status.st_mode):
                continue
            left -= status.st_size
            if left < 0 or len(found) >= MOST_FILES:
                raise WorkflowError(
                    f"{utility.id} made more than {MOST_BYTES >> 20} MiB, or more than {MOST_FILES:,} files, which is "
                    "more than comes back from a worker.",
                    "Run it without an executor.",
                    "tool_failed",
                    {"utility": utility.id, "kind": "limit", "retryable": False},
                )
            found[path.relative_to(folder).as_posix()] = path.read_bytes()
    return found


class UtilitySender:
    """Sends the utilities of steps to an executor.

    Args:
        executor: where they run; whoever made it closes it.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._specs: dict[str, SentSpec] = {}
        self.lost: ExecutorLostError | None = None  # why nothing can run there any more

    @property
    def slots(self) -> int:
        """How many steps keep the executor busy."""
        return self._executor.slots

    async def run(
        self,
        utility: Utility,
        opened: UtilityInputs,
        *,
        run_folder: Path,
        workspace: Workspace,
        settings: SandboxSettings,
        timeout_seconds: float,
    ) -> UtilityRun | None:
        """Run a utility on the executor; None where it has to run here, and nothing was begun.

        Args:
            utility: a trusted one, whose call was looked at as any.
            opened: its inputs; see `prepare_inputs`.
            run_folder, workspace, settings, timeout_seconds: as `run_utility` has them; the time that it waits for a
                worker counts.

        Raises:
            WorkflowError: as `run_utility`.
            SentStepLostError: its worker was lost and it may have done a part of its work, or its second worker was,
                or the executor.
        """
        if opened.writable or utility.manifest.needs("secret"):
            return None
        found = await asyncio.to_thread(_files_of, workspace, opened.readable)
        if found is None:
            return None
        spec = await self._spec(utility)
        place = workspace.relative(run_folder)
        call = SentCall(opened.named, *found, place, settings, timeout_seconds)
        try:
            async with asyncio.timeout(max(0.0, timeout_seconds)):
                sent = await self._submit(utility, Task(spec, call))
        except TimeoutError:
            raise WorkflowError(
                f"{utility.id} took more than {timeout_seconds:g} seconds on the executor, the wait for a worker "
                "included, so it was ended.",
                "Give it more time, or less to do.",
                "tool_timeout",
                {"utility": utility.id, "seconds": timeout_seconds},
            ) from None
        return await asyncio.to_thread(_taken_back, utility, sent, run_folder, workspace)

    async def _submit(self, utility: Utility, task: Task) -> SentRun:
        # Without a host, all that it can have done was in the folder that went with its worker.
        is_harmless = utility.manifest.idempotency == "safe" or not utility.manifest.needs("host")
        how = ""
        for _ in range(_ATTEMPTS if is_harmless else 1):
            try:
                sent = await self._executor.submit(task)
            except WorkerLostError as lost:
                how = str(lost)
            except ExecutorLostError as lost:
                self.lost = lost
                raise SentStepLostError(f"{utility.id} was not answered: {lost}", "") from lost
            else:
                assert isinstance(sent, SentRun)
                return sent
        again = "and so was the next one" if is_harmless else "and it may have done a part of its work"
        raise SentStepLostError(
            f"The worker that {utility.id} ran on was lost ({how}), {again}.",
            "Look at what was done, then run it again.",
        )

    async def _spec(self, utility: Utility) -> SentSpec:
        """Return the utility as it is sent. Raises WorkflowError where its files are not the trusted ones."""
        if (spec := self._specs.get(utility.digest)) is None:
            spec = await asyncio.to_thread(_spec_of, utility)
            self._specs[utility.digest] = spec
            if len(self._specs) > _KEPT:
                del self._specs[next(iter(self._specs))]
        return spec


def _spec_of(utility: Utility) -> SentSpec:
    contents: dict[str, bytes] = {}
    with suppress(UtilityFolderError):
        found = read_folder(utility.folder, FILE, contents)
        if found.digest == utility.digest and utility.trusted:
            return SentSpec.of(
                SentUtility(utility.folder.name, found.digest, found.hashes, contents), "executor"
            )
    raise WorkflowError(
        f"{utility.id} has changed since it was looked at.", "Run it again.", "tool_failed",
        {"utility": utility.id, "kind": "changed"},
    )  # fmt: skip


def _files_of(
    workspace: Workspace, readable: tuple[str, ...]
) -> tuple[dict[str, bytes], tuple[str, ...]] | None:
    """Return the files at some places and below them, and the folders; None where they are too many, or too large.

    What a rule keeps back in a folder is not among them.
    """
    files: dict[str, bytes] = {}
    folders: list[str] = []
    left = MOST_BYTES
    try:
        pending = [each for each in readable if (workspace.root / each).is_dir()]
        hidden = set(hidden_files(workspace, pending)) if pending else set()
        places = [each for each in readable if each not in pending]
        while pending or places:
            while places:
                *above, name = places.pop().split("/")
                data = PlainFolder(workspace.root, *above).read(name, left)
                left -= len(data)
                files["/".join((*above, name))] = data
                if len(files) > MOST_FILES:
                    return None
            if pending:
                folder = pending.pop()
                folders.append(folder)
                with os.scandir(workspace.root / folder) as entries:
                    for entry in entries:
                        place = entry.name if folder == "." else f"{folder}/{entry.name}"
                        if (workspace.root / place) in hidden:
                            continue
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(place)
                        elif entry.is_file(follow_symlinks=False):
                            places.append(place)
    except (OSError, SandboxError):
        return None  # what cannot be read here and now is looked at where it lies
    return files, tuple(folders)


def _taken_back(utility: Utility, sent: SentRun, run_folder: Path, workspace: Workspace) -> UtilityRun:
    """Write the files of a run, and return it judged anew. Raises WorkflowError."""
    output, runs = sent.run.output, workspace.relative(run_folder)
    problems = [] if _are_plain(runs, sent.files) else ["it names files where none may be written"]
    problems += [f"{each['path']}: {each['message']}" for each in _faults(utility, output)]
    if not problems:
        try:
            if sent.files:
                make_folder(workspace.root, runs)
            for path, data in sent.files.items():
                *above, name = f"{runs}/{path}".split("/")
                PlainFolder(workspace.root, *above).replace(name, data)
        except OSError as error:
            raise WorkflowError(
                f"What {utility.id} made could not be written: {error.strerror or error}.", "Make room.", "tool_failed",
                {"utility": utility.id, "kind": "no_folder"},
            ) from error  # fmt: skip
        for at_place in texts_of_format(utility.manifest.output_schema, output, (ARTIFACT_PATH,)):
            try:
                artifact_path(os.fspath(workspace.root / str(at(output, at_place))), (run_folder,))
            except WorkspaceError as error:
                problems.append(str(error))
    if problems:
        raise WorkflowError(
            f"{utility.id} gave what its manifest does not say: {problems[0]}.", "", "tool_invalid_output",
            {"utility": utility.id, "problems": problems},
        )  # fmt: skip
    return sent.run


def _faults(utility: Utility, output: Mapping[str, Any]) -> list[dict[str, str]]:
    try:
        return value_faults(utility.manifest.output_schema, output)
    except (ValueError, TypeError) as error:
        return [{"path": "", "message": f"cannot be checked: {error}"}]


def _are_plain(runs: str, files: Mapping[str, bytes]) -> bool:
    """Return whether paths lead below a run folder, and to nothing that no action may write."""
    return all(
        not {"", ".", ".."} & set(path.split("/")) and "\0" not in path and not is_protected(f"{runs}/{path}")
        for path in files
    )


_current: ContextVar[UtilitySender | None] = ContextVar("utility_sender", default=None)


@contextmanager
def steps_sent_by(sender: UtilitySender | None) -> Iterator[None]:
    """Let the steps of runs that the block begins, in this task, be sent where they can be."""
    token = _current.set(sender)
    try:
        yield
    finally:
        _current.reset(token)


def current_sender() -> UtilitySender | None:
    """Return what sends the steps of the run that is under way; None where all of them run here."""
    return _current.get()
