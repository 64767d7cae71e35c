"""An unexpected exception in the process that runs SQL is an answer that names it, and the process goes on."""

from __future__ import annotations

from reyn_jupyter.backends.sql.sql_child import SqlServer
from reyn_jupyter.support.programs.child_process import ChildMessage


def test_an_unexpected_exception_is_named_and_the_next_request_is_answered() -> None:
    server = SqlServer("64MB")
    failed = server.answer(ChildMessage({"sql": "SELECT 1", "rows": 1, "tables": [], "files": []}))
    assert "ValueError" in failed.header["error"]
    assert "memory" not in failed.header["error"]
    assert "kind" in server.answer(ChildMessage({"check": "SELECT 1"})).header
