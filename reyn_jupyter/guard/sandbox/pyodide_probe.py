"""Tries to get out of Pyodide, by Python and by JavaScript; run in it by its path, never imported."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable

import js  # type: ignore[import-not-found] # Pyodide's

canary = sys.argv[1]


def allowed(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except Exception:  # noqa: BLE001 - whatever it is, it was held
        return False
    return True


attempts = (
    ("reads outside", lambda: open(canary).read()),  # noqa: PTH123, SIM115
    ("reads outside by JavaScript", lambda: js.Deno.readTextFileSync(canary)),
    ("writes outside by JavaScript", lambda: js.Deno.writeTextFileSync(canary + ".new", "out")),
    ("starts programs", lambda: subprocess.run(["true"], check=True)),  # noqa: S607
    ("starts programs by JavaScript", lambda: js.Deno.Command.new("true").outputSync()),
    ("reads the environment by JavaScript", lambda: js.Deno.env.toObject()),
    ("connects", lambda: socket.create_connection(("127.0.0.1", 1), 1)),
    ("listens by JavaScript", lambda: js.Deno.listen(js.JSON.parse('{"port": 0}'))),
    ("reads its own code by JavaScript", lambda: js.Deno.readTextFileSync(sys.argv[0])),
    ("signals", lambda: os.kill(int(sys.argv[2]), 0)),
)
sys.stdout.write(", ".join(name for name, attempt in attempts if allowed(attempt)) or "isolated")
