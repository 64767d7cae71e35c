"""Sessions with MCP servers, closed when their test is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import reyn_jupyter as reyn
from tests.support.mcp_servers import mcp_sessions


@pytest.fixture
def make(workspace: Path) -> Iterator[Callable[..., reyn.Session]]:
    """Makes sessions with these servers, and closes them."""
    with mcp_sessions(workspace) as sessions:
        yield sessions
