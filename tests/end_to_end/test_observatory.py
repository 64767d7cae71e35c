"""The observatory of the manual, installed as a package: one category that uses all of the seam, through a session."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import reyn_jupyter as reyn
from reyn_jupyter.categories import packages
from reyn_jupyter.models.base import Request
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.runtime.record.events import ActionFinished, ActionProgressed, ActionResolved
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.sessions.assembly import ENGINE
from tests.support.courier import PageServer, Redirect
from tests.support.installation import import_place, install_project
from tests.support.processes import is_gone, started
from tests.support.waiting import PATIENCE, clock_of, until

PROJECT = Path(__file__).parents[1] / "support" / "observatory"
KEY, SITE = "OBSERVATORY_KEY", "OBSERVATORY_SITE"
VALUE = "ada-counts-the-stars"
M31, M42 = [10.7, 41.3], [83.8, -5.4]
TELESCOPE = "observatory__telescope"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder that the package is installed in, on the import path."""
    folder = tmp_path_factory.mktemp("site")
    install_project(PROJECT, folder)
    with import_place(folder):
        yield folder
    for name in [each for each in sys.modules if each.partition(".")[0] == "reyn_observatory"]:
        del sys.modules[name]


@pytest.fixture
def observe(
    site: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., reyn.Session]]:
    """Makes sessions that have a dome and a key, and closes them."""
    monkeypatch.setenv(SITE, "north")
    made: list[reyn.Session] = []

    def make(folder: Path = workspace, **options: Any) -> reyn.Session:
        made.append(reyn.Session(folder, **{"namespace": {}, "secrets": {KEY: VALUE}, **options}))
        return made[-1]

    yield make
    for session in made:
        session.close()


@pytest.fixture
def session(observe: Callable[..., reyn.Session]) -> reyn.Session:
    return observe()


class Person:
    """Answers questions in turn, the last one for good, and keeps them."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.questions: list[Question] = []

    async def __call__(self, question: Question) -> Answer:
        self.questions.append(question)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def names(session: reyn.Session) -> list[str]:
    return [row["qualified_name"] for row in session.list_actions("observatory")]


def invoke(name: str, **args: Any) -> Any:
    return call("invoke_action", action_name=f"observatory__{name}", args=args)


def asked(session: reyn.Session, *steps: Any, **options: Any) -> Trace:
    """Let a model make these calls, in one step each, and return the run."""
    return session.ask("observe", model=ScriptedModel(*steps, "Done."), **options)


def driver_of(session: reyn.Session) -> str:
    """Return the address of the session's driver."""
    return session.invoke_action("observatory__mast").value[-1].uri.removesuffix("/instruments")


def post(url: str, **given: Any) -> None:
    request = urllib.request.Request(url, json.dumps(given).encode())
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60):
        pass


def drivers() -> list[psutil.Process]:
    """Return the drivers below this process."""
    below = psutil.Process().children(recursive=True)
    return [each for each in below if any(word.endswith("driver.py") for word in words_of(each))]


def words_of(process: psutil.Process) -> list[str]:
    try:
        words = process.cmdline()
    except psutil.Error:
        return []
    return words[:4] if words[1:2] == ["-I"] and words[2:3] != ["-S"] else []


# Installed, hidden, started, closed.


def test_the_installed_package_is_found_with_its_version_and_place(site: Path) -> None:
    found = next(each for each in packages() if each.name == "reyn-observatory")
    assert (found.version, found.place, found.modules) == ("1.0.0", str(site), ("reyn_observatory",))


def test_it_is_hidden_with_its_reason_and_starts_nothing_until_a_dome_is_chosen(
    session: reyn.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SITE)
    assert names(session) == [] and drivers() == []
    assert "set OBSERVATORY_SITE" in session.list_actions().hidden["observatory"]
    assert "set OBSERVATORY_SITE" in str(session.invoke_action("observatory__mast").payload)
    monkeypatch.setenv(SITE, "north")
    assert TELESCOPE in names(session) and len(drivers()) == 1


def test_the_instruments_of_the_driver_are_actions_beside_the_operations(session: reyn.Session) -> None:
    instruments = ["allsky", "mast", "telescope"]
    operations = ["note", "observe", "plate", "recall", "summary", "survey"]
    assert names(session) == sorted(f"observatory__{each}" for each in instruments + operations)
    assert session.problems == ()
    permissions = {
        row["qualified_name"].partition("__")[2]: row["permission"]
        for row in session.list_actions("observatory")
    }
    assert (permissions["mast"], permissions["telescope"]) == ("allowed", "asks")


def test_its_driver_ends_with_the_session_and_the_next_use_starts_another(session: reyn.Session) -> None:
    names(session)
    [first] = drivers()
    session.close()
    assert is_gone(first.pid)
    assert session.invoke_action("observatory__mast").error is None
    [second] = drivers()
    assert second.pid != first.pid and session.problems == ()


def test_a_driver_that_dies_is_named_and_a_reset_starts_another(session: reyn.Session) -> None:
    names(session)
    [first] = drivers()
    first.kill()
    until(lambda: "'listen to the driver' failed" in " ".join(session.problems))
    assert session.invoke_action("observatory__mast").code == "upstream"
    session.reset()
    assert session.invoke_action("observatory__mast").error is None
    until(lambda: TELESCOPE in names(session) and session.problems == ())


def test_two_sessions_side_by_side_have_a_driver_each(
    observe: Callable[..., reyn.Session], tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    one, other = observe(), observe(tmp_path / "other")
    assert driver_of(one) != driver_of(other) and len(drivers()) == 2
    post(f"{driver_of(one)}/instruments", name="spectrograph")
    until(lambda: "observatory__spectrograph" in names(one))
    assert "observatory__spectrograph" not in names(other)
    one.close()
    assert other.invoke_action("observatory__mast").error is None and len(drivers()) == 1


KILLED = """
    import sys
    sys.path.insert(0, sys.argv[1])
    import psutil
    import reyn_jupyter as reyn
    session = reyn.Session(sys.argv[2], namespace={})
    print(session.invoke_action("observatory__mast").value[-1].uri, flush=True)
    print(*[each.pid for each in psutil.Process().children(recursive=True)], flush=True)
    sys.stdin.readline()
"""


def test_a_kernel_that_is_killed_takes_its_driver_with_it(
    site: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SITE, "north")
    kernel = started(KILLED, str(site), str(workspace))
    assert kernel.stdout is not None
    assert kernel.stdout.readline().startswith("http://127.0.0.1:")
    pids = [int(pid) for pid in kernel.stdout.readline().split()]
    assert len(pids) >= 2
    kernel.kill()
    kernel.communicate(timeout=600)
    until(lambda: all(map(is_gone, pids)))


# Entries that change, and schemas as a server sends them.


def test_an_instrument_that_is_mounted_stands_in_the_next_request_of_a_turn(session: reyn.Session) -> None:
    def mount(request: Request) -> Any:
        post(f"{url}/instruments", name="spectrograph")
        return invoke("mast")

    async def wait(request: Request) -> Any:
        while "observatory__spectrograph" not in str((await session.aio.list_actions("observatory")).rows):
            await asyncio.sleep(0.01)
        return call("list_actions", category=["observatory"])

    url = driver_of(session)
    trace = asked(session, mount, wait)
    assert "observatory__spectrograph" in trace.calls[1].finished.output


def test_a_tuple_of_draft_07_is_listed_in_2020_12_and_held_to(session: reyn.Session) -> None:
    face = json.dumps(session.describe_action(TELESCOPE).payload)
    assert "prefixItems" in face and "draft-07" not in face
    assert session.invoke_action(TELESCOPE, {"pointing": M31}).error is None
    for pointing in ([10.7], [400, 41.3], [10.7, 41.3, 0], "M31"):
        assert "pointing" in str(session.invoke_action(TELESCOPE, {"pointing": pointing}).payload)


def test_a_call_by_name_is_checked_with_the_schema_of_the_instrument(session: reyn.Session) -> None:
    wrong = {"instrument": "telescope", "arguments": {"pointing": [10.7, 100]}}
    assert "/arguments/pointing/1" in str(session.invoke_action("observatory__observe", wrong).payload)
    unknown = {"instrument": "telescop", "arguments": {}}
    assert "telescope" in str(session.invoke_action("observatory__observe", unknown).payload)
    right = {"instrument": "telescope", "arguments": {"pointing": M31, "frames": "2"}}
    result = session.invoke_action("observatory__observe", right)
    assert result.value[2].json["frames"] == 2


def test_a_reference_arrives_at_the_driver_as_json(observe: Callable[..., reyn.Session]) -> None:
    session = observe(namespace={"andromeda": tuple(M31)})
    result = session.invoke_action(TELESCOPE, {"pointing": {"$var": "andromeda"}})
    assert result.value[2].json["pointing"] == M31


# Effects, purity, consent.


def test_what_only_looks_is_read_without_a_question_and_what_moves_asks_for_itself_and_the_key(
    session: reyn.Session,
) -> None:
    person = Person("once")
    looks = invoke("observe", instrument="mast", arguments={})
    moves = invoke("observe", instrument="telescope", arguments={"pointing": M31})
    trace = asked(session, looks, moves, ask=person)
    assert [each.ok for each in trace.calls] == [True, True]
    [question] = person.questions
    assert "mcp observatory/telescope" in question.text and f"secret {KEY}" in question.text
    assert [each.purity for each in trace.events if isinstance(each, ActionResolved)] == ["read", "write"]


def test_rules_for_the_instruments_and_the_key_move_the_telescope_unasked(
    observe: Callable[..., reyn.Session],
) -> None:
    rules = [f"{TELESCOPE}(mcp:observatory/*)", f"{TELESCOPE}(secret:{KEY})"]
    person = Person("deny")
    for count, allowed in ((1, False), (2, True)):
        session = observe(config={"permissions": {"allow": rules[:count]}})
        assert asked(session, invoke("telescope", pointing=M31), ask=person).calls[0].ok is allowed
    assert len(person.questions) == 1


def test_two_that_only_look_run_side_by_side(session: reyn.Session) -> None:
    url = driver_of(session)
    post(f"{url}/sky", clear_frames=0)

    def clear_once_the_mast_is_read(event: Any) -> None:
        if isinstance(event, ActionFinished) and event.name == "observatory__mast":
            post(f"{url}/sky", clear_frames=9)

    trace = asked(session, [invoke("allsky"), invoke("mast")], on_event=clear_once_the_mast_is_read)
    assert [each.ok for each in trace.calls] == [True, True]


def test_one_instrument_takes_one_call_at_a_time(session: reyn.Session) -> None:
    url = driver_of(session)
    post(f"{url}/sky", clear_frames=0)
    heard: list[str] = []

    def clear_once_one_waits(event: Any) -> None:
        if isinstance(event, ActionProgressed):
            heard.append(event.message)
            if "waiting for 1 other call" in event.message:
                post(f"{url}/sky", clear_frames=9)

    calls = [invoke("allsky"), invoke("allsky", frames=2)]
    trace = asked(session, calls, on_event=clear_once_one_waits)
    assert [each.ok for each in trace.calls] == [True, True]
    assert any("waiting for 1 other call" in each for each in heard)


def test_a_redirect_to_another_host_is_asked_about_in_the_middle_of_the_call(session: reyn.Session) -> None:
    plate = invoke("plate", url=f"{driver_of(session)}/plates/m31".replace("http", "HTTP", 1))
    person = Person("once")
    [found] = asked(session, plate, ask=person).calls
    assert found.ok and "image/png" in found.finished.output
    first, second = person.questions
    assert "network 127.0.0.1:" in first.text and "localhost" not in first.text
    assert "network localhost:" in second.text and "sends the request there" in second.text
    [refused] = asked(session, plate, ask=Person("once", "deny")).calls
    assert refused.denied and refused.finished.code == "permission_denied"


def test_a_rule_for_a_host_holds_for_every_spelling_of_it(observe: Callable[..., reyn.Session]) -> None:
    session = observe(config={"permissions": {"deny": ["*(network:localhost)"]}})
    port = driver_of(session).rpartition(":")[2]
    result = session.invoke_action("observatory__plate", {"url": f"http://LocalHost.:{port}/archive/m31"})
    assert result.code == "permission_denied"


def test_what_an_archive_does_not_have_is_an_error_with_its_code(session: reyn.Session) -> None:
    result = session.invoke_action("observatory__plate", {"url": f"{driver_of(session)}/archive/m999"})
    assert (result.code, result.error) == ("not_there", "127.0.0.1 has no such thing.")


# Progress, partial results, limits.


def half_an_exposure(session: reyn.Session) -> Any:
    """Begin an exposure of four frames in the background, of which two come, and return the run once they are there."""
    post(f"{driver_of(session)}/sky", clear_frames=2)
    begun = threading.Event()

    def expose(request: Request) -> Any:
        begun.set()
        return invoke("telescope", pointing=M31, frames=4)

    run = session.start("observe", model=ScriptedModel(expose, "Done."), approve="all")
    assert begun.wait(PATIENCE)

    def frames() -> float:
        last = [each for each in session.trace(run.run_id).events if isinstance(each, ActionProgressed)][-1:]
        return last[0].done or 0 if last else 0

    until(lambda: frames() == 2)
    return run


def partial_of(trace: Trace) -> str:
    finished = trace.calls[0].finished
    assert finished is not None and finished.partial and not finished.ok
    return str(json.loads(finished.output)["partial"])


def test_an_exposure_that_is_cancelled_keeps_the_picture_so_far(session: reyn.Session) -> None:
    run = half_an_exposure(session)
    run.cancel()
    trace = run.result(60)
    assert trace.status == "interrupted" and "2 of 4 frames" in partial_of(trace)
    assert "image/png" in partial_of(trace)
    assert trace.calls[0].progress.text == "telescope looks (2 of 4)"


def test_an_exposure_that_takes_too_long_keeps_the_picture_so_far(session: reyn.Session) -> None:
    with clock_of(ENGINE.loop) as advance:
        run = half_an_exposure(session)
        advance(3600)
        trace = run.result(120)
    finished = trace.calls[0].finished
    assert finished.code == "call_timeout" and "after 600 s" in finished.error
    assert "2 of 4 frames" in partial_of(trace)


# Parts.


def test_a_picture_comes_as_words_an_image_its_header_and_a_link(session: reyn.Session) -> None:
    result = session.invoke_action(TELESCOPE, {"pointing": M31, "frames": 2})
    text, image, header, link = result.value
    assert text.text == "telescope: 2 of 2 frames"
    assert image.mime == "image/png" and image.data.startswith(b"\x89PNG")
    assert header.json["observer"] == "Ada" and header.json["site"] == "north"
    assert link.uri == f"{driver_of(session)}/instruments"


def test_a_model_that_sees_gets_the_picture_and_one_that_does_not_a_sentence(session: reyn.Session) -> None:
    sees = ScriptedModel(invoke("allsky"), "Stars.", media=frozenset({"image"}))
    blind = ScriptedModel(invoke("allsky"), "Done.")
    session.ask("look", model=sees)
    session.ask("look", model=blind)
    assert any(message.attachments for message in sees.requests[1].messages)
    assert not any(message.attachments for message in blind.requests[1].messages)
    assert '[image/png "allsky.png", 48×48' in str(blind.requests[1].wire)


# Calls within a call, and undo.


def survey(*pointings: list[float]) -> Any:
    return invoke("survey", pointings=list(pointings), path="data/orders.csv")


def test_a_survey_calls_other_actions_in_an_inner_run_which_ask_for_themselves(
    session: reyn.Session, workspace: Path
) -> None:
    person = Person("once")
    trace = asked(session, survey(M31, M42), ask=person)
    assert [each.action for each in person.questions] == [
        "observatory__survey",
        TELESCOPE,
        TELESCOPE,
        "file__write",
    ]
    [inner] = trace.inner.values()
    assert [each.label for each in inner.calls] == [TELESCOPE, TELESCOPE, "file__write"]
    assert (workspace / "data/orders.csv").read_text().splitlines()[1:] == ["10.7,41.3,Ada", "83.8,-5.4,Ada"]


def test_an_undo_of_the_outer_run_takes_back_what_the_survey_wrote(
    session: reyn.Session, workspace: Path
) -> None:
    before = (workspace / "data/orders.csv").read_bytes()
    asked(session, survey(M31), approve="all")
    assert (workspace / "data/orders.csv").read_bytes() != before
    session.undo()
    assert (workspace / "data/orders.csv").read_bytes() == before


def test_a_denied_inner_call_ends_the_survey_with_what_it_had(session: reyn.Session, workspace: Path) -> None:
    before = (workspace / "data/orders.csv").read_bytes()
    trace = asked(session, survey(M31, M42), ask=Person("once", "once", "deny"))
    assert trace.calls[0].finished.code == "permission_denied" and "10.7,41.3,Ada" in partial_of(trace)
    assert (workspace / "data/orders.csv").read_bytes() == before


# A file, changed as it was shown.


def test_a_note_is_shown_as_a_change_is_made_as_shown_and_is_undone(
    session: reyn.Session, workspace: Path
) -> None:
    person = Person("once")
    before = (workspace / "notes.txt").read_text()
    trace = asked(session, invoke("note", path="notes.txt", line="M31 at dawn"), ask=person)
    assert trace.calls[0].ok and "+M31 at dawn" in person.questions[0].text
    assert (workspace / "notes.txt").read_text() == before + "M31 at dawn\n"
    session.undo()
    assert (workspace / "notes.txt").read_text() == before


@pytest.mark.parametrize("swap", ["folder", "file"])
def test_a_note_is_refused_where_the_place_or_the_file_is_another_than_the_one_shown(
    session: reyn.Session, workspace: Path, swap: str
) -> None:
    (workspace / "log").mkdir()
    (workspace / "log" / "night.txt").write_text("shown\n")

    async def swap_and_agree(question: Question) -> Answer:
        if swap == "folder":
            (workspace / "log").rename(workspace / "before")
            (workspace / "log").symlink_to("data")
        else:
            (workspace / "log" / "night.txt").write_text("another\n")
        return "once"

    trace = asked(session, invoke("note", path="log/night.txt", line="M31"), ask=swap_and_agree)
    assert trace.calls[0].ok is False
    assert not any("M31" in each.read_text() for each in workspace.glob("*/night.txt"))


# The key.


def test_the_key_is_in_no_environment_and_in_nothing_that_is_kept(
    observe: Callable[..., reyn.Session], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, VALUE)
    session = observe(secrets=None)
    trace = asked(session, invoke("telescope", pointing=M31), approve="all")
    assert trace.calls[0].ok and "Ada" in trace.calls[0].finished.output
    environments = [each.environ() for each in psutil.Process().children(recursive=True)]
    assert environments and VALUE not in str(environments)
    kept = [path for path in (workspace / ".reyn").rglob("*") if path.is_file()]
    assert kept and not any(VALUE.encode() in path.read_bytes() for path in kept)


def test_an_archive_gets_no_key_though_the_driver_was_given_it(session: reyn.Session) -> None:
    with PageServer({"/m31": "a plate", "/start": Redirect("localhost", "/m31")}) as archive:
        url = archive.url("/start", "127.0.0.1")
        trace = asked(session, invoke("telescope", pointing=M31), invoke("plate", url=url), approve="all")
    assert [each.ok for each in trace.calls] == [True, True]
    assert archive.requests == [("127.0.0.1", "/start"), ("localhost", "/m31")]
    assert archive.keys == [None, None]


def test_a_key_that_the_driver_refuses_or_that_is_not_there_is_said_with_a_code(
    observe: Callable[..., reyn.Session],
) -> None:
    wrong = observe(secrets={KEY: "grace-counts-the-stars"}).invoke_action(TELESCOPE, {"pointing": M31})
    assert (wrong.code, wrong.error) == ("key_refused", "127.0.0.1 refused the key.")
    assert observe(secrets=None).invoke_action(TELESCOPE, {"pointing": M31}).code == "secret_missing"


# Models, embedder, earlier runs.


def test_a_summary_reads_earlier_runs_and_counts_its_model_in_the_turn(session: reyn.Session) -> None:
    assert session.invoke_action("observatory__summary").code == "nothing_observed"
    session.ask("is it windy up there?", model=ScriptedModel(invoke("mast"), "No."))
    model = ScriptedModel(invoke("summary"), "A calm night.", "It was calm.")
    trace = session.ask("and the log book?", model=model)
    assert trace.calls[0].finished.output == "A calm night."
    assert "is it windy up there? (observatory__mast)" in model.requests[1].messages[-1].content
    assert len(trace.replies) == 3


def test_an_earlier_observation_is_found_by_meaning(session: reyn.Session) -> None:
    for prompt, name in (("is it windy up there?", "mast"), ("show me the whole sky", "allsky")):
        session.ask(prompt, model=ScriptedModel(invoke(name), "Done."))
    found = session.invoke_action("observatory__recall", {"like": "a storm, how strong is the breeze"})
    assert found.value == "is it windy up there? (observatory__mast)"
