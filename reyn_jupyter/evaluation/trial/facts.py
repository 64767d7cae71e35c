"""The facts of a trial, projected from its run's events.

Invariant: what is stated is what the record says: a cost that is not known stays unknown, a call that did not finish is
neither good nor bad, and whatever the model itself did is no error of the trial.
"""

from __future__ import annotations

from typing import Any

from reyn_jupyter.evaluation.trial.confinement import BY
from reyn_jupyter.evaluation.trial.trial import Outcome, Trial
from reyn_jupyter.runtime.record.call_facts import offered_surface
from reyn_jupyter.runtime.record.events import NOT_FORCED, ModelReplied
from reyn_jupyter.runtime.record.trace import Trace

NOT_THE_VARIANT = f"the variant was not in force: {NOT_FORCED}"
_OVERFLOW = "context_too_long"


def denied_actions(trace: Trace) -> tuple[str, ...]:
    """Return the actions of a run that were denied because a trial acts on nothing outside its workspace, each once."""
    calls = (call for run in (trace, *trace.all_inner) for call in run.calls)
    decisions = (each for call in calls for each in (call.decision, *call.further))
    return tuple(
        dict.fromkeys(each.name for each in decisions if each and (each.by, each.decision) == (BY, "denied"))
    )


def help_counts(trace: Trace) -> dict[str, int]:
    """Return how often the harness helped the model of a run, by kind; see `Trial.helped`."""
    counts = dict(trace.ended.helped) if trace.ended is not None else {}
    asked = (step.requested for step in trace.steps if step.requested is not None)
    counts["shrunk"] = sum(len(request.shrunk) for request in asked)
    return {kind: times for kind, times in counts.items() if times}


def outcome_of(trace: Trace, *, timed_out: bool) -> tuple[Outcome, str | None]:
    """Return how a trial ended, and why in words. Where the model answered to the last, it is not the trial that
    failed; where the provider refused what the variant is about, it is none of that variant; and a request that grew
    longer than the model takes is a limit that the trial reached."""
    if timed_out:
        return "timeout", "the trial took longer than it may"
    notes = trace.ended.notes if trace.ended else ()
    if any(step.requested is not None and step.requested.not_forced for step in trace.steps):
        return "error", NOT_THE_VARIANT
    if trace.status == "limit":
        return "limit", trace.error or "; ".join(notes) or None
    if trace.status == "ok":
        return "ok", None
    last = _last_reply(trace)
    if trace.status == "error" and last is not None and last.error is None:
        return "ok", trace.error  # the model was heard, and said nothing that could be used
    if last is not None and last.error_kind == _OVERFLOW:  # it is the model that filled its context
        return "limit", f"{_OVERFLOW}: {trace.error or trace.status}"
    kind = f"{last.error_kind}: " if last is not None and last.error_kind else ""
    return "error", f"{kind}{trace.error or trace.status}"


def is_overflow(trial: Trial) -> bool:
    """Return whether a trial ended because its request was longer than the model takes."""
    return (trial.error or "").startswith(f"{_OVERFLOW}:")


def _last_reply(trace: Trace) -> ModelReplied | None:
    return next((step.replied for step in reversed(trace.steps) if step.replied is not None), None)


def effort(trace: Trace) -> dict[str, Any]:
    """Return the fields of a trial that say what was offered, what it took, who answered and whether to the end."""
    replies = [step.replied for step in trace.steps if step.replied is not None]
    answered = [reply for reply in replies if reply.error is None]
    costs = [reply.cost for reply in answered]
    known = [cost for cost in costs if cost is not None]
    prints = dict.fromkeys(reply.fingerprint for reply in replies if reply.fingerprint)
    return {
        "surface": offered_surface(trace),
        "cut_off": bool(answered) and answered[-1].finish_reason == "length",
        "model_calls": len(replies),
        "prompt_tokens": sum(reply.prompt_tokens for reply in replies),
        "completion_tokens": sum(reply.completion_tokens for reply in replies),
        "cost": sum(known) if len(known) == len(costs) else None,
        "seconds": trace.seconds,
        "retries": sum(reply.retries for reply in replies),
        "model": trace.model or "",
        "host": trace.started.host,
        "fingerprints": tuple(prints),
        "started": trace.started.at,
        "run": trace.run,
    }
