"""Count how the harness helped a weak model, by the kind of help; each key of `router.weak` that acted has its check.

Invariant: what was not recorded is not applicable, never nought.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from reyn_jupyter.evaluation.checks.check_registry import check
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.runtime.record.verdict import Verdict, not_applicable, number
from reyn_jupyter.support.text import enumerate_words

# Kind of help (`events.Help`, and the context that was shrunk) → what the harness did.
HELP_WORDS: Mapping[str, str] = MappingProxyType({
    "text_calls": "calls read from text",
    "repeats": "repeats pointed to their result",
    "closed": "turns closed after repeats",
    "asked_again": "answers asked for again",
    "unsupported": "answers marked as unsupported",
    "short_errors": "errors put in short",
    "required_first": "actions offered with their required arguments alone",
    "writes_left_out": "changing calls of one reply left out",
    "shrunk": "messages shortened to fit the context",
})  # fmt: skip


@check("help used", "How often does the harness help the model, in whichever way?", numeric=True, better=None)
def help_used(trial: Trial, scenario: Scenario) -> Verdict:
    if trial.helped is None:
        return not_applicable("the version that ran the trial did not record its help")
    said = [f"{times} {HELP_WORDS.get(kind, kind)}" for kind, times in trial.helped.items() if times]
    return number(sum(trial.helped.values()), enumerate_words(said) or "the harness did not help", *said)


def _register(kind: str, words: str) -> None:
    def count_help(trial: Trial, scenario: Scenario) -> Verdict:
        if trial.helped is None:
            return not_applicable("the version that ran the trial did not record its help")
        times = trial.helped.get(kind, 0)
        return number(times, f"{times} {words}")

    count_help.__name__ = f"help_{kind}"
    check(f"help: {words}", f"How many {words} are there?", numeric=True, better=None)(count_help)


for _kind, _words in HELP_WORDS.items():
    _register(_kind, _words)
