"""Check that the task is done: the state of the world afterwards, never the model's word for it alone.

Invariant: what was not recorded is neither right nor wrong; a step counts as done only by a call that worked.
"""

from __future__ import annotations

import hashlib

from reyn_jupyter.evaluation.checks.call_matching import serve
from reyn_jupyter.evaluation.checks.call_predicates import MOST_EVIDENCE, accepted_calls, join_reasons
from reyn_jupyter.evaluation.checks.check_registry import check
from reyn_jupyter.evaluation.checks.conduct import abstained_when_unanswerable
from reyn_jupyter.evaluation.checks.text_match import missing_words
from reyn_jupyter.evaluation.checks.verdict import Verdict, failed, not_applicable, passed
from reyn_jupyter.evaluation.plan.scenario import Expected, Scenario
from reyn_jupyter.evaluation.trial.trial import FileFact, Trial


@check(
    "task done",
    "Are the files as expected, does the answer hold what it must, did every needed step work, and "
    "did the model come to an end by itself?",
)
def task_done(trial: Trial, scenario: Scenario) -> Verdict:
    gold = scenario.gold
    if not (gold.steps or gold.unanswerable or scenario.expected or scenario.says):
        return not_applicable("the scenario expects nothing")
    if trial.outcome == "limit":
        return failed("the model did not come to an end within its limits")
    faults: list[str] = []
    if gold.unanswerable:
        verdict = abstained_when_unanswerable(trial, scenario)
        faults += [verdict.reason] if verdict.kind == "fail" else []
    served = serve(gold, [call for call in accepted_calls(trial) if call.ok])
    faults += served.faults.values()
    faults += [f"the answer does not say {text!r}" for text in missing_words(scenario.says, trial.answer)]
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
    if unrecorded:
        return not_applicable("nothing is known of a file afterwards", *unrecorded[:MOST_EVIDENCE])
    return passed("everything is as expected")


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
    if not (expected.contains or expected.lacks):
        return ""
    if text is None:
        return None
    for part in expected.contains:
        if part not in text:
            return f"does not hold {part!r}"
    for part in expected.lacks:
        if part in text:
            return f"still holds {part!r}"
    return ""
