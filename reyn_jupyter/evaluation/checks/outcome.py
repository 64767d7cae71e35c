"""Check that the task is done: the state of the world afterwards, never the model's word for it alone.

Invariants: what was not recorded is neither right nor wrong; a step counts as done only by a call that worked; an
answer that holds everything that could be meant says nothing, so it says none of it.
"""

from __future__ import annotations

import hashlib

from reyn_jupyter.evaluation.checks.call_matching import other_calls, serve, unread_calls, unread_sentence
from reyn_jupyter.evaluation.checks.check_registry import check
from reyn_jupyter.evaluation.checks.conduct import abstained_when_unanswerable
from reyn_jupyter.evaluation.checks.text_match import enumerates, missing_words, recites, says, without_copies
from reyn_jupyter.evaluation.plan.scenario import Expected, Scenario
from reyn_jupyter.evaluation.trial.trial import FileFact, Trial
from reyn_jupyter.runtime.record.call_predicates import (
    MOST_EVIDENCE,
    call_evidence,
    call_sentence,
    join_reasons,
    worked_calls,
)
from reyn_jupyter.runtime.record.verdict import Verdict, failed, not_applicable, passed

_NOTHING = "the scenario expects nothing"


def _expects_something(scenario: Scenario) -> bool:
    gold = scenario.gold
    return bool(gold.steps or gold.unanswerable or scenario.expected or scenario.says)


@check(
    "task done",
    "Is the state reached that was asked for, and did the model come to an end by itself?",
    version=3,
)
def task_done(trial: Trial, scenario: Scenario) -> Verdict:
    for part in (came_to_end, state_reached):
        verdict = part(trial, scenario)
        if verdict.kind != "pass":
            return verdict
    return passed("everything is as expected")


@check("comes to an end", "Does the model end the turn by itself, before a limit does?")
def came_to_end(trial: Trial, scenario: Scenario) -> Verdict:
    if not _expects_something(scenario):
        return not_applicable(_NOTHING)
    if trial.outcome == "limit":
        return failed("the model did not come to an end within its limits", *call_evidence(trial.calls[-3:]))
    return passed("the model ended the turn by itself")


@check(
    "state reached",
    "Are the files as expected, does the answer hold what it must and give its own words for it, did every "
    "needed step work, and was nothing else done, whether the turn came to an end or not?",
    version=2,
)
def state_reached(trial: Trial, scenario: Scenario) -> Verdict:
    gold = scenario.gold
    if not _expects_something(scenario):
        return not_applicable(_NOTHING)
    faults: list[str] = []
    if gold.unanswerable:
        verdict = abstained_when_unanswerable(trial, scenario)
        faults += [verdict.reason] if verdict.kind == "fail" else []
    worked = worked_calls(trial.calls)
    faults += serve(gold, worked).faults.values()
    faults += [call_sentence(call) for call in other_calls(scenario, trial.calls)]
    faults += _answer_faults(trial.answer, scenario)
    unrecorded: list[str] = []
    for expected in scenario.expected:
        fact = trial.files.get(expected.path)
        wrong = "" if fact is None else _fault(expected, fact)
        if wrong is None or fact is None:
            unrecorded.append(expected.path)
        elif wrong:
            faults.append(f"{expected.path} {wrong}")
    if faults:
        return failed(join_reasons(faults), *faults[:MOST_EVIDENCE])
    if unread := unread_calls(scenario, trial.calls):
        return not_applicable(join_reasons(map(unread_sentence, unread)), *call_evidence(unread))
    if unrecorded:
        return not_applicable("nothing is known of a file afterwards", *unrecorded[:MOST_EVIDENCE])
    return passed("everything is as expected")


def _answer_faults(answer: str, scenario: Scenario) -> list[str]:
    """Return what is wrong with an answer: what it does not say, and what it says beside it that makes it no
    answer."""
    if not scenario.says:
        return []
    own = without_copies(answer, scenario.workspace.values())
    copied = "" if own == answer else ", the lines that it copies aside"
    faults = [f"the answer does not say {text!r}{copied}" for text in missing_words(scenario.says, own)]
    faults += [f"the answer says {text!r} too" for text in scenario.omits if says(answer, text)]
    pasted = next((path for path, text in scenario.workspace.items() if recites(answer, text)), None)
    if pasted is not None:
        faults.append(f"the answer is all of {pasted}, and does not say which part of it is meant")
    if enumerates(answer):
        faults.append("the answer names so many numbers that one of them had to be right")
    return faults


def _fault(expected: Expected, fact: FileFact) -> str | None:
    """Return what is wrong with a file, "" when nothing is, None when it was not recorded."""
    if fact.exists != expected.exists:
        return "is there" if fact.exists else "is not there"
    if expected.unchanged and fact.changed:
        return "was changed"
    if expected.text is not None and fact.text != expected.text:
        if fact.text is None:
            digest = hashlib.sha256(expected.text.encode("utf-8", "surrogatepass")).hexdigest()
            if fact.sha256 is None:
                return None
            if fact.sha256 == digest:
                return _about_parts(expected, expected.text)
        return "does not hold the expected text"
    return _about_parts(expected, fact.text)


def _about_parts(expected: Expected, text: str | None) -> str | None:
    if not (expected.contains or expected.lacks or expected.line is not None):
        return ""
    if text is None:
        return None
    if expected.line is not None and text.strip() != expected.line:
        return f"is not {expected.line!r} alone"
    for part in expected.contains:
        if part not in text:
            return f"does not hold {part!r}"
    for part in expected.lacks:
        if part in text:
            return f"still holds {part!r}"
    return ""
