"""What the rules of the catalog say of a run: the words of the checks, step by step, never more than is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter import Session
from reyn_jupyter.evaluation.checks import find_check
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.models.scripted import ScriptedModel, Step
from reyn_jupyter.models.scripted import call as asks
from reyn_jupyter.notebook.render import to_html, to_text, view
from reyn_jupyter.notebook.render.trace.compliance_marks import mark_text
from reyn_jupyter.runtime.record.call_facts import call_facts
from reyn_jupyter.runtime.record.compliance import compliance_marks
from reyn_jupyter.runtime.record.trace import Trace
from tests.notebook.render.samples import asked, call, invoked, said, started, trace

LIST = asks("list_actions", category=["file"])


def invoke(action: str, /, **args: Any) -> Any:
    return asks("invoke_action", action_name=action, args=args)


def asked_of(root: Path, *steps: Step, **config: Any) -> Trace:
    """A real run in a folder with one file."""
    (root / "notes.txt").write_text("first line\nsecond line\n")
    session = Session(
        root, model=ScriptedModel(*steps, "Done."), config={"router": config} if config else None
    )
    return session.ask("How many lines has notes.txt?", approve="all")


def marks(run: Trace) -> list[tuple[int, str, str]]:
    return [(mark.step, mark_text(mark), mark.tone) for mark in compliance_marks(run)]


def test_a_run_that_keeps_the_rules_says_so_step_by_step(tmp_path: Path) -> None:
    run = asked_of(tmp_path, LIST, invoke("file__read", path="notes.txt"))
    assert marks(run) == [
        (1, "✓ lists first", "good"),
        (2, "✓ discovers before it acts", "good"),
        (2, "invoked right after listing", "good"),
    ]
    text = to_text(view(run))
    assert "What the rules of the catalog say of this run" in text
    assert "▸ Why  [2 ✓, 0 ✗]  mandates in force: none" in text


def test_a_rule_that_a_mandate_demands_is_broken_in_another_tone_than_one_that_nobody_demanded(
    tmp_path: Path,
) -> None:
    read = invoke("file__read", path="notes.txt")
    free = marks(asked_of(tmp_path, read, mandate="none"))
    bound = asked_of(tmp_path, read, mandate="generic")
    assert (1, "✗ lists first", "muted") in free
    assert (1, "✗ lists first", "bad") in marks(bound)
    page = to_html(view(bound))
    assert "mandates in force: list-first: generic" in page and "the first call is invoke_action" in page
    assert "r-bad" in page and "0 ✓, 2 ✗" in page


def test_every_name_that_is_none_has_the_word_of_its_check(tmp_path: Path) -> None:
    run = asked_of(tmp_path, LIST, [invoke("file__raed", path="x"), invoke("not a name")])
    found = [text for step, text, tone in marks(run) if step == 2 and tone == "bad"]
    assert found == ["✗ unknown name", "✗ malformed name"]
    for text in found:
        assert find_check(f"{text.split()[1]}_name").title == f"no {text.removeprefix('✗ ')}"
    assert "error · " not in to_text(view(run))


def test_what_was_forgiven_is_named_with_how(tmp_path: Path) -> None:
    run = asked_of(
        tmp_path, LIST, asks("invoke_action", action_name="file__read", args='{"path": "notes.txt"}')
    )
    assert (2, "forgiven: decoded", "info") in marks(run)


def test_an_error_that_the_same_action_makes_good_is_a_recovery(tmp_path: Path) -> None:
    bad, good = invoke("file__read", path="missing.txt"), invoke("file__read", path="notes.txt")
    assert (2, "✓ recovers after an error", "good") in marks(asked_of(tmp_path, LIST, bad, good))
    assert (2, "error", "warn") in marks(asked_of(tmp_path, LIST, bad))


def test_descriptions_edits_and_rewritten_files_are_marked_without_a_verdict(tmp_path: Path) -> None:
    run = asked_of(
        tmp_path,
        LIST,
        asks("describe_action", action_name="file__edit"),
        invoke("file__edit", path="notes.txt", old_string="first", new_string="1st"),
        invoke("file__write", path="notes.txt", content="all new\n"),
        invoke("file__write", path="other.txt", content="new\n"),
    )
    found = {(step, text) for step, text, _ in marks(run)}
    assert {(2, "described"), (3, "edited"), (4, "rewrote a file")} <= found
    assert not [text for step, text in found if step == 5]


def test_the_gate_is_marked_and_counts_as_a_look(tmp_path: Path) -> None:
    read = invoke("file__read", path="notes.txt")
    found = marks(asked_of(tmp_path, read, read, discovery="gate"))
    assert (1, "gated", "warn") in found and (1, "✗ lists first", "bad") in found
    assert (2, "✓ discovers before it acts", "good") in found


def test_where_there_is_nothing_to_list_listing_is_no_rule(tmp_path: Path) -> None:
    run = asked_of(tmp_path, asks("file__read", path="notes.txt"), surface="flat")
    assert run.calls[0].ok
    assert not [text for _, text, _ in marks(run) if "first" in text or "discovers" in text]


def test_nothing_is_said_of_a_call_by_hand_nor_of_a_run_without_calls(tmp_path: Path) -> None:
    session = Session(tmp_path, model=ScriptedModel("Hello."))
    assert compliance_marks(session.ask("Hi")) == ()
    session.invoke_action("file__read", {"path": "x"})
    by_hand = next(iter(session.runs))
    assert by_hand.started.run_kind == "manual" and compliance_marks(by_hand) == ()
    assert "rules of the catalog" not in to_text(view(by_hand))


def test_a_live_run_shows_what_is_known_so_far() -> None:
    first = call(1, None, {"category": ["file"]}, wrapper="list_actions")
    run = Trace.from_events([started(), asked(1), said(1), *first])
    assert marks(run)[0] == (1, "✓ lists first", "good")
    assert "✓ lists first" in to_text(view(run, tail=""))


def test_what_is_said_again_is_counted_and_many_steps_are_announced() -> None:
    def made(step: int) -> Trace:
        read = invoked("file__read", path="a")
        return trace(
            *(call(n, "file__read", read, flags=("coerced",), step=1 + n // step) for n in range(400))
        )

    assert "400 × forgiven: coerced" in to_html(view(made(400)))
    page, text = to_html(view(made(10))), to_text(view(made(10)))
    assert "10 × forgiven: coerced" in page and "… 28 more steps have marks" in page
    assert "400 × forgiven: coerced" in page  # among the reasons
    assert "more columns: step" in text


@pytest.mark.parametrize("name", ["first_call_is", "discovered_before_invoke"])
@pytest.mark.parametrize(
    "steps",
    [
        (LIST, invoke("file__read", path="notes.txt")),
        (invoke("file__read", path="notes.txt"),),
        ([LIST, invoke("file__read", path="notes.txt")],),
        (asks("search_actions", query="read"), invoke("file__read", path="notes.txt")),
    ],
    ids=["listed", "at once", "both in one reply", "searched"],
)
def test_the_marks_of_a_run_and_the_check_of_a_study_agree(
    tmp_path: Path, name: str, steps: tuple[Step, ...]
) -> None:
    run = asked_of(tmp_path, *steps)
    trial = Trial(
        key="k", scenario="s", variant="v", repeat=0, code="1", source="scripted", calls=call_facts(run)
    )
    check = find_check(name)
    verdict = check.grade(trial, Scenario(id="s", family="f", prompts={"natural": "Hi"}))
    sign = {"pass": "✓", "fail": "✗"}[verdict.kind]
    assert f"{sign} {check.title}" in [mark_text(mark) for mark in compliance_marks(run)]
