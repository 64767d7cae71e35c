"""Run the code of a tool in a sandbox, once: parameters in, a JSON value or an error out.

Invariants: the code never runs in this process, and each run has a process of its own, with no right but those of its
permissions; without a sandbox in force nothing runs. Whatever the code does is a `ToolRun`, never an exception here.
When a run is over, late or cancelled, none of its processes is left. The time limit counts from where the code begins.

What the code prints and its value share one pipe. A nonce tells them apart, so that printed text is not taken for a
value by accident. The code can read the nonce: what it forges with it is its own value, which is untrusted anyway.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from reyn_jupyter.config.settings import SandboxSettings
from reyn_jupyter.dynamic.tool_error import DynamicToolError
from reyn_jupyter.dynamic.tool_permissions import ToolPermissions
from reyn_jupyter.guard.held_place import HeldFolder, WorkspaceError
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
from reyn_jupyter.guard.sandbox.private_copies import ChangeRecord, PrivateCopies, TakenOver
from reyn_jupyter.guard.workspace import Workspace

ErrorKind = Literal["failed", "timeout", "memory", "soft", "refused"]
OnOutput = Callable[[str, bytes], None]

MILLISECONDS = 30_000
LARGEST_OUTPUT = 1 << 20  # bytes kept of what the code prints on each stream
_LARGEST_VALUE = 16 << 20  # bytes, as the children have it
_LARGEST_FRAME = _LARGEST_VALUE + (1 << 16)
_PARSED_HERE = 1 << 18  # bytes; more are read in a thread
_START_SECONDS = 30.0  # until the code begins, on a busy machine
_START_SECONDS_OF_PYODIDE = 90.0
_NOTHING = ToolPermissions()
_CHILDREN = Path(__file__).parent / "children"
_PYTHON, _TYPESCRIPT = _CHILDREN / "python_tool.py", _CHILDREN / "typescript_tool.ts"
_OUT_OF_MEMORY = (
    b"JavaScript heap out of memory",
    b"Fatal process out of memory",
    b"Fatal JavaScript out of memory",
)


@dataclass(frozen=True)
class ToolRun:
    """What came of one run.

    Attributes:
        ok: the code returned a value that is no soft error.
        value: what it returned, as JSON has it; numbers that JSON lacks are ``{"$number": "NaN"}``. None where it
            returned nothing.
        error: what went wrong, as a sentence or as ``KeyError: 'text'``; None where nothing did.
        error_kind: "failed" (it raised, ended its process, or returned what JSON lacks), "timeout", "memory",
            "refused" (it raised, and the sandbox held it back from something), "soft" (it returned
            ``{"error": …}``, which is kept as the value); None where nothing went wrong.
        seconds: wall time, with the start of the sandbox.
        stdout, stderr: the first mebibyte of each that it printed.
        isolation, backend: what the sandbox keeps apart, in a sentence, and its name.
        truncated: it printed more than was kept.
        traceback: the lines of the tool that an exception came through; "" without one.
        traffic: what it exchanged with each host of its permissions.
        refusals: what it tried to reach in vain, in sentences.
        planted: where it made something that no action may write, from the workspace's root on; that was not kept.
    """

    ok: bool
    value: Any
    error: str | None
    error_kind: ErrorKind | None
    seconds: float
    stdout: str
    stderr: str
    isolation: str
    backend: str
    truncated: bool
    traceback: str = ""
    traffic: tuple[HostTraffic, ...] = ()
    refusals: tuple[str, ...] = ()
    planted: tuple[str, ...] = ()


async def run_tool(
    code: str,
    parameters: Mapping[str, Any],
    *,
    mode: Literal["python", "typescript"],
    name: str,
    settings: SandboxSettings,
    workspace: Workspace,
    permissions: ToolPermissions = _NOTHING,
    timeout_ms: float = MILLISECONDS,
    record: ChangeRecord | None = None,
    on_output: OnOutput | None = None,
) -> ToolRun:
    """Run ``execute(parameters)`` of a tool's code to its end. A cancellation ends it, and all that it started.

    Args:
        code: defines ``execute``, plain or async.
        parameters: JSON values, checked and with defaults.
        mode: the language of the code.
        name: of the tool, for tracebacks.
        settings: which sandbox is admitted.
        workspace: as the call sees it: what its rules keep back is kept from the code.
        permissions: what a person granted.
        timeout_ms: from where the code begins.
        record: keeps what files held that the code changes.
        on_output: hears what the code prints as it comes, on the loop: "stdout" or "stderr", and bytes.

    Raises:
        SandboxError: no sandbox is in force for the language, or none that can hold these permissions.
        DynamicToolError: E403 for a permission whose file or folder is not there, or is protected.

    Example:
        >>> async def run():
        ...     code = "def execute(params): return params['text'][::-1]"
        ...     return await run_tool(
        ...         code, {"text": "abc"}, mode="python", name="reverse", settings=Settings().sandbox,
        ...         workspace=Workspace("."))
        >>> asyncio.run(run()).value                               # doctest: +SKIP
        'cba'
    """
    began = time.monotonic()
    runtime = await asyncio.to_thread(_runtime, mode, settings)
    nonce = secrets.token_hex(16)
    seconds = timeout_ms / 1000
    # Its own deadline is the looser one: it is what has the sandbox look at the run often.
    limits = SandboxLimits(
        seconds=runtime.start_seconds + seconds + 5, cpu_seconds=max(120, int(2 * seconds)), output=0
    )
    spoken, result, taken = _Spoken(nonce, on_output), None, TakenOver()
    with ExitStack() as held:
        confinement, copies = await asyncio.to_thread(_confinement, runtime, permissions, workspace, held)
        task = {
            "nonce": nonce, "name": name, "code": code,
            "parameters": dict(parameters) if copies is None else copies.given(dict(parameters)),
            "at_home": not (permissions.readable or permissions.writable),
        }  # fmt: skip
        try:
            async with asyncio.timeout(runtime.start_seconds) as deadline:
                loop = asyncio.get_running_loop()

                def begin() -> None:
                    if not deadline.expired():
                        deadline.reschedule(loop.time() + seconds)

                spoken.on_begin = begin
                result = await runtime.sandbox.run(
                    runtime.argv, confinement, limits, stdin=json.dumps(task).encode(), on_output=spoken.hear
                )
        except TimeoutError:
            pass
        finally:
            # What still runs may still write.
            if copies is not None and not runtime.sandbox.has_left_processes:
                taken = await copies.take_over(record)
    told = await _told(spoken, result, seconds)
    if taken.refusals and told.error is None:
        told = _Told(error=f"What the tool wrote was not applied: {taken.refusals[0]}.", kind="failed")
    value = told.value if copies is None else copies.meant(told.value)
    return ToolRun(
        told.error is None, value, told.error, told.kind, time.monotonic() - began,
        spoken.text("stdout"), spoken.text("stderr"), runtime.sandbox.isolation, runtime.sandbox.name, spoken.truncated,
        told.traceback, () if result is None else result.traffic, () if result is None else result.refusals,
        taken.planted,
    )  # fmt: skip


@dataclass(frozen=True)
class _Runtime:
    """What runs a tool: a sandbox and the program in it, and what that one needs beside the tool's permissions."""

    sandbox: Sandbox
    argv: tuple[str, ...]
    readable: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    start_seconds: float = _START_SECONDS


def _runtime(mode: str, settings: SandboxSettings) -> _Runtime:
    """Return what runs tools of a language here. Raises SandboxError where no sandbox is in force."""
    admitted = settings.backend, settings.minimum
    if mode == "typescript":
        sandbox = find_sandbox("typescript", *admitted)
        return _Runtime(sandbox, (os.fspath(_TYPESCRIPT),), environment={"NO_COLOR": "1"})
    try:
        sandbox = find_sandbox("program", *admitted)
    except SandboxError as none:
        return _pyodide(none, settings)
    return _Runtime(sandbox, (sys.executable, "-I", os.fspath(_PYTHON)), (_PYTHON,))


def _pyodide(none: SandboxError, settings: SandboxSettings) -> _Runtime:
    """Return what runs Python where no sandbox for programs is. Raises SandboxError, which says both reasons."""
    try:
        sandbox = find_sandbox("python", settings.backend, settings.minimum)
    except SandboxError as error:
        raise SandboxError(f"{none}; {error}", " ".join(dict.fromkeys((none.hint, error.hint)))) from None
    return _Runtime(sandbox, (os.fspath(_PYTHON),), start_seconds=_START_SECONDS_OF_PYODIDE)


def _confinement(
    runtime: _Runtime, permissions: ToolPermissions, workspace: Workspace, held: ExitStack
) -> tuple[Callable[[], Confinement], PrivateCopies | None]:
    """Return what makes the view of a run, and the copies of the folders that it may write in.

    Args:
        held: closes what the run needs open.

    Raises:
        DynamicToolError, SandboxError: it cannot be given what its permissions name.
    """
    readable, writable = permissions.places(workspace)
    environment, hosts = runtime.environment, permissions.hosts
    if not (readable or writable):
        return lambda: Confinement(_CHILDREN, runtime.readable, environment=environment, hosts=hosts), None
    for path in readable:
        if path.is_file() and workspace.decision(workspace.relative(path)) == "deny":
            raise DynamicToolError(
                f"A permission rule denies reading {workspace.relative(path)!r}.",
                "Name another file.",
                "E403",
            )
    seen = (*runtime.readable, *readable)
    folders = tuple(workspace.relative(path) for path in (*readable, *writable) if path.is_dir())

    def hidden() -> dict[Path, int]:
        return hidden_files(workspace, folders) if folders else {}

    try:
        root, *written = (
            held.enter_context(closing(HeldFolder(os.fspath(workspace.root), place)))
            for place in (".", *map(workspace.relative, writable))
        )
    except WorkspaceError as error:
        raise DynamicToolError(f"{error}.", "Look where the folder is now.", "E403") from None
    if not written:
        own = {workspace.root: root.descriptor}
        return lambda: Confinement(workspace.root, seen, (), hidden(), environment, hosts, own), None
    kept_back = [workspace.relative(path) for path in hidden()]
    copies = held.enter_context(closing(PrivateCopies(root, written, kept_back, view=runtime.sandbox.view)))
    copies.mirror([workspace.relative(path) for path in readable])
    return lambda: copies.confinement(".", seen, hidden(), environment, hosts), copies


class _Spoken:
    """What a run wrote: the texts of the tool, and the frame with what came of it.

    Attributes:
        on_begin: called when the code begins.
        begun: whether it may have begun.
    """

    def __init__(self, nonce: str, on_output: OnOutput | None) -> None:
        self.on_begin: Callable[[], None] = lambda: None
        self._first = f"{nonce}\n".encode()
        self._frame = f"\n{nonce}\n".encode()
        self._on_output = on_output
        self._head = bytearray()  # of standard output, until the first line was there
        self.begun = False
        self._kept = {"stdout": bytearray(), "stderr": bytearray()}
        self._sizes = {"stdout": 0, "stderr": 0}
        self._tail = bytearray()

    def hear(self, stream: str, piece: bytes) -> None:
        """Take what the run wrote on one of its streams."""
        if stream == "stdout" and not self.begun:
            self._head += piece
            if len(self._head) < len(self._first):
                return
            self.begun = True
            self.on_begin()
            piece = bytes(self._head).removeprefix(self._first)
        kept = self._kept[stream]
        kept += piece[: LARGEST_OUTPUT - len(kept)]
        self._sizes[stream] += len(piece)
        if stream == "stdout":
            self._tail += piece
            if len(self._tail) > 2 * _LARGEST_FRAME:
                del self._tail[:-_LARGEST_FRAME]
            if (at := piece.find(self._frame)) >= 0:
                piece = piece[:at]
        if self._on_output is not None and piece:
            self._on_output(stream, piece)

    def answer(self) -> bytes | None:
        """Return the frame's content, and forget it as text; None where none came."""
        at = self._tail.rfind(self._frame)
        if at < 0:
            return None
        framed = len(self._tail) - at
        answer = bytes(self._tail[at + len(self._frame) :])
        self._sizes["stdout"] -= framed
        del self._kept["stdout"][self._sizes["stdout"] :]
        self._tail.clear()
        return answer.partition(b"\n")[0]

    def text(self, stream: str) -> str:
        """Return what was kept of a stream."""
        return self._kept[stream].decode("utf-8", "replace")

    @property
    def truncated(self) -> bool:
        """True if the tool printed more than was kept."""
        return any(self._sizes[stream] > len(kept) for stream, kept in self._kept.items())

    def last_words(self) -> str:
        """Return what standard error says of the end of a run that gave no answer."""
        lines = self._kept["stderr"][-4_000:].decode("utf-8", "replace").strip().splitlines()
        told = [
            line for line in lines if line.startswith("error: ")
        ] or lines  # as Deno says it, before its trace
        return told[-1].removeprefix("error: ")[:300] if told else ""

    def says(self, words: Sequence[bytes]) -> bool:
        """Return whether one of some words stands in standard error."""
        return any(each in self._kept["stderr"] for each in words)


@dataclass(frozen=True)
class _Told:
    value: Any = None
    error: str | None = None
    kind: ErrorKind | None = None
    traceback: str = ""


async def _told(spoken: _Spoken, result: SandboxResult | None, seconds: float) -> _Told:
    if (answer := spoken.answer()) is not None:
        return await _answered(answer, () if result is None else result.refusals)
    if result is None:
        if not spoken.begun:
            return _Told(error="The sandbox did not start in time.", kind="timeout")
        return _Told(error=f"The tool took more than {seconds:g} seconds.", kind="timeout")
    if result.reason or result.returncode is None:
        kind: ErrorKind = "memory" if "of memory" in result.reason else "failed"
        if "seconds" in result.reason:
            kind = "timeout"
        return _Told(error=f"The tool was ended: it used {result.reason}.", kind=kind)
    if spoken.says(_OUT_OF_MEMORY):
        return _Told(error="The tool used more memory than it may.", kind="memory")
    code = result.returncode
    how = (
        f"signal {code - 128} ended its process" if code > 128 else f"its process ended with exit code {code}"
    )
    said = spoken.last_words()
    return _Told(error=f"The tool returned nothing: {how}{f' ({said})' if said else ''}.", kind="failed")


async def _answered(answer: bytes, refusals: Sequence[str]) -> _Told:
    try:
        told = (
            json.loads(answer) if len(answer) < _PARSED_HERE else await asyncio.to_thread(json.loads, answer)
        )
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or not told.keys() & {"value", "error"}:
        return _Told(error="What the tool returned was lost: something else wrote into it.", kind="failed")
    if "error" in told:
        kind: ErrorKind = "memory" if told.get("memory") else "refused" if told.get("refused") else "failed"
        trace, said = told.get("traceback"), str(told["error"])
        said += f" ({refusals[-1]})" if refusals else ""
        return _Told(error=said, kind=kind, traceback=trace if isinstance(trace, str) else "")
    value = told["value"]
    if isinstance(value, dict) and value.get("error"):
        said = value["error"]
        return _Told(value, said if isinstance(said, str) else json.dumps(said)[:2_000], "soft")
    return _Told(value)
