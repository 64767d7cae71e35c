"""What every test gets: a workspace of its own, a state folder that is not the person's, and the mark of its part.

A part is a folder: `make browser-test` runs tests/browser, `make unit` what is in no other part.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal import lambda_sources

# Compiled modules are kept, whatever the shell says: tests start hundreds of processes, which would compile all again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Altair loads jsonschema, and that a grammar of addresses, for two seconds; no test checks a format of addresses.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# No test asserts speed, neither its own nor that of making its data, nor the luck of its draw. A test that lists health
# checks of its own lists them all: its list takes the place of this one.
settings.register_profile(
    "whatever the machine does besides",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
settings.load_profile("whatever the machine does besides")


class LoadedModules:
    """Stands for `sys` where Hypothesis describes a lambda: it reads `sys.modules` while other threads import."""

    @property
    def modules(self) -> dict[str, ModuleType]:
        return sys.modules.copy()


lambda_sources.sys = LoadedModules()


class Loggers(dict[str, Any]):
    """The loggers by name: pytest goes through them before each test, while other threads make new ones."""

    def values(self) -> Any:
        return list(super().values())


logging.Logger.manager.loggerDict = Loggers(logging.Logger.manager.loggerDict)

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # as a shell leaves it to what it runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Folder and part, in the order in which they run: what takes longest begins first, so that no worker ends on it alone.
PARTS = {"browser": "browser", "notebooks": "notebook", "kernel": "kernel", "labextension": "frontend"}
UNIT = "unit"


def part_of(nodeid: str) -> str:
    """Return the part of the run that a test belongs to."""
    folders = PurePosixPath(nodeid.partition("::")[0]).parts
    return PARTS.get(folders[1], UNIT) if len(folders) > 1 and folders[0] == "tests" else UNIT


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(part_of(item.nodeid))
    order = [*PARTS.values(), UNIT]
    items.sort(key=lambda item: order.index(part_of(item.nodeid)))


def pytest_collection_finish() -> None:
    # A million objects of the collected tests stay to the end: no collection of garbage looks at them again.
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print a line for each part, where the run had more than one."""
    results: dict[str, Counter[str]] = {}
    seconds: Counter[str] = Counter()
    for outcome, reports in terminalreporter.stats.items():
        for report in reports:
            if isinstance(report, pytest.TestReport | pytest.CollectReport):
                part = part_of(report.nodeid)
                seconds[part] += getattr(report, "duration", 0.0)
                if outcome:  # a set-up that went well is counted under no name
                    results.setdefault(part, Counter())[outcome] += 1
    if len(results) > 1:
        terminalreporter.section("parts; seconds added up over all workers")
        for part, counts in sorted(results.items()):
            said = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
            terminalreporter.line(f"{part:<10} {seconds[part]:>7.0f} s  {said}")


@pytest.fixture(scope="session")
def state_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders to come, one a test; `mktemp` reads the names of all that there are before it makes another."""
    above = tmp_path_factory.mktemp("states")
    return (above / str(number) for number in count(1))


@pytest.fixture(autouse=True)
def own_state(state_folders: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust, approvals and the user's configuration lie in a temporary folder."""
    folder = next(state_folders)
    folder.mkdir()
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
