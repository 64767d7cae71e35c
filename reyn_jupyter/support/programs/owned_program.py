"""Programs that a session starts and that never outlive it.

Invariants: a program gets the few variables of the environment that most need, and what its caller gives it, never the
secrets of this process. It works in an empty folder unless its caller names another one, and is not looked for in an
untrusted folder, see `program_search`. It is the leader of a process group of its own, which ends as a whole: when the
session does, and when this process dies, even by SIGKILL. A process that leaves the group (a daemon) is not followed.

Between this process and the program stands a small one that holds the end of a pipe. When the other end closes, however
that comes, it asks the group to end, and kills what is left after `GRACE` seconds. POSIX alone.
"""

from __future__ import annotations

import asyncio
import os
import sys
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from reyn_jupyter.support.programs.program_search import find_program, neutral_folder, program_environment
from reyn_jupyter.support.secret import Secret

GRACE = 2.0  # seconds between the request to end and the kill
_KEPT = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
_WARDEN = f"""
import os, signal, subprocess, sys, threading, time
life = int(sys.argv[1])
try:
    program = subprocess.Popen(sys.argv[2:], start_new_session=True)
except OSError as error:
    sys.exit(f"{{sys.argv[2]}} could not be started: {{error.strerror}}")
for descriptor in (0, 1, 2):
    os.close(descriptor)
def signal_group(number):
    try:
        os.killpg(program.pid, number)
    except OSError:
        pass
def watch():
    while True:
        try:
            os.read(life, 1)
            break
        except InterruptedError:
            pass
    signal_group(signal.SIGTERM)
    time.sleep({GRACE})
    signal_group(signal.SIGKILL)
threading.Thread(target=watch, daemon=True).start()
code = program.wait()
signal_group(signal.SIGKILL)
os._exit(code if code >= 0 else 128 - code)
"""


class OwnedProgram:
    """A program under way.

    Attributes:
        process: the asyncio process with its streams. Its `pid` and its `returncode` are those of the small process
            between (128 and the signal's number for a program that a signal ended).
    """

    def __init__(self, process: asyncio.subprocess.Process, life: int) -> None:
        self.process = process
        self.let_go = weakref.finalize(self, os.close, life)

    async def end(self) -> None:
        """End the program and its group, and wait until they are gone."""
        self.let_go()
        try:
            async with asyncio.timeout(2 * GRACE):
                await self.process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self.process.kill()


class OwnedPrograms:
    """The programs of one session.

    Example:
        >>> async def version() -> bytes:
        ...     program = await OwnedPrograms().start([sys.executable, "--version"])
        ...     return (await program.process.communicate())[0]
        >>> asyncio.run(version()).startswith(b"Python")
        True
    """

    def __init__(self) -> None:
        self._programs: set[OwnedProgram] = set()

    async def start(
        self, argv: Sequence[str], *, env: Mapping[str, str | Secret] | None = None, cwd: Path | None = None
    ) -> OwnedProgram:
        """Start a program with pipes to its three streams.

        Args:
            argv: the program and its arguments; no shell reads them. A command is looked for in PATH, but not in
                untrusted folders, see `program_search`.
            env: variables beside HOME, LANG, PATH and the like; a secret stands in this environment alone.
            cwd: the folder that it works in; an empty one when None.

        Returns:
            The program. One that cannot be started ends at once, and says why on its standard error.

        Raises:
            OSError: no process can be made, or the folder is none.
        """
        own = {
            name: each.reveal() if isinstance(each, Secret) else each for name, each in (env or {}).items()
        }
        variables = {name: os.environ[name] for name in _KEPT if name in os.environ} | own
        environment = program_environment(argv, variables, cwd)
        program = find_program(argv[0], environment["PATH"]) or argv[0]
        reading, writing = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", "-c", _WARDEN, str(reading), program, *argv[1:],
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
                env=environment, cwd=cwd or neutral_folder(), pass_fds=(reading,), start_new_session=True,
            )  # fmt: skip
        except BaseException:
            os.close(writing)  # a process that was made all the same ends with it
            raise
        finally:
            os.close(reading)
        owned = OwnedProgram(process, writing)
        self._programs = {each for each in self._programs if each.process.returncode is None} | {owned}
        _living.add(owned)
        return owned

    @property
    def is_idle(self) -> bool:
        """True if no program runs."""
        return all(each.process.returncode is not None for each in self._programs)

    async def close(self) -> None:
        """End them all, and wait until they are gone."""
        programs, self._programs = self._programs, set()
        await asyncio.gather(*(program.end() for program in programs))


_living: weakref.WeakSet[OwnedProgram] = weakref.WeakSet()


def _forget_in_fork() -> None:
    """Close the pipes in a fork of this process, which would keep the programs alive."""
    for program in list(_living):
        program.let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_fork)
