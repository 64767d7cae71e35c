"""What every test gets: a workspace of its own, and a state folder that is not the person's."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
settings.register_profile("whatever the machine does besides", deadline=None)  # no test asserts speed
settings.load_profile("whatever the machine does besides")

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # as a shell leaves it to what it runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust, approvals and the user's configuration lie in a temporary folder."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("REYN_STATE_DIR", str(folder / "state"))
    monkeypatch.setenv("REYN_CONFIG_DIR", str(folder / "config"))


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Path]:
    """A small workspace: a text, a table, a folder."""
    folder = tmp_path / "workspace"
    (folder / "data").mkdir(parents=True)
    (folder / "notes.txt").write_text("first line\nsecond line\nthird line\n")
    (folder / "data" / "orders.csv").write_text("region,value\nnorth,10\nsouth,20\nnorth,30\n")
    yield folder
