"""A category of another package, with a program and a server of its own, through the faults that it can meet."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Entry
from reyn_jupyter.runtime.engine import Interrupted
from reyn_jupyter.runtime.live_catalog import backoff
from reyn_jupyter.sessions.assembly import ENGINE
from tests.support import station
from tests.support.processes import is_gone, started
from tests.support.station import COUNTS, FAULTS, SCHEMA, Station
from tests.support.waiting import clock_of, until


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # What is not to be tried again yet is not, however slow the machine.
    monkeypatch.setattr(backoff, "FIRST", 100.0)
    station.reset()
    yield
    station.reset()


@pytest.fixture
def clock() -> Iterator[Callable[[float], None]]:
    """Puts the engine's clock forward."""
    with clock_of(ENGINE.loop) as advance:
        yield advance


def session_of(workspace: Path, *stations: Station, live: bool = True) -> reyn.Session:
    made = reyn.Session(workspace, store="memory", categories=[each.category(live=live) for each in stations])
    for each in stations:
        each.services = made.parts.services
    return made


@pytest.fixture
def one(workspace: Path) -> Iterator[tuple[reyn.Session, Station]]:
    unit = Station(None)  # type: ignore[arg-type]
    session = session_of(workspace, unit)
    yield session, unit
    session.close()


def names(session: reyn.Session) -> list[str]:
    return [row["qualified_name"] for row in session.list_actions()]


def pid_of(unit: Station) -> int:
    assert unit.program is not None
    return unit.program.process.pid


def fails() -> Any:
    raise RuntimeError("no line to the station")


async def fail() -> None:
    fails()


async def hang() -> None:
    await asyncio.Event().wait()


def test_it_starts_once_before_its_first_use_and_closes_with_the_session(
    one: tuple[reyn.Session, Station],
) -> None:
    session, unit = one
    assert COUNTS["started"] == 0
    assert names(session) == ["station__all", "station__oslo", "station__rome"]
    assert session.invoke_action("station__oslo").value["stations"] == "oslo rome"
    assert session.invoke_action("station__all").ok
    assert (COUNTS["started"], COUNTS["closed"]) == (1, 0)
    pid = pid_of(unit)
    session.close()
    assert COUNTS["closed"] == 1 and is_gone(pid)
    assert session.invoke_action("station__oslo").error is None
    assert COUNTS["started"] == 2


def test_operations_alone_start_with_the_first_call_and_one_start_serves_calls_side_by_side(
    workspace: Path,
) -> None:
    unit = Station(None)  # type: ignore[arg-type]
    session = session_of(workspace, unit, live=False)
    assert names(session) == ["station__all"]
    assert COUNTS["started"] == 0

    async def twice() -> list[Any]:
        return await asyncio.gather(*(session.aio.invoke_action("station__all") for _ in range(2)))

    assert [result.error for result in ENGINE.run(twice())] == [None, None]
    assert COUNTS["started"] == 1
    session.close()


def test_a_reset_closes_it_and_the_next_use_starts_it_again(one: tuple[reyn.Session, Station]) -> None:
    session, unit = one
    names(session)
    pid = pid_of(unit)
    session.reset()
    assert COUNTS["closed"] == 1 and is_gone(pid)
    assert session.invoke_action("station__rome").error is None
    assert COUNTS["started"] == 2


def test_a_start_that_fails_leaves_it_out_with_its_reason_until_the_next_try(
    one: tuple[reyn.Session, Station], clock: Callable[[float], None]
) -> None:
    session, unit = one
    FAULTS.start = fail
    assert names(session) == []
    assert "no line to the station" in " ".join(session.problems)
    assert is_gone(pid_of(unit))  # what was half there is closed
    names(session)
    assert COUNTS["started"] == 1
    FAULTS.start = station.nothing
    clock(200)
    assert len(names(session)) == 3
    assert COUNTS["started"] == 2 and session.problems == ()


def test_the_waits_between_the_tries_grow(
    one: tuple[reyn.Session, Station], clock: Callable[[float], None]
) -> None:
    session, _ = one
    FAULTS.start = fail
    tries = []
    for _ in range(4):
        names(session)
        tries.append(COUNTS["started"])
        clock(160)
    assert tries[0] == 1 and tries[-1] < 4


def test_an_interrupt_in_the_middle_of_a_start_ends_what_it_began(
    one: tuple[reyn.Session, Station],
) -> None:
    session, unit = one
    begun = threading.Event()

    async def begin() -> None:
        begun.set()
        await hang()

    FAULTS.start = begin

    def interrupt() -> None:
        begun.wait(60)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(Interrupted):
        session.list_actions()
    thread.join()
    assert COUNTS["closed"] == 1 and is_gone(pid_of(unit))
    FAULTS.start = station.nothing
    assert len(names(session)) == 3  # an interrupt is no failure: there is nothing to wait for


def test_a_reset_in_the_middle_of_a_start_ends_it_and_the_call_says_so(workspace: Path) -> None:
    unit = Station(None)  # type: ignore[arg-type]
    session = session_of(workspace, unit, live=False)
    begun = threading.Event()

    async def begin() -> None:
        begun.set()
        await hang()

    FAULTS.start = begin
    job = ENGINE.start(session.aio.invoke_action("station__all"))
    assert begun.wait(60)
    session.reset()
    assert "was closed while it started" in str(job.future.result(60).error)
    assert COUNTS["closed"] == 1 and is_gone(pid_of(unit))
    FAULTS.start = station.nothing
    assert session.invoke_action("station__all").ok
    session.close()


def test_a_close_that_hangs_or_raises_is_bounded_and_named(
    one: tuple[reyn.Session, Station], monkeypatch: pytest.MonkeyPatch
) -> None:
    from reyn_jupyter.runtime.live_catalog import category_lifecycle

    monkeypatch.setattr(category_lifecycle, "CLOSE_SECONDS", 0.1)
    session, unit = one
    for fault, said in ((hang, "longer than"), (fail, "no line")):
        names(session)
        session.invoke_action("station__all")
        FAULTS.close = fault
        session.close()
        assert said in " ".join(session.problems)
        assert is_gone(pid_of(unit))  # the session ends its programs itself


def test_a_source_that_hangs_is_waited_for_once_and_then_backs_off_while_its_entries_are_stale(
    one: tuple[reyn.Session, Station], clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from reyn_jupyter.runtime.live_catalog import catalog_cache

    session, _ = one
    assert len(names(session)) == 3
    patience = catalog_cache.SECONDS
    monkeypatch.setattr(catalog_cache, "SECONDS", 0.1)
    FAULTS.entries = hang
    session.parts.services.changed("station")
    assert len(names(session)) == 3
    assert "stale" in " ".join(session.problems) and "no answer" in " ".join(session.problems)
    for _ in range(3):
        session.list_actions()
    assert COUNTS["listed"] == 2
    FAULTS.entries = station.nothing
    monkeypatch.setattr(catalog_cache, "SECONDS", patience)
    clock(200)
    names(session)
    assert COUNTS["listed"] == 3 and session.problems == ()


def test_sources_are_read_side_by_side(workspace: Path) -> None:
    units = [Station(None, name) for name in ("north", "south")]  # type: ignore[arg-type]
    session = session_of(workspace, *units)
    here: list[int] = []
    both = asyncio.Event()

    async def meet() -> None:
        here.append(1)
        if len(here) == 2:
            both.set()
        await both.wait()

    FAULTS.entries = meet
    assert len(names(session)) == 6 and session.problems == ()
    session.close()


def test_one_bad_entry_is_left_out_alone_with_its_reason(one: tuple[reyn.Session, Station]) -> None:
    session, _ = one
    FAULTS.more = [
        Entry("bad\n", "x", SCHEMA),
        Entry("oslo", "again", SCHEMA),
        5,
        Entry("paris", "x", SCHEMA),
    ]
    assert names(session) == ["station__all", "station__oslo", "station__paris", "station__rome"]
    (problem,) = session.problems
    assert "3 of its entries" in problem and "'oslo' is there twice" in problem


UNUSABLE = [
    ({"$ref": "https://example.org/a.json"}, "refers to 'https://example.org/a.json'"),
    ({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}, "refers to '#/$defs/none'"),
    ({"type": "object", "properties": {"a": {"allOf": [{"$ref": "#/properties/a"}]}}}, "refers to itself"),
    ({"type": "object", "minProperties": "x"}, "no sound JSON Schema"),
    ({"$schema": "urn:nope", "type": "object"}, "the dialect 'urn:nope'"),
]


@pytest.mark.parametrize(("schema", "reason"), UNUSABLE)
def test_an_entry_with_a_schema_from_elsewhere_that_can_hold_no_arguments_is_left_out_alone(
    one: tuple[reyn.Session, Station], schema: dict[str, Any], reason: str
) -> None:
    session, _ = one
    good = Entry("good", "Good.", {"type": "object"}, open_schema=True)
    FAULTS.more = [good, Entry("bad", "Bad.", schema, open_schema=True)]
    assert names(session) == ["station__all", "station__good", "station__oslo", "station__rome"]
    (problem,) = session.problems
    assert "1 of its entries: the input schema of 'bad'" in problem and reason in problem
    FAULTS.more = [good]
    session.parts.services.changed("station")
    assert len(names(session)) == 4 and session.problems == ()


def test_a_push_is_seen_by_the_next_listing_whatever_the_revision_says(
    one: tuple[reyn.Session, Station],
) -> None:
    session, _ = one
    names(session)
    FAULTS.more = [Entry("paris", "The weather of Paris.", SCHEMA)]
    assert "station__paris" not in names(session)
    session.parts.services.changed("station")
    assert "station__paris" in names(session)


def test_a_hidden_category_is_not_started_and_says_why_to_people_alone(
    one: tuple[reyn.Session, Station],
) -> None:
    session, _ = one
    FAULTS.hidden = "No antenna is attached."
    table = session.list_actions()
    assert len(table) == 0 and table.hidden == {"station": "No antenna is attached."}
    assert COUNTS["started"] == 0
    assert "No antenna" in str(session.describe_action("station__all").payload)
    assert "No antenna" in str(session.invoke_action("station__all").payload)
    assert "No antenna" not in str(table.payload)
    FAULTS.hidden = None
    assert len(names(session)) == 3


KILLED = """
    import sys
    from pathlib import Path
    import reyn_jupyter as reyn
    from tests.support.station import Station
    unit = Station(None)
    session = reyn.Session(Path(sys.argv[1]), store="memory", categories=[unit.category()])
    unit.services = session.parts.services
    session.list_actions()
    print(unit.program.process.pid, flush=True)
    import psutil
    print(*[each.pid for each in psutil.Process().children(recursive=True)], flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("end", ["kill -9", "exit"])
def test_a_kernel_that_is_killed_or_exits_leaves_no_process_behind(workspace: Path, end: str) -> None:
    kernel = started(KILLED, str(workspace))
    assert kernel.stdout is not None
    kernel.stdout.readline()
    pids = [int(pid) for pid in kernel.stdout.readline().split()]
    assert len(pids) >= 2
    if end == "exit":
        kernel.communicate("\n", timeout=600)
    else:
        kernel.kill()
        kernel.wait(60)
    until(lambda: all(map(is_gone, pids)))


CLOSED = """
    import asyncio, sys
    from pathlib import Path
    import reyn_jupyter as reyn
    from reyn_jupyter.catalog.action import Category, Operation, Purity, Tool
    from reyn_jupyter.runtime.live_catalog import category_lifecycle
    from reyn_jupyter.sessions import exit
    exit.SECONDS = category_lifecycle.CLOSE_SECONDS = 100.0
    async def close():
        await asyncio.to_thread(print, "closed", flush=True)
    async def go(args, context):
        return 1
    go = Operation("go", "Go.", {"type": "object"}, Tool("go", go, Purity.PURE))
    session = reyn.Session(Path(sys.argv[1]), store="memory", categories=[Category("lab", "x", (go,), close=close)])
    print(session.invoke_action("lab__go").value, flush=True)
"""


def test_the_exit_of_the_interpreter_awaits_the_close_which_may_use_threads(workspace: Path) -> None:
    kernel = started(CLOSED, str(workspace))
    out, err = kernel.communicate(timeout=600)
    assert out.split() == ["1", "closed"], err
