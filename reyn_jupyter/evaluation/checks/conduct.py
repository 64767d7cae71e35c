"""Check conduct where a weak model goes astray: partial edits, errors, requests that nothing fits.

Invariants: doing nothing is neither an edit nor a recovery; an abstention is a finished trial without an attempt and
with words, so that neither an error nor a call that could not be read passes for one.
"""

from __future__ import annotations

import posixpath

from reyn_jupyter.evaluation.checks.actions import right_action
from reyn_jupyter.evaluation.checks.call_matching import serve
from reyn_jupyter.evaluation.checks.check_registry import check
from reyn_jupyter.evaluation.checks.text_match import missing_words
from reyn_jupyter.evaluation.plan.scenario import AcceptedCall, Scenario
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.runtime.record.call_facts import CallFact
from reyn_jupyter.runtime.record.call_predicates import (
    MOST_EVIDENCE,
    accepted_calls,
    call_evidence,
    is_attempt,
    is_gated,
    join_reasons,
    names_an_action,
    worked_calls,
)
from reyn_jupyter.runtime.record.conduct import EDIT, RECOVERS, WRITE, judge_recovery
from reyn_jupyter.runtime.record.verdict import Verdict, failed, not_applicable, passed


@check(
    "edits, does not rewrite",
    "Where a part of an existing file is to be changed: does the model edit the file, "
    "and never write a whole one over it?",
)
def used_edit_not_write(trial: Trial, scenario: Scenario) -> Verdict:
    existing = {posixpath.normpath(path) for path in scenario.workspace}
    wanted = {
        path for step in scenario.gold.steps for call in step for path in _files_to_edit(call, existing)
    }
    if not wanted:
        return not_applicable("the scenario asks for no edit of an existing file")
    calls = accepted_calls(trial.calls)
    rewritten = [call for call in calls if call.name == WRITE and _file_of(call, existing) is not None]
    if rewritten:
        return failed(f"{WRITE} was called for a file that was there", *call_evidence(rewritten))
    edits = [call for call in calls if call.name == EDIT and _file_of(call, wanted) is not None]
    if edits:
        return passed(f"{EDIT} was called for the file", *call_evidence(edits))
    return failed("the file is neither edited nor written", *call_evidence(calls))


def _files_to_edit(accepted: AcceptedCall, existing: set[str]) -> set[str]:
    """Return the existing files that an accepted call edits."""
    if accepted.action != EDIT:
        return set()
    paths = accepted.args.get("path", tuple(existing))
    return existing & {posixpath.normpath(str(path)) for path in paths}


def _file_of(call: CallFact, files: set[str]) -> str | None:
    """Return the known file that a call is about, given relative to the workspace or absolute."""
    given = call.args.get("path") if isinstance(call.args, dict) else None
    if not isinstance(given, str):
        return None
    path = posixpath.normpath(given)
    absolute = path.startswith("/")  # "old/a.md" is another file than "a.md"
    return next(
        (known for known in files if path == known or (absolute and path.endswith(f"/{known}"))), None
    )


@check(*RECOVERS)
def recovered_after_error(trial: Trial, scenario: Scenario) -> Verdict:
    verdict = judge_recovery(trial.calls, scenario.gold.actions)
    if verdict.kind != "pass":
        return verdict
    served = serve(scenario.gold, worked_calls(trial.calls))
    return verdict if served.complete else failed(join_reasons(served.faults.values()), *verdict.evidence)


@check(
    "abstains",
    "Where nothing in the catalog fits: does the model attempt nothing, change nothing, and answer in words?",
)
def abstained_when_unanswerable(trial: Trial, scenario: Scenario) -> Verdict:
    if not scenario.gold.unanswerable:
        return not_applicable("something in the catalog fits")
    attempts = [call for call in trial.calls if is_attempt(call) and not is_gated(call)]
    if attempts:
        unread = any(call.problem == "malformed" and isinstance(call.args, str) for call in attempts)
        why = "a call was attempted, though it could not be read" if unread else "an action was attempted"
        return failed(why, *call_evidence(attempts))
    changed = [path for path, fact in trial.files.items() if fact.changed]
    if changed:
        return failed("files were changed", *changed[:MOST_EVIDENCE])
    if trial.outcome != "ok":
        return failed("the model did not come to an answer")
    if not trial.answer.strip():
        return failed("there is no answer")
    missing = missing_words(scenario.says, trial.answer)
    if missing:
        return failed(f"the answer does not say {missing[0]!r}")
    return passed("nothing was attempted, and there is an answer")


@check(
    "attempts", "Where an action fits: does the model call any action at all, or does it refuse too readily?"
)
def attempted_when_answerable(trial: Trial, scenario: Scenario) -> Verdict:
    if scenario.gold.unanswerable:
        return not_applicable("nothing in the catalog fits")
    if not (scenario.gold.steps or scenario.expected):
        return not_applicable("the scenario needs no call")
    calls = [call for call in trial.calls if names_an_action(call)]
    if calls:
        return passed("an action was called", *call_evidence(calls))
    attempts = [call for call in trial.calls if is_attempt(call)]
    if attempts:
        return failed("what was called is no action, or could not be read", *call_evidence(attempts))
    return failed("no action was called")


@check(
    "acts or abstains rightly",
    "Does the model call an accepted action where one fits, and abstain where none does? "
    "Neither refusing nor calling always is enough.",
)
def decided_rightly(trial: Trial, scenario: Scenario) -> Verdict:
    if scenario.gold.unanswerable:
        return abstained_when_unanswerable(trial, scenario)
    return (
        right_action(trial, scenario) if scenario.gold.steps else attempted_when_answerable(trial, scenario)
    )
