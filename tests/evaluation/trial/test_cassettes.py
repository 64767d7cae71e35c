"""A study on record: repeats and conversations that run at once stay apart, and replay never reaches a model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.evaluation.models.simulator import Simulator
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.evaluation.trial.trial_runner import TrialPlan, TrialRunner
from reyn_jupyter.models.base import Message, ModelError, Request, Response, ToolSet
from reyn_jupyter.models.cassettes.cassette import CassettePlayer, CassetteRecorder
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.runtime.record.runlog import encode
from reyn_jupyter.support.key_shapes import contains_key_shape
from tests.evaluation.trial_support import ENGINE, READ, Scripts, bench, run, scenario

PLAIN = Variant("plain", model="simulator")
GATED = PLAIN.but("gated", discovery="gate")
FOUR = tuple(
    scenario(f"read-{n}", prompts={"natural": f"What do the notes say of point {n}?"}) for n in range(4)
)


class _Unreachable:
    """In the place of a model that a replay must not call."""

    label, tier, host, real, source = "simulator", "light", None, False, "simulated"

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        raise AssertionError("a replay called a model")


async def _at_once(on: TrialRunner, plans: list[TrialPlan]) -> list[Trial]:
    return [trial for trial, _ in await asyncio.gather(*(on.run(plan) for plan in plans))]


def _study(model: Any, tape: Path, mode: Any, plans: list[tuple[Variant, int]] | None = None) -> list[Trial]:
    """Every scenario under each variant and repeat, all at once."""
    on = bench(*FOUR, models={"simulator": model}, cassette=mode, cassette_path=tape)
    try:
        wanted = plans or [(variant, repeat) for variant in (PLAIN, GATED) for repeat in range(3)]
        return ENGINE.run(_at_once(on, [on.plan(each, *how) for each in FOUR for how in wanted]))
    finally:
        on.close()


def _what_happened(trial: Trial) -> tuple[Any, ...]:
    return trial.key, trial.outcome, trial.answer, trial.calls, trial.model_calls, trial.completion_tokens


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return tmp_path / "study.jsonl"


def test_a_recorded_study_replays_trial_by_trial_without_its_model(tape: Path) -> None:
    recorded = _study(Simulator(seed=4), tape, "record")

    replayed = _study(_Unreachable(), tape, "replay")

    assert list(map(_what_happened, replayed)) == list(map(_what_happened, recorded))
    assert {trial.source for trial in recorded} == {"simulated"}
    assert {trial.source for trial in replayed} == {"replayed"}


def test_trials_that_ask_alike_are_each_served_their_own_answer(tape: Path) -> None:
    # Without a gate and with one the first request is the same, and so is its key.
    said = iter(("of the first", "of the second"))
    on = bench(
        models={"scripted": Scripts(make=lambda _: (next(said),))}, cassette="record", cassette_path=tape
    )
    plain, gated = Variant("plain", model="scripted"), Variant("gated", model="scripted", discovery="gate")
    recorded = [run(on, variant=variant)[0].answer for variant in (plain, gated)]
    on.close()

    again = bench(models={"scripted": Scripts("never")}, cassette="replay", cassette_path=tape)
    replayed = [run(again, variant=variant)[0].answer for variant in (gated, plain)]
    again.close()

    assert recorded == ["of the first", "of the second"]
    assert replayed == recorded[::-1]


def test_repeats_are_distinct_samples_on_record_and_in_replay(tape: Path) -> None:
    answers = iter(range(100))
    on = bench(models={"scripted": Scripts(make=lambda _: (f"sample {next(answers)}",))},
               cassette="record", cassette_path=tape)  # fmt: skip
    prompts = scenario(prompts={"natural": "What do the notes say?"})
    first = [run(on, prompts, repeat=repeat)[0].answer for repeat in range(3)]
    on.close()

    again = bench(models={"scripted": Scripts("never")}, cassette="replay", cassette_path=tape)
    backwards = [run(again, prompts, repeat=repeat)[0].answer for repeat in (2, 1, 0)]
    missing, _ = run(again, prompts, repeat=3)
    again.close()

    assert first == ["sample 0", "sample 1", "sample 2"]
    assert backwards == first[::-1]
    assert missing.outcome == "error" and missing.error is not None
    assert "repeat moved" in missing.error


def test_a_miss_names_the_part_that_moved_and_ends_the_trial_alone(tape: Path) -> None:
    _study(Simulator(), tape, "record")

    moved = _study(
        _Unreachable(), tape, "replay", [(PLAIN.but("hot", parameters={"temperature": 1.0}), 0), (PLAIN, 0)]
    )

    assert [trial.outcome == "error" for trial in moved] == [True, False] * len(FOUR)
    assert all("parameters moved" in str(trial.error) for trial in moved[::2])


def test_a_file_with_a_key_left_in_it_is_refused_at_load(tape: Path) -> None:
    _study(Simulator(), tape, "record")
    leaked = "sk-" + "a1B2" * 12
    tape.write_text(tape.read_text("utf-8").replace("What do the notes say", f"With {leaked}, what"), "utf-8")

    with pytest.raises(ModelError) as raised:
        _study(_Unreachable(), tape, "replay")

    assert raised.value.kind == "configuration" and tape.name in raised.value.message
    assert leaked not in str(raised.value)


def test_the_log_of_a_trial_serves_as_a_cassette(tmp_path: Path) -> None:
    on = bench(models={"scripted": Scripts(*READ)})
    recorded, events = run(on)
    on.close()
    log = tmp_path / "run.jsonl"
    log.write_bytes(b"".join(encode(event) for event in events))

    again = bench(models={"scripted": Scripts("never")}, cassette="replay", cassette_path=log)
    replayed, _ = run(again)
    again.close()

    assert _what_happened(replayed) == _what_happened(recorded)
    assert replayed.source == "replayed"


def test_conversations_that_run_at_once_hold_their_own_new_messages_alone(tape: Path) -> None:
    trials = _study(Simulator(), tape, "record")

    events = [json.loads(line) for line in tape.read_text("utf-8").splitlines()]
    requests = [event for event in events if event["type"] == "ModelRequested"]
    held: dict[str, int] = {}
    for request in requests:
        conversation = request["conversation"]
        held[conversation] = held.get(conversation, 0) + len(request["messages"])
        assert held[conversation] == request["total_messages"]
    assert len(held) == len(trials)
    assert sum(event["tool_specs"] is not None for event in requests) == 1


async def test_ids_of_stored_results_are_those_of_the_own_conversation(tape: Path) -> None:
    def blob(digit: str) -> str:
        return f"{digit * 8}-{digit * 4}-7{digit * 3}-8{digit * 3}-{digit * 12}"

    def conversation(digit: str, found: str) -> list[Request]:
        looked = Message("assistant", "", (replace(call("look"), id="1"),))
        result = Message("tool", f"[blob:{found}] text | 900 lines", (), "1")
        thought = Message("assistant", "", (replace(call("think"), id="2"),))
        messages = (
            Message("user", f"Look at {digit}."),
            looked,
            result,
            thought,
            Message("tool", "ok", (), "2"),
        )
        return [Request("m", messages[:count]) for count in (1, 3, 5)]

    recorders = {
        digit: CassetteRecorder(
            ScriptedModel(call("look"), call("think"), call("inspect", blob_id=blob(digit))),
            tape,
            contains_key_shape,
            conversation=digit,
        )
        for digit in "12"
    }
    for step in range(3):  # the two run at once, step by step
        for digit, recorder in recorders.items():
            await recorder.complete(conversation(digit, blob(digit))[step])
    player = CassettePlayer(tape, contains_key_shape).within("1")

    replies = [await player.complete(request) for request in conversation("1", blob("9"))]

    assert json.loads(replies[-1].tool_calls[0].arguments) == {"blob_id": blob("9")}


def test_a_failure_that_was_tried_again_is_not_replayed(tape: Path) -> None:
    busy = ModelError("rate_limited", "too many requests", retryable=True, retry_after=0.01)
    on = bench(models={"scripted": Scripts(busy, *READ)}, cassette="record", cassette_path=tape)
    recorded, _ = run(on)
    on.close()

    again = bench(models={"scripted": Scripts("never")}, cassette="replay", cassette_path=tape)
    replayed, _ = run(again)
    again.close()

    assert recorded.retries == 1
    assert _what_happened(replayed) == _what_happened(recorded)


def test_a_recording_of_several_models_answers_as_the_one_that_is_asked(tape: Path) -> None:
    models = {"one": Scripts("I am one.", label="one"), "two": Scripts("I am two.", label="two")}
    for mode in ("record", "replay"):
        on = bench(models=models, cassette=mode, cassette_path=tape)
        said = [run(on, variant=Variant(name, model=name))[0].answer for name in ("two", "one")]
        on.close()
        assert said == ["I am two.", "I am one."]


def test_a_model_that_was_not_recorded_is_told(tape: Path) -> None:
    _study(Simulator(), tape, "record")

    on = bench(models={"scripted": Scripts("never")}, cassette="replay", cassette_path=tape)
    trial, _ = run(on)
    on.close()

    assert trial.outcome == "error"
    assert "holds no answer of scripted" in str(trial.error) and "simulator" in str(trial.error)


async def test_each_conversation_has_the_system_prompt_of_its_own_day(tape: Path) -> None:
    for day in ("2026-01-31", "2026-02-01"):
        recorder = CassetteRecorder(ScriptedModel("Hello."), tape, contains_key_shape, conversation=day)
        await recorder.complete(Request("m", (Message("system", f"Date: {day}."), Message("user", "Hi"))))

    player = CassettePlayer(tape, contains_key_shape)

    assert player.within("2026-02-01").system == "Date: 2026-02-01."
    assert player.within("another").system == player.system == "Date: 2026-01-31."


async def test_a_recording_that_is_taken_away_begins_anew(tape: Path) -> None:
    recorder = CassetteRecorder(ScriptedModel(otherwise="Hello."), tape, contains_key_shape)
    request = Request(
        "m", (Message("user", "Hi"),), ToolSet(({"type": "function", "function": {"name": "look"}},))
    )
    await recorder.complete(request)
    tape.unlink()

    await recorder.complete(replace(request, repeat=1))

    requested = json.loads(tape.read_text("utf-8").splitlines()[0])
    assert (requested["step"], len(requested["tool_specs"]), len(requested["messages"])) == (1, 1, 1)
    assert (
        await CassettePlayer(tape, contains_key_shape).complete(replace(request, repeat=1))
    ).text == "Hello."
