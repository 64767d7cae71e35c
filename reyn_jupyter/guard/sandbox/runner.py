"""Runs commands in a sandbox, under limits: bounded ones to their end, and programs that live as long as a session.

Invariants: a command that is returned from, cancelled, too late or too greedy has no process left. Its environment is
the one of its confinement, and it inherits no descriptor. Output beyond the bound is read and counted, never kept.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from reyn_jupyter.guard.sandbox.backend import Launch, SandboxBackend
from reyn_jupyter.guard.sandbox.confinement import (
    NOT_ENDED_HINT,
    Confinement,
    HostTraffic,
    PlacesMovedError,
    SandboxError,
    SandboxLimits,
    SandboxResult,
    Status,
    View,
)
from reyn_jupyter.guard.sandbox.process_tree import TreeMeter, kill_tree
from reyn_jupyter.guard.sandbox.visible_system import check_program

GRACE = 5.0  # seconds in which what was killed by force is gone
_LONGEST_END = 20.0  # seconds in which a killed command is gone; the launcher gives up well before
_PIECE = 1 << 16
_LOOK = 0.05  # seconds between two looks at what a command uses
_LOOK_AT_LONG_LIVED = 0.5  # the same for a program without a deadline
_LONGEST_LINE = 16 << 20  # bytes of one line from a program that is spoken with
_ATTEMPTS = 20  # to start a command while its places are moved
_DEFAULT = SandboxLimits()

# Hears what a command writes, as it comes: the stream ("stdout", "stderr") and the bytes.
OnOutput = Callable[[str, bytes], None]


class SandboxedProgram:
    """A program under way in a sandbox.

    Attributes:
        process: the asyncio process; its streams are the program's.
        backend, isolation: what holds it.
        exceeded: which limit ended it, as a clause; "" as long as none did.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        launch: Launch,
        backend: SandboxBackend,
        limits: SandboxLimits,
    ) -> None:
        self.process = process
        self.backend = backend.name
        self.isolation = backend.isolation
        self.exceeded = ""
        self._launch = launch
        self._limits = limits
        self._watch = asyncio.create_task(self._watch_usage()) if sys.platform == "linux" else None

    @property
    def network(self) -> tuple[tuple[HostTraffic, ...], tuple[str, ...]]:
        """What it exchanged with each host, and what it tried to reach in vain."""
        proxy = self._launch.proxy
        return ((), ()) if proxy is None else (proxy.traffic, proxy.refusals)

    @property
    def is_running(self) -> bool:
        """True until the program ended."""
        return self.process.returncode is None

    async def wait(self) -> int:
        """Wait for the end and return the code as a shell tells it: 128 and the number of the signal that ended it.

        Raises:
            SandboxError: as of `end`.
        """
        code = await self.process.wait()
        await self.end()
        return code if code >= 0 else 128 - code

    def kill(self) -> None:
        """Kill the program and all that it started, without waiting."""
        self._launch.end(self.process)

    async def end(self) -> None:
        """Kill the program and all that it started, wait until they are gone, and give back what was made for them.

        Raises:
            SandboxError: a process of it does not end, though it was killed.
        """
        if self._watch is not None:
            self._watch.cancel()
        try:
            if self.is_running:
                await self._kill_and_wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE):
                    await self._launch.wait_until_gone()
        finally:
            self._launch.close()

    async def _kill_and_wait(self) -> None:
        """Kill the program as its sandbox does, and by force where that takes too long."""
        self.kill()
        try:
            async with asyncio.timeout(_LONGEST_END):
                await self.process.wait()
        except TimeoutError:
            kill_tree(self.process.pid)
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE):
                    await self.process.wait()
            if self.is_running:
                raise SandboxError(
                    f"the command's process {self.process.pid} has not ended, though it was killed",
                    NOT_ENDED_HINT,
                    began=True,
                ) from None

    async def _watch_usage(self) -> None:
        """End the program when all of its processes together use too much."""
        meter = TreeMeter(self.process.pid)
        while self.is_running and not self.exceeded:
            await asyncio.sleep(_LOOK if self._limits.seconds is not None else _LOOK_AT_LONG_LIVED)
            if self.is_running:
                self.exceeded = self._excess(meter)
        if self.is_running:
            with suppress(SandboxError):  # its owner hears of it
                await self._kill_and_wait()

    def _excess(self, meter: TreeMeter) -> str:
        """Return which limit is exceeded, as a clause; "" where none is."""
        limits = self._limits
        try:
            used = meter.usage()
        except OSError as error:  # what cannot be counted is not let run
            return f"what cannot be counted ({error.strerror or type(error).__name__})"
        for much, most, what in (
            (used.processes, limits.processes + 2, f"more than {limits.processes} processes and threads"),
            (used.memory, limits.memory, f"more than {limits.memory >> 20:,} MiB of memory"),
            (used.cpu, limits.cpu_seconds, f"more than {limits.cpu_seconds:,} seconds of processor time"),
            (used.written, limits.written_bytes, f"more than {limits.written_bytes >> 20:,} MiB written"),
        ):
            if much > most:
                return what
        return ""


class Sandbox:
    """A sandbox that was found to isolate; see `find_sandbox`.

    Args:
        backend: what isolates.

    Attributes:
        has_left_processes: a command of it has not ended, though it was killed.

    Example:
        >>> async def version() -> bytes:
        ...     sandbox = find_sandbox()
        ...     done = await sandbox.run(["python", "--version"], Confinement(Path("/usr")))
        ...     return done.stdout
        >>> asyncio.run(version()).startswith(b"Python")
        True
    """

    def __init__(self, backend: SandboxBackend) -> None:
        self._backend = backend
        self.has_left_processes = False
        self._programs: set[SandboxedProgram] = set()

    @property
    def name(self) -> str:
        """The backend's name, as settings have it."""
        return self._backend.name

    @property
    def isolation(self) -> str:
        """What is kept apart, in a sentence."""
        return self._backend.isolation

    @property
    def view(self) -> View:
        """What a command gets at a path, see `SandboxBackend`."""
        return self._backend.view

    async def run(
        self,
        argv: Sequence[str],
        confinement: Confinement | Callable[[], Confinement],
        limits: SandboxLimits = _DEFAULT,
        *,
        stdin: bytes = b"",
        on_output: OnOutput | None = None,
    ) -> SandboxResult:
        """Run a command to its end and return what it wrote. A cancellation ends it, and all that it started.

        Args:
            argv: the program and its arguments; no shell reads them.
            confinement: what it may reach; or what makes that, in a thread, again if a place of it was moved while the
                sandbox started.
            limits: what it may use.
            stdin: what it reads from its standard input.
            on_output: hears what it writes as it comes, on the loop.

        Raises:
            SandboxError: the command could not be started, or something of it does not end.
        """
        began = time.monotonic()
        program = await self._opened(argv, confinement, limits)
        process = program.process
        out = _Collected("stdout", limits.output, on_output)
        errors = _Collected("stderr", limits.output, on_output)
        timed_out = interrupted = False
        code: int | None = None
        streams = asyncio.gather(
            _feed(process, stdin), out.read_from(process.stdout), errors.read_from(process.stderr)
        )
        try:
            async with asyncio.timeout(limits.seconds):
                code = await program.wait()
                await streams
        except TimeoutError:
            timed_out = True
        except asyncio.CancelledError:
            interrupted = True
            raise
        finally:
            try:
                await program.end()
            except SandboxError:
                self.has_left_processes = True
                # In place of the interrupt it would let who was interrupted go on: with the next action or step.
                if not interrupted:
                    raise
            finally:
                self._programs.discard(program)
                await _settle(streams)
        ended = timed_out or bool(program.exceeded)
        reason = program.exceeded or (f"more than {limits.seconds:g} seconds" if timed_out else "")
        status: Status = (
            "limit" if program.exceeded else "timeout" if timed_out else "failed" if code else "ok"
        )
        return SandboxResult(
            status, self.name, self.isolation, None if ended else code, bytes(out.kept), bytes(errors.kept),
            out.size, errors.size, reason, time.monotonic() - began, *program.network,
        )  # fmt: skip

    async def _opened(
        self,
        argv: Sequence[str],
        confinement: Confinement | Callable[[], Confinement],
        limits: SandboxLimits,
    ) -> SandboxedProgram:
        if isinstance(confinement, Confinement):
            return await self.open(argv, confinement, limits)
        for _ in range(_ATTEMPTS - 1):
            with suppress(PlacesMovedError):
                return await self.open(argv, await asyncio.to_thread(confinement), limits)
        return await self.open(argv, await asyncio.to_thread(confinement), limits)

    async def open(
        self, argv: Sequence[str], confinement: Confinement, limits: SandboxLimits = _DEFAULT
    ) -> SandboxedProgram:
        """Start a program and return it with pipes to its three streams; its owner ends it.

        It ends too with this process, when all of it uses more than `limits` say, and with `close`. Their wall time is
        its owner's business.

        Raises:
            SandboxError: the program could not be started.
        """
        if self._backend.language == "program":
            check_program(argv, confinement)
        launch = self._backend.launch(argv, confinement, limits)
        starting = asyncio.ensure_future(self._begun(launch, limits))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            # bubblewrap that is killed while it makes a sandbox leaves a process: making one is short, and waited for.
            with suppress(SandboxError):
                await (await starting).end()
            raise

    async def _begun(self, launch: Launch, limits: SandboxLimits) -> SandboxedProgram:
        """Start a launch and let its command begin. Raises SandboxError."""
        process = await _started(launch)
        program = SandboxedProgram(process, launch, self._backend, limits)
        self._programs = {each for each in self._programs if each.is_running} | {program}
        try:
            await launch.release(process)
        except SandboxError as error:
            said = await _last_words(process)
            await program.end()
            raise type(error)(f"{error}: {said}" if said else str(error), error.hint) from None
        return program

    @property
    def is_idle(self) -> bool:
        """True if nothing runs in it."""
        return not any(each.is_running for each in self._programs)

    async def close(self) -> None:
        """End everything that runs in it, and wait until it is gone."""
        programs, self._programs = self._programs, set()
        await asyncio.gather(*(program.end() for program in programs))


class _Collected:
    """One stream of a command: its beginning, and how much it was."""

    def __init__(self, name: str, most: int, on_output: OnOutput | None) -> None:
        self.kept = bytearray()
        self.size = 0
        self._name = name
        self._most = most
        self._on_output = on_output

    async def read_from(self, stream: asyncio.StreamReader | None) -> None:
        assert stream is not None
        while piece := await stream.read(_PIECE):
            self.size += len(piece)
            self.kept += piece[: self._most - len(self.kept)]
            if self._on_output is not None:
                self._on_output(self._name, piece)


async def _started(launch: Launch) -> asyncio.subprocess.Process:
    """Start the process of a launch, on the loop's own thread: bubblewrap ends with the thread that started it."""
    try:
        return await asyncio.create_subprocess_exec(
            *launch.argv, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, env=launch.env, cwd=launch.cwd, pass_fds=launch.descriptors,
            start_new_session=True, limit=_LONGEST_LINE,
        )  # fmt: skip
    except OSError as error:
        launch.close()
        raise SandboxError(f"the sandbox could not be started: {error.strerror or error}") from None
    finally:
        for descriptor in launch.descriptors:
            os.close(descriptor)


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin is not None
    with suppress(ConnectionError):  # it does not read
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


async def _settle(streams: asyncio.Future[tuple[None, None, None]]) -> None:
    """Wait for the rest of what a command wrote, which ends with its processes."""
    with suppress(TimeoutError, asyncio.CancelledError):
        async with asyncio.timeout(GRACE):
            await streams


async def _last_words(process: asyncio.subprocess.Process) -> str:
    """Return the end of what a sandbox said that could not be made."""
    assert process.stderr is not None
    with suppress(TimeoutError):
        async with asyncio.timeout(GRACE):
            said = (await process.stderr.read(_PIECE)).decode("utf-8", "replace").strip()
            return said.splitlines()[-1][:300] if said else ""
    return ""
