"""Sessions with MCP servers, closed when their test is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.runtime.access.mcp_access import McpServer, McpServerList


@pytest.fixture
def make(workspace: Path) -> Iterator[Callable[..., reyn.Session]]:
    """Makes sessions with these servers, and closes them."""
    made: list[reyn.Session] = []

    def session(*servers: McpServer, **options: Any) -> reyn.Session:
        source = McpServerList(servers)
        made.append(reyn.Session(workspace, store="memory", namespace={}, mcp_servers=source, **options))
        return made[-1]

    yield session
    for each in made:
        each.close()
