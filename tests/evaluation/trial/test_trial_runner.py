"""One trial through the real loop: what comes back, whatever the model does, and nothing of the person's in it."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.catalog.action import Category, Effect, EffectKind, Operation, Purity, Tool
from reyn_jupyter.config import ConfigError, Settings
from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.suite import SuiteError
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.trial.trial import Trial, trial_key
from reyn_jupyter.evaluation.trial.trial_model import replaying_model, source_of
from reyn_jupyter.evaluation.trial.trial_runner import TrialRunner
from reyn_jupyter.models.base import ModelError, Request, Response, Usage
from reyn_jupyter.models.offline import OfflineModel
from reyn_jupyter.models.scripted import ScriptedModel, call, raw_call
from reyn_jupyter.runtime.record.events import ActionFinished, ModelRequested, RunStarted
from tests.evaluation.trial_support import ENGINE, READ, WRITE, Scripts, bench, run, scenario, suite, writing
from tests.support.waiting import LoopClock

PLAIN = Variant("plain", model="scripted")
LIST = call("list_actions", category=["file"])


def invoke(action: str, /, **args: Any) -> Any:
    return call("invoke_action", action_name=action, args=args)


def tried(*steps: Any, task: Scenario | None = None, variant: Variant = PLAIN, **options: Any) -> Trial:
    with bench(task or scenario(), models={"scripted": Scripts(*steps)}, **options) as on:
        return run(on, variant=variant)[0]


def requests_of(variant: Variant, *steps: Any, repeat: int = 0, **options: Any) -> list[Request]:
    agent = Scripts(*steps)
    with bench(models={"scripted": agent}, **options) as on:
        run(on, variant=variant, repeat=repeat)
    return agent.models[0].requests


def test_a_trial_tells_what_was_called_and_what_came_of_it() -> None:
    trial = tried(*READ)
    assert (trial.outcome, trial.error, trial.answer) == ("ok", None, "The notes say hello.")
    listing, reading = trial.calls
    assert (listing.wrapper, listing.name, listing.step, listing.ok) == ("list_actions", None, 1, True)
    assert "file__read" in listing.listed and "file__write" in listing.listed
    assert (reading.wrapper, reading.name, reading.args) == (
        "invoke_action",
        "file__read",
        {"path": "notes.md"},
    )
    assert (trial.model_calls, trial.source, trial.phrasing, trial.repeat) == (3, "scripted", "explicit", 0)
    assert trial.prompt_tokens > 0 and trial.cost is None and trial.seconds > 0


def test_the_events_are_the_run_and_name_the_frozen_catalog() -> None:
    with bench() as on:
        trial, events = run(on)
        assert isinstance(events[0], RunStarted) and events[0].run == trial.run
        assert events[0].catalog == trial.catalog == on.catalog_hashes["standard"] == Catalog.standard().hash


def test_repeats_take_the_phrasings_in_turn_and_have_requests_of_their_own() -> None:
    first, second, third = (requests_of(PLAIN, *READ, repeat=repeat)[0] for repeat in range(3))
    assert first.messages[-1].content == third.messages[-1].content == "Read notes.md."
    assert second.messages[-1].content == "What do the notes say?"
    assert [request.repeat for request in (first, second, third)] == [0, 1, 2]
    assert first.key != third.key
    assert first.messages[0] == third.messages[0]


def test_equal_trials_of_two_benches_ask_the_very_same() -> None:
    one, two = (requests_of(PLAIN, LIST, invoke("file__read", path="../x"), "No.") for _ in range(2))
    assert [request.key for request in one] == [request.key for request in two]


def test_the_key_says_what_was_tried() -> None:
    with bench() as on:
        plan = on.plan(on.suite.scenarios[0], PLAIN, 1)
        assert plan.key == trial_key(plan.scenario, PLAIN, 1, on.code)
        assert run(on, repeat=1)[0].key == plan.key


def test_parameters_of_the_variant_go_with_every_request_over_those_of_the_model() -> None:
    class Warm(Scripts):
        def for_scenario(self, task: Scenario) -> ScriptedModel:
            model = super().for_scenario(task)
            model.parameters = {"temperature": 1.0, "top_p": 0.5}  # type: ignore[attr-defined]
            return model

    agent = Warm(*READ)
    with bench(models={"scripted": agent}) as on:
        run(on, variant=PLAIN.but("cold", parameters={"temperature": 0.0, "seed": 7}))
    for request in agent.models[0].requests:
        assert dict(request.parameters) == {"temperature": 0.0, "top_p": 0.5, "seed": 7}


def test_a_variant_sets_the_router_and_the_tier_of_the_model_does_not() -> None:
    def settings_of(variant: Variant, tier: Any) -> dict[str, Any]:
        class Tiered(Scripts):
            def for_scenario(self, task: Scenario) -> ScriptedModel:
                return ScriptedModel(*READ, tier=tier)

        with bench(models={"scripted": Tiered()}) as on:
            started = run(on, variant=variant)[1][0]
        assert isinstance(started, RunStarted)
        return started.settings

    assert settings_of(PLAIN, "light") == settings_of(PLAIN, "strong")
    told = settings_of(PLAIN.but("m", mandate="explicit", reinforcement=3, list_schemas=False), "light")
    assert (told["mandate"], told["reinforcement"], told["list_schemas"]) == ("explicit", 3, False)


def test_the_gate_and_the_flat_surface_are_told_of() -> None:
    gated = tried(invoke("file__read", path="notes.md"), "Hm.", variant=PLAIN.but("g", discovery="gate"))
    assert gated.calls[0].problem == "gated" and gated.calls[0].name == "file__read"
    assert "file__read" in gated.calls[0].listed
    flat = tried(call("file__read", path="notes.md"), "Hello.", variant=PLAIN.but("f", surface="flat"))
    assert (flat.surface, flat.calls[0].name, flat.calls[0].ok) == ("flat", "file__read", True)


def test_a_name_that_does_not_exist_is_told_as_it_was_written() -> None:
    trial = tried(
        LIST,
        invoke("file__open", path="x"),
        call("file.read_it", path="x"),
        raw_call("invoke_action", "{"),
        "No.",
    )
    assert [(made.problem, made.name) for made in trial.calls[1:]] == [
        ("unknown", "file__open"),
        ("malformed", "file.read_it"),
        ("malformed", None),
    ]


def test_a_planned_error_comes_once_and_before_anything_is_done() -> None:
    task = writing(setup_error={"file__write": "the disk is busy; try again"})
    write = invoke("file__write", path="notes.md", content="changed\n")
    with bench(task, models={"scripted": Scripts(LIST, write, write, "Done.")}) as on:
        trial, _ = run(on)
        assert [made.ok for made in trial.calls] == [True, False, True]
        assert trial.calls[1].name == "file__write" and "busy" in str(trial.calls[1].error)
        assert trial.files["notes.md"].text == "changed\n"
        assert run(on)[0].calls[1].ok is False  # every trial has its own


def test_a_planned_error_waits_for_a_call_that_would_run() -> None:
    task = scenario(setup_error={"file__read": "the network drive is away"})
    trial = tried(LIST, invoke("file__read"), invoke("file__read", path="notes.md"), "Hm.", task=task)
    assert [made.problem for made in trial.calls] == [None, "invalid", None]
    assert "away" in str(trial.calls[2].error)


def reaching_out(purity: Purity, kind: EffectKind) -> tuple[Catalog, list[str]]:
    ran: list[str] = []

    async def handler(args: Any, context: Any) -> str:
        ran.append("ran")
        return "reached"

    tool = Tool("fetch_page", handler, purity, lambda args, context: (Effect(kind, "example.org"),))
    fetch = Operation("fetch", "Fetch a page.", {"type": "object", "properties": {}}, tool)
    return Catalog((Category("web", "Reach the web.", (fetch,)),)), ran


@pytest.mark.parametrize(
    ("purity", "kind"), [(Purity.NETWORK, "network"), (Purity.READ, "network"), (Purity.UNKNOWN, "exec")]
)
@pytest.mark.parametrize("allowed", [(), ("web__fetch(example.org)",)])
def test_nothing_outside_is_reached_unless_the_suite_says_so(
    purity: Purity, kind: EffectKind, allowed: tuple[str, ...]
) -> None:
    catalog, ran = reaching_out(purity, kind)
    made = suite(scenario(catalog="web"), catalogs={"web": lambda: catalog}, allow_actions=allowed)
    with TrialRunner(made, models={"scripted": Scripts(invoke("web__fetch"), "Done.")}) as on:
        trial, _ = run(on)
    assert trial.calls[0].ok is bool(allowed) and bool(ran) is bool(allowed)
    assert allowed or "Denied" in str(trial.calls[0].error)


def test_what_the_person_configured_and_denied_does_not_reach_a_trial(tmp_path: Path) -> None:
    folder = Path(os.environ["REYN_CONFIG_DIR"])
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(
        "permissions: {deny: [file__read]}\nrouter: {limits: {max_steps: 1}}\n"
    )
    task = scenario(workspace={"notes.md": "hello\n", "reyn.yaml": "permissions: {deny: [file__read]}\n"})
    trial = tried(*READ, task=task)
    assert trial.calls[1].ok and trial.outcome == "ok"


def test_settings_of_the_study_hold_and_a_wrong_one_is_refused() -> None:
    denied = tried(*READ, config={"permissions": {"deny": ["file__read"]}})
    assert denied.calls[1].ok is False
    with pytest.raises(ConfigError):
        bench(config={"router": {"no_such_key": 1}})


def test_a_workspace_that_cannot_be_made_is_told_of_before_anything_runs() -> None:
    with pytest.raises(SuiteError, match=r"scenario 'read-1'.*\.\./out"):
        bench(scenario(workspace={"../out": "x"}))


@pytest.mark.parametrize(
    ("step", "outcome", "said"),
    [
        (ModelError("rate_limited", "Too many calls."), "error", "rate_limited: Too many calls."),
        (ModelError("auth", "No key."), "error", "auth: No key."),
        (RuntimeError("bug in the model"), "error", "RuntimeError: bug in the model"),
    ],
)
def test_a_model_that_fails_ends_its_trial_as_an_error(step: Any, outcome: str, said: str) -> None:
    trial = tried(LIST, step)
    assert trial.outcome == outcome and said in str(trial.error)
    assert [made.ok for made in trial.calls] == [True]


def test_a_model_that_says_nothing_was_heard_and_is_no_missing_trial() -> None:
    trial = tried(Response(), Response())
    assert (trial.outcome, trial.answer, trial.model_calls) == ("ok", "", 2)
    assert "nothing, twice" in str(trial.error)


def test_a_model_that_never_answers_reaches_the_limit() -> None:
    trial = tried(*[LIST] * 20, variant=PLAIN.but("short", max_steps=3))
    assert trial.outcome == "limit" and [made.ok for made in trial.calls] == [True, True, True, False]
    assert "max_steps" in str(trial.error)


def test_a_trial_that_takes_too_long_is_a_timeout_with_what_was_done() -> None:
    async def slow(request: Request) -> str:
        LoopClock().advance(101)
        await asyncio.sleep(600)
        return "too late"

    trial = tried(LIST, slow, timeout=100)
    assert trial.outcome == "timeout" and trial.answer == ""
    assert [made.ok for made in trial.calls] == [True]


def test_a_trial_whose_time_is_over_before_it_begins_is_a_timeout_without_events() -> None:
    with bench(models={"scripted": Scripts(*READ)}, timeout=1e-9) as on:
        trial, events = run(on)
    assert (trial.outcome, trial.model_calls, trial.calls, events) == ("timeout", 0, (), ())
    assert "1e-09 s were over before the model was asked" in str(trial.error)


def test_an_interrupted_trial_never_happened() -> None:
    began: list[asyncio.Event] = []

    async def hang(request: Request) -> str:
        began[0].set()
        await asyncio.sleep(600)
        return "never"

    async def interrupted(on: TrialRunner) -> None:
        began.append(asyncio.Event())
        task = asyncio.ensure_future(on.run(on.plan(on.suite.scenarios[0], PLAIN, 0)))
        await began[0].wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with bench(models={"scripted": Scripts(LIST, hang)}) as on:
        ENGINE.run(interrupted(on))


def test_a_model_that_is_not_configured_is_that_trials_error_and_is_named() -> None:
    with bench() as on:
        trial, _ = run(on, variant=Variant("weak", model="light"))
        assert trial.outcome == "error" and "tier light" in str(trial.error)
        with pytest.raises(ModelError):
            on.models.provider(Variant("weak", model="light"))


def test_tiers_are_looked_up_in_the_persons_models() -> None:
    settings = Settings.model_validate({"models": {"light": {"model": "offline"}}})
    with bench(settings=settings) as on:
        weak = Variant("weak", model="light")
        trial, _ = run(on, variant=weak)
        assert (trial.source, trial.model, on.models.source(weak), on.models.provider(weak)) == (
            "offline", "offline", "offline", "offline",
        )  # fmt: skip
    remote = Settings.model_validate(
        {"models": {"strong": {"model": "openai/x", "api_base": "http://127.0.0.1:9"}}}
    )
    with bench(settings=remote) as on:
        strong = Variant("strong", model="strong")
        assert (on.models.source(strong), on.models.provider(strong)) == ("real", "127.0.0.1:9")


def test_only_a_real_model_is_real() -> None:
    stated = ScriptedModel("x")
    stated.source = "simulated"  # type: ignore[attr-defined]
    models = (ScriptedModel("x"), ScriptedModel("x", real=True), OfflineModel(), stated)
    assert [source_of(model) for model in models] == ["scripted", "real", "offline", "simulated"]


def test_effort_is_summed_and_a_cost_that_is_partly_unknown_stays_unknown() -> None:
    def reply(cost: float | None, fingerprint: str) -> Response:
        return Response("", (LIST,), "tool_calls", Usage(10, 2), cost, "m", fingerprint)

    known = tried(reply(0.5, "a"), reply(0.25, "b"), Response("Done.", usage=Usage(1, 1), cost=0.25))
    assert (known.cost, known.prompt_tokens, known.completion_tokens) == (1.0, 21, 5)
    assert known.fingerprints == ("a", "b")
    assert tried(reply(0.5, "a"), reply(None, "a"), "Done.").cost is None


def test_failed_attempts_are_heard_of_with_their_provider() -> None:
    heard: list[tuple[str, str, float | None]] = []
    busy = ModelError("rate_limited", "Slow down.", retryable=True, retry_after=0.01)
    trial = tried(
        LIST,
        busy,
        "Done.",
        on_model_error=lambda provider, error: heard.append((provider, error.kind, error.retry_after)),
    )
    assert trial.outcome == "ok" and trial.retries == 1
    assert heard == [("scripted", "rate_limited", 0.01)]


def test_a_trial_replayed_from_its_own_events_comes_to_the_same() -> None:
    with bench(writing(), models={"scripted": Scripts(*WRITE)}) as on:
        trial, events = run(on)
        plan = on.plan(on.suite.scenarios[0], PLAIN, 0)
        again, _ = ENGINE.run(on.run(plan, replaying_model(events)))
    assert again.source == "replayed"
    assert (again.calls, again.files, again.answer) == (trial.calls, trial.files, trial.answer)


def test_a_replay_finds_the_stored_results_of_its_own() -> None:
    def look(request: Request) -> Any:
        blob = request.messages[-1].content.split("[blob:")[1][:36]
        return call("inspect", blob_id=blob, selector="lines:150-151")

    task = scenario(workspace={"long.txt": "".join(f"line {number}\n" for number in range(1, 300))})
    script = LIST, invoke("file__read", path="long.txt"), look, "Seen."
    with bench(task, models={"scripted": Scripts(*script)}) as on:
        trial, events = run(on)
        again, replay = ENGINE.run(on.run(on.plan(task, PLAIN, 0), replaying_model(events)))
    assert [made.ok for made in trial.calls] == [made.ok for made in again.calls] == [True, True, True], (
        again.calls
    )
    looked = [event.output for event in replay if isinstance(event, ActionFinished)]
    assert "line 150" in looked[2]


def test_a_recording_replays_every_repeat_and_calls_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = tmp_path / "tape.jsonl"
    counted = iter(range(100))

    def numbered(task: Scenario) -> tuple[Any, ...]:
        return (*READ[:2], f"Answer {next(counted)}.")

    with bench(models={"scripted": Scripts(make=numbered)}, cassette="record", cassette_path=tape) as on:
        recorded = [run(on, repeat=repeat)[0] for repeat in range(4)]

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a replay reached for the network or a model")

    agent = Scripts(make=lambda task: [refuse])
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with bench(models={"scripted": agent}, cassette="replay", cassette_path=tape) as on:
        assert on.models.source(PLAIN) == "replayed"
        found = [run(on, repeat=repeat)[0] for repeat in (3, 1, 0, 2)]
        assert [trial.answer for trial in found] == ["Answer 3.", "Answer 1.", "Answer 0.", "Answer 2."]
        assert all(trial.source == "replayed" for trial in found)
        assert [trial.calls for trial in found] == [recorded[0].calls] * 4
        missed, _ = run(on, repeat=4)
        assert missed.outcome == "error" and "miss" in str(missed.error) and "repeat" in str(missed.error)
        moved, _ = run(on, variant=PLAIN.but("other", mandate="explicit"))
        assert moved.outcome == "error" and "messages" in str(moved.error)


def test_a_cassette_needs_a_file() -> None:
    with pytest.raises(SuiteError, match="cassette_path"):
        bench(cassette="replay")
    with pytest.raises(ModelError):
        bench(cassette="replay", cassette_path="/nowhere/tape.jsonl")


def test_trials_of_one_bench_share_prompt_and_tools_and_nothing_else() -> None:
    agent = Scripts(LIST, invoke("memory_operation__list"), "Done.")
    with bench(models={"scripted": agent}) as on:
        first, second = (run(on, repeat=2 * number) for number in range(2))
    one, two = agent.models[0].requests[0], agent.models[1].requests[0]
    assert one.messages[0] is two.messages[0] and one.tools is two.tools
    assert first[0].run != second[0].run
    logged = [event for event in second[1] if isinstance(event, ModelRequested)]
    assert logged[0].tool_specs is not None and logged[0].total_messages == len(logged[0].messages)


def test_a_variant_with_search_finds_from_the_first_trial_on_and_one_without_has_none() -> None:
    steps = call("search_actions", query="read a file"), invoke("file__read", path="notes.md"), "Hello."
    with bench(models={"scripted": Scripts(*steps)}) as on:
        searching, without = PLAIN.but("search", search=True), PLAIN
        found = [run(on, variant=searching, repeat=repeat)[0] for repeat in range(2)]
        assert all("file__read" in trial.calls[0].listed for trial in found)
        assert found[0].calls == found[1].calls
        assert run(on, variant=without)[0].calls[0].problem == "hidden"


def test_many_trials_run_beside_each_other() -> None:
    async def late(request: Request) -> Any:
        await asyncio.sleep(0.01)
        return invoke("file__read", path="notes.md")

    tasks = [scenario(f"s{number}") for number in range(20)]
    with bench(*tasks, models={"scripted": Scripts(LIST, late, "Hello.")}) as on:

        async def all_at_once() -> list[Any]:
            return await asyncio.gather(*(on.run(on.plan(task, PLAIN, 0)) for task in tasks))

        trials = [trial for trial, _ in ENGINE.run(all_at_once())]
    assert {trial.scenario for trial in trials} == {task.id for task in tasks}
    assert all(trial.outcome == "ok" and trial.calls[1].ok for trial in trials)
