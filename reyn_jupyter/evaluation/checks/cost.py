"""Measure the effort of a trial: calls, tokens, money, time, and how much of it had to be forgiven.

Invariant: what is not known is not applicable, never nought.
"""

from __future__ import annotations

from reyn_jupyter.evaluation.checks.check_registry import check
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.runtime.record.call_predicates import MOST_EVIDENCE
from reyn_jupyter.runtime.record.verdict import Verdict, not_applicable, number

FORGIVEN = frozenset({"decoded", "lifted", "coerced", "aliased", "salvaged", "repaired", "from_text"})


@check("forgiven", "How many mistakes in calls were put right mechanically?", numeric=True, better="less")
def forgiven(trial: Trial, scenario: Scenario) -> Verdict:
    flags = [f"step {call.step}: {flag}" for call in trial.calls for flag in call.flags if flag in FORGIVEN]
    return number(len(flags), f"{len(flags)} mistakes were put right", *flags[:MOST_EVIDENCE])


@check("tool calls", "How many tool calls does the model make?", numeric=True, better="less")
def calls(trial: Trial, scenario: Scenario) -> Verdict:
    return number(len(trial.calls), f"{len(trial.calls)} tool calls")


@check("model calls", "How often is the model asked?", numeric=True, better="less")
def model_calls(trial: Trial, scenario: Scenario) -> Verdict:
    return number(trial.model_calls, f"{trial.model_calls} model calls")


@check("tokens", "How many tokens go to the model and come back?", numeric=True, better="less")
def tokens(trial: Trial, scenario: Scenario) -> Verdict:
    total = trial.prompt_tokens + trial.completion_tokens
    if not total and trial.model_calls:
        return not_applicable("the tokens are not known")
    return number(total, f"{trial.prompt_tokens:,} tokens to the model, {trial.completion_tokens:,} from it")


@check("cost", "What does the trial cost, in US dollars?", numeric=True, better="less")
def cost(trial: Trial, scenario: Scenario) -> Verdict:
    if trial.cost is None:
        return not_applicable("the price of the model is not known")
    return number(trial.cost, f"${trial.cost:.6f}")


@check("seconds", "How long does the trial take?", numeric=True, better="less")
def seconds(trial: Trial, scenario: Scenario) -> Verdict:
    return number(trial.seconds, f"{trial.seconds:.2f} s")
