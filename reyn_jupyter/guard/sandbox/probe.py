"""The probe of a sandbox: a small program that tries to get out, run for real before a sandbox is relied on."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from reyn_jupyter.guard.sandbox.backend import Launch
from reyn_jupyter.guard.sandbox.confinement import SandboxError

_SECONDS = 20.0  # on a busy machine
ATTEMPTS = """
import os, socket, sys
canary, parent = sys.argv[1], int(sys.argv[2])
def allowed(attempt):
    try:
        attempt()
    except (OSError, ValueError):
        return False
    return True
out = [name for name, attempt in (
    ("reads outside", lambda: open(canary).read()),
    ("writes outside", lambda: open(os.path.join(os.path.dirname(canary), "new"), "w").close()),
    ("signals its parent", lambda: os.kill(parent, 0)),
    ("writes settings of the system", lambda: os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)),
    ("has sockets of the machine", lambda: socket.socket(socket.AF_UNIX)),
    ("keeps descriptors", lambda: os.listdir("/proc/self/fd").index("3") if len(os.listdir("/proc/self/fd")) > 4
        else (_ for _ in ()).throw(OSError())),
) if allowed(attempt)]
print(", ".join(out) or "isolated")
"""


def probe_problem(make: Callable[[Sequence[str]], Launch], seconds: float = _SECONDS) -> str | None:
    """Return what a sandbox does not hold back, or why it does not start, as a clause; None where it isolates.

    Args:
        make: gives the launch of a command, confined to nothing but the system's programs.
        seconds: in which it must have ended.
    """
    with tempfile.TemporaryDirectory(prefix="reyn-probe-") as folder:
        canary = Path(folder, "canary")
        canary.write_text("outside", encoding="ascii")
        command = (sys.executable, "-I", "-S", "-c", ATTEMPTS, os.fspath(canary), str(os.getpid()))
        try:
            launch = make(command)
        except (OSError, SandboxError) as error:
            return str(error)
        try:
            launch.begin()
            done = subprocess.run(  # noqa: S603 - our own words
                launch.argv,
                env=launch.env, cwd=launch.cwd, pass_fds=launch.descriptors, stdin=subprocess.DEVNULL,
                capture_output=True, timeout=seconds, start_new_session=True, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"it does not start ({type(error).__name__})"
        finally:
            for descriptor in launch.descriptors:
                os.close(descriptor)
            launch.close()
    said = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode == 0 and said == "isolated":
        return None
    words = (
        said or done.stderr.decode("utf-8", "replace").strip() or f"it ended with {done.returncode}"
    ).splitlines()
    return words[-1][:300]
