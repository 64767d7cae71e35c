"""Models that misbehave, over real HTTP and LiteLLM: every trial ends, says how, and is graded for what it is."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.evaluation.checks import CHECKS
from reyn_jupyter.evaluation.models.fake_provider import BEHAVIOURS, FakeProvider, ProviderSettings, serve
from reyn_jupyter.evaluation.models.simulator import BehaviourTable, Simulator
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.evaluation.trial.trial_runner import TrialRunner
from reyn_jupyter.models.providers import litellm_loader
from reyn_jupyter.models.providers.provider_facts import is_local
from tests.evaluation.trial_support import bench, run, scenario

WEAK = Simulator(table=BehaviourTable(lists_first_unasked=1.0, arguments_with_schemas=1.0, picks_best=1.0))
LIMITS = {"router": {"limits": {"retries": 1, "model_timeout": 30}}}
HASTY = {"router": {"limits": {"retries": 0, "model_timeout": 0.3}}}
TASK = scenario(prompts={"natural": "Read notes.md."})


@pytest.fixture(scope="module")
def server() -> Iterator[FakeProvider]:
    litellm_loader.load()  # seconds that no trial's limit should have to hold
    with serve(manners=ProviderSettings(weak=WEAK, slow=20.0, changes_after=3)) as listening:
        yield listening


def tried(server: FakeProvider, name: str, config: Any = None, repeat: int = 0, **fields: Any) -> Trial:
    """One trial of one of the server's models."""
    on = bench(TASK, models={name: server.model(name)}, config=config or LIMITS, timeout=60)
    try:
        return run(on, variant=Variant(name, model=name, max_steps=4, **fields), repeat=repeat)[0]
    finally:
        on.close()


def verdicts(trial: Trial, *checks: str) -> dict[str, str]:
    return {name: CHECKS[name].grade(trial, TASK).kind for name in checks}


def test_a_weak_model_goes_the_whole_way_over_http(server: FakeProvider) -> None:
    trial = tried(server, "weak")

    assert (trial.outcome, trial.error) == ("ok", None)
    assert [(call.wrapper, call.ok) for call in trial.calls] == [
        ("list_actions", True),
        ("invoke_action", True),
    ]
    assert "hello" in trial.answer
    assert set(verdicts(trial, "first_call_is", "arguments_correct", "task_done").values()) == {"pass"}
    assert trial.prompt_tokens > 500 and trial.completion_tokens > 0
    assert trial.fingerprints == ("fp_practice_1",)


def test_what_a_practice_model_says_is_marked_as_simulated(server: FakeProvider) -> None:
    trial, model = tried(server, "refuses"), server.model("refuses")

    assert trial.source == "simulated"
    assert not model.real and trial.host == model.host and is_local(model.host)


def test_each_practice_model_is_a_provider_so_that_one_that_fails_slows_no_other(
    server: FakeProvider,
) -> None:
    on = bench(models={name: server.model(name) for name in server.models})
    providers = {on.models.provider(Variant(name, model=name)) for name in server.models}
    on.close()
    assert len(providers) == len(server.models) and all(map(is_local, providers))


def test_a_refusal_is_an_answer_that_fails(server: FakeProvider) -> None:
    trial = tried(server, "refuses")

    assert trial.outcome == "ok" and not trial.calls
    assert verdicts(trial, "first_call_is", "task_done", "right_action", "arguments_correct") == {
        "first_call_is": "fail",
        "task_done": "fail",
        "right_action": "fail",
        "arguments_correct": "na",
    }


def test_listing_for_ever_ends_at_the_limit(server: FakeProvider) -> None:
    trial = tried(server, "loops")

    assert trial.outcome == "limit" and trial.model_calls <= 5
    assert {call.wrapper for call in trial.calls} == {"list_actions"}
    assert verdicts(trial, "first_call_is", "task_done") == {"first_call_is": "pass", "task_done": "fail"}


def test_saying_nothing_at_all_is_no_crash_and_no_success(server: FakeProvider) -> None:
    trial = tried(server, "silent")

    assert trial.answer == "" and not trial.calls and "nothing" in str(trial.error)
    assert trial.outcome == "ok" and trial.model_calls == 2  # the model's own doing: graded, after one nudge
    assert verdicts(trial, "task_done", "first_call_is") == {"task_done": "fail", "first_call_is": "fail"}


def test_arguments_that_are_no_json_are_malformed_and_never_an_invocation(server: FakeProvider) -> None:
    trial = tried(server, "malformed")

    asked = trial.calls[:4]
    assert trial.outcome == "limit"
    assert [(call.problem, call.ok) for call in asked] == [("malformed", False)] * 4
    assert verdicts(trial, "task_done", "right_action") == {"task_done": "fail", "right_action": "fail"}


def test_guessed_names_are_told_apart(server: FakeProvider) -> None:
    trial = tried(server, "guesses")

    assert trial.outcome == "ok"
    assert [(call.name, call.problem) for call in trial.calls] == [
        ("file.read", "malformed"),
        ("file__read_file", "unknown"),
    ]
    found = verdicts(
        trial, "hallucinated_name", "malformed_name", "unknown_name", "hidden_name", "stale_name"
    )
    assert found == {
        "hallucinated_name": "fail",
        "malformed_name": "fail",
        "unknown_name": "fail",
        "hidden_name": "pass",
        "stale_name": "pass",
    }


def test_the_gate_stops_a_guesser_at_its_first_guess(server: FakeProvider) -> None:
    trial = tried(server, "guesses", discovery="gate")

    assert trial.calls[0].problem == "gated" and "file__read" in trial.calls[0].listed


def test_a_model_that_is_too_slow_is_missing(server: FakeProvider) -> None:
    trial = tried(server, "slow", HASTY)

    assert trial.outcome == "error" and "0.3 s" in str(trial.error)


def test_a_trial_that_takes_too_long_is_a_timeout(
    server: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed: list[float] = []
    patience = TrialRunner._patience

    def noted(runner: TrialRunner, model: Any) -> float:
        allowed.append(patience(runner, model))
        return allowed[-1]

    monkeypatch.setattr(TrialRunner, "_patience", noted)
    on = bench(TASK, models={"slow": server.model("slow")}, config=LIMITS, timeout=0.4)
    first, later = (run(on, variant=Variant("slow", model="slow"), repeat=repeat)[0] for repeat in range(2))
    on.close()

    assert first.outcome == later.outcome == "timeout"
    # Three times as long, as a server on this machine may have to load its model.
    assert allowed == [pytest.approx(1.2), pytest.approx(0.4)] and first.seconds > 1.1 and later.seconds > 0.3


def test_a_model_that_fills_its_context_reached_a_limit_and_failed(server: FakeProvider) -> None:
    trial = tried(server, "small")

    assert trial.outcome == "limit" and str(trial.error).startswith("context_too_long:")
    assert [call.wrapper for call in trial.calls] == ["list_actions"]
    assert verdicts(trial, "first_call_is", "task_done") == {"first_call_is": "pass", "task_done": "fail"}


def test_with_requests_that_fit_the_same_model_goes_on_to_its_last_step(server: FakeProvider) -> None:
    trial = tried(server, "small", fit_context=True)

    assert trial.outcome == "limit" and "4 steps" in str(trial.error)
    assert len(trial.calls) > 1


def test_a_recording_of_requests_that_were_shortened_answers_the_same_requests(
    server: FakeProvider, tmp_path: Path
) -> None:
    variant = Variant("small", model="small", max_steps=3, fit_context=True)
    models, path = {"small": server.model("small")}, tmp_path / "small.jsonl"
    told = []
    for cassette in ("record", "replay"):
        on = bench(TASK, models=models, config=LIMITS, timeout=60, cassette=cassette, cassette_path=path)
        told.append(run(on, variant=variant)[0])
        on.close()

    live, again = told
    assert again.source == "replayed" and (again.outcome, again.error) == (live.outcome, live.error)
    assert again.model_calls == live.model_calls > 1


def test_a_busy_provider_is_waited_for(server: FakeProvider) -> None:
    trial = tried(server, "busy")

    assert trial.outcome == "ok" and "hello" in trial.answer
    assert trial.retries == trial.model_calls == 3


def test_a_busy_provider_without_patience_is_missing_and_says_when_to_come_back(
    server: FakeProvider,
) -> None:
    heard: list[tuple[str, Any]] = []
    on = bench(
        TASK,
        models={"busy": server.model("busy")},
        config=HASTY,
        on_model_error=lambda name, error: heard.append((name, error)),
    )
    trial, _ = run(on, variant=Variant("impatient", model="busy", parameters={"temperature": 0.5}))
    on.close()

    assert trial.outcome == "error"
    assert [(name, error.kind, error.retry_after) for name, error in heard] == [
        (trial.host, "rate_limited", 0.05)
    ]


@pytest.mark.parametrize(
    ("name", "told"),
    [("failing", "500"), ("truncated", "before it was finished"), ("mistyped", "not a chat completion")],
)
def test_a_broken_provider_is_missing_and_never_a_failure_of_the_model(
    server: FakeProvider, name: str, told: str
) -> None:
    trial = tried(server, name)

    assert trial.outcome == "error" and told in str(trial.error)
    assert not trial.calls and trial.answer == ""


def test_a_model_that_changes_in_the_middle_is_seen(server: FakeProvider) -> None:
    fingerprints = [tried(server, "changing", repeat=repeat).fingerprints for repeat in range(2)]

    assert fingerprints[0] == ("fp_practice_1",)
    assert fingerprints[1] == ("fp_practice_2",)


def test_equal_requests_are_samples_of_their_own() -> None:
    with serve(
        manners=ProviderSettings(
            weak=Simulator(table=BehaviourTable(lists_first_unasked=0.5, answers_at_once=0))
        )
    ) as half:
        first = [tried(half, "weak").calls[0].wrapper for _ in range(12)]
    assert set(first) == {"list_actions", "invoke_action"}


# -- the server itself ------------------------------------------------------------------------------------------------


def post(server: FakeProvider, body: bytes) -> tuple[int, dict[str, str], bytes]:
    request = urllib.request.Request(
        f"{server.url}/chat/completions", body, {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read()


def asking(model: str, **fields: Any) -> bytes:
    return json.dumps({"model": model, "messages": [{"role": "user", "content": "Hello"}], **fields}).encode()


def test_it_listens_on_this_machine_alone(server: FakeProvider) -> None:
    assert server.url.startswith("http://127.0.0.1:")


def test_whole_and_streamed_answers_say_the_same(server: FakeProvider) -> None:
    _, whole_headers, whole = post(server, asking("refuses"))
    _, headers, streamed = post(
        server, asking("refuses", stream=True, stream_options={"include_usage": True})
    )

    pieces = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith(b"data: {")]
    text = "".join(piece["choices"][0]["delta"].get("content") or "" for piece in pieces if piece["choices"])
    assert json.loads(whole)["choices"][0]["message"]["content"] == text
    assert pieces[-1]["usage"] == json.loads(whole)["usage"]
    assert (whole_headers["Content-Type"], headers["Content-Type"]) == (
        "application/json",
        "text/event-stream",
    )
    assert streamed.rstrip().endswith(b"data: [DONE]")


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"not json", 400, "Invalid request"),
        (b"[]", 400, "messages must be a list"),
        (b'{"model": "weak", "messages": ["hello"]}', 400, "chat-completions shape"),
        (asking("weak", tools=[{"type": "function"}]), 400, "tools must be a list of functions"),
        (asking("weak", tool_choice={"function": "list_actions"}), 400, "Invalid request"),
        (b'{"model": "weak", "messages": [{"role": "user", "content": 5}]}', 400, "Invalid request"),
        (b'{"model": ["weak"], "messages": [{"role": "user", "content": {}}]}', 404, "does not exist"),
        (b"[" * 100_000, 400, "Invalid request"),
        (asking("gpt-9"), 404, "gpt-9 does not exist"),
        (asking("failing"), 500, "had an error"),
        (asking("busy"), 429, "Rate limit"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_the_providers_shape(
    server: FakeProvider, body: bytes, status: int, told: str
) -> None:
    code, headers, answer = post(server, body)

    assert code == status and told in json.loads(answer)["error"]["message"]
    assert ("Retry-After" in headers) == (status == 429)


@pytest.mark.parametrize("length", ["-1", "many", "9" * 5_000, str(1 << 40)])
def test_a_request_of_no_length_that_can_be_read_is_refused_at_once(
    server: FakeProvider, length: str
) -> None:
    connection = HTTPConnection(server.url.split("/")[2], timeout=60)
    connection.putrequest("POST", "/v1/chat/completions")
    connection.putheader("Content-Length", length)
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status == 413 and "Content-Length" in json.loads(answer.read())["error"]["message"]
    connection.close()


def test_a_model_that_it_does_not_have_is_refused_with_those_that_it_has(server: FakeProvider) -> None:
    with pytest.raises(ValueError, match=r"no model 'strong'; it has weak, refuses"):
        server.model("strong")
    assert server.models == tuple(BEHAVIOURS)


def test_it_stops_listening_when_it_is_closed() -> None:
    with serve() as one:
        assert post(one, asking("refuses"))[0] == 200
        assert one.asked == {"refuses": 1}
    one.close()
    with pytest.raises(urllib.error.URLError):
        post(one, asking("refuses"))
