"""One kernel for each test file, in a workspace of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernel.kernel_support import Kernel

ORDERS = "region,value\n" + "".join(f"north,{number}\nsouth,{2 * number}\n" for number in range(300))


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    folder = tmp_path_factory.mktemp("kernel")
    workspace = folder / "workspace"
    (workspace / "data").mkdir(parents=True)
    (workspace / "notes.txt").write_text("first line\nsecond line\nthird line\n")
    (workspace / "data" / "orders.csv").write_text(ORDERS)
    kernel = Kernel(workspace, folder).prepare()
    yield kernel
    kernel.stop()


@pytest.fixture
def kernel(started: Kernel) -> Kernel:
    """The file's kernel, with a fresh conversation, no approvals and a model that answers nothing."""
    (started.workspace / "new.txt").unlink(missing_ok=True)
    reset = "session = reyn.session()\nsession.reset()\nsession.parts.approvals.clear()\nsays()"
    assert started.run(reset).error is None
    started.forget()
    return started


@pytest.fixture
def workspace(started: Kernel) -> Path:
    return started.workspace
