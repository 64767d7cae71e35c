"""The trials of a study given to a judge, those that it has not judged yet.

Invariants: a verdict is stored as soon as it is there, and never asked for twice unless somebody asks again; what a
judge uses is counted with its verdicts and never with the trials; a call that failed leaves the trial ungraded, and the
next time it is asked again.
"""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass

from reyn_jupyter.evaluation.checks import is_missing
from reyn_jupyter.evaluation.checks.verdict import Check, Verdict, not_applicable
from reyn_jupyter.evaluation.judging.judgement import Judgement
from reyn_jupyter.evaluation.plan.model_grader import ModelGrader
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.run.budget import Budget, Ledger
from reyn_jupyter.evaluation.store.rows import StudyUsage
from reyn_jupyter.evaluation.store.store import Store
from reyn_jupyter.evaluation.trial.trial import Trial, TrialUsage
from reyn_jupyter.models.base import LASTING, Model, ModelError
from reyn_jupyter.models.retry import RetryingModel
from reyn_jupyter.support.text import count

_AT_A_TIME = 4
_GIVE_UP = 10  # calls that failed, after which nothing is gained by going on
_FIRST = StudyUsage(
    trials=1, calls=1, tokens=2_000
)  # what a judgement is expected to use before there was one


@dataclass
class JudgeSummary:
    """The outcome of judging.

    Attributes:
        judged: verdicts of this time, the unreadable ones among them.
        unreadable: replies that held no verdict; these trials stay ungraded.
        failed: calls that failed; these trials are asked about again the next time.
        left: trials that have no verdict of the judge.
        calls, tokens, usd: what judging used, this time; apart from all trials.
        reason: why it ended before all were judged; "" where they were.
        interrupted: whether that was an interrupt.
    """

    judged: int = 0
    unreadable: int = 0
    failed: int = 0
    left: int = 0
    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    reason: str = ""
    interrupted: bool = False

    def __repr__(self) -> str:
        said = [f"{count(self.judged, 'trial')} judged"]
        said += [f"{self.unreadable} of them with no verdict that can be read"] if self.unreadable else []
        said += [f"{count(self.failed, 'call')} failed"] if self.failed else []
        said += [f"{count(self.left, 'trial')} left"] if self.left else []
        cost = f", ${self.usd:,.4f}" if self.usd else ""
        return f"{', '.join(said)}; {self.tokens:,} tokens{cost}. {self.reason}".rstrip()


def judged_check(grader: ModelGrader) -> Check:
    """Return the check of a judge, under which its verdicts are stored; it asks nobody."""

    def grade(trial: Trial, scenario: Scenario) -> Verdict:
        return not_applicable("a judge is asked by study.judge()")

    return Check(grader.name, grader.label, grader.rubric, grade, version=grader.version)


def judge_usage(store: Store, grader: ModelGrader) -> StudyUsage:
    """Return what the verdicts that are stored took, the last judgement of each trial."""
    calls, tokens, usd, unpriced = 0, 0, 0.0, 0
    query = 'SELECT evidence FROM verdicts WHERE "check" = ? AND version = ?'
    for (evidence,) in store.rows(query, (grader.name, grader.version)):
        with store.reading(f"a verdict of {grader.name}"):
            *_, last = json.loads(evidence)
            facts = json.loads(last)
            calls, tokens = calls + 1, tokens + max(0, facts["tokens"])
            usd += max(0.0, facts["usd"] or 0.0)
            unpriced += facts["usd"] is None
    return StudyUsage(trials=calls, calls=calls, tokens=tokens, usd=usd, unpriced=unpriced)


class JudgePass:
    """One pass of a judge over the trials of a study.

    Args:
        store: the study's file.
        grader: what is asked.
        model: who is asked.
        budget: what the judgements of this grader may use, earlier ones included.
        code: the version of the code whose trials count.
        again: ask about trials that have a verdict too.
    """

    def __init__(
        self,
        store: Store,
        grader: ModelGrader,
        model: Model,
        budget: Budget,
        code: str | None = None,
        again: bool = False,
    ) -> None:
        self._store, self._grader, self._budget = store, grader, budget
        self._real, self._model = model.real, RetryingModel(model)
        self._check = judged_check(grader)
        spent = judge_usage(store, grader)
        # Of a judge whose price is not known yet the first judgement runs alone, as with trials.
        known_price = budget.usd is None or spent.calls
        self._ledger = Ledger(budget, spent, {grader.digest: _FIRST} if known_price else {})
        if spent.calls:
            each = TrialUsage(1, 1, math.ceil(spent.tokens / spent.calls), spent.usd / spent.calls)
            self._ledger.expect(grader.digest, each)
        self._scenarios = store.scenarios()
        known = set() if again else store.graded(self._check)
        todo = [each for each in store.trials(code) if each.id not in known and not is_missing(each.trial)]
        self.summary = JudgeSummary(left=len(todo))
        self._queue = todo[::-1]

    async def run(self) -> JudgeSummary:
        """Judge what is to be judged. Raises StoreError where a verdict cannot be kept."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(_AT_A_TIME):
                    group.create_task(self._work())
        except ExceptionGroup as errors:  # all stop with the first one
            raise errors.exceptions[0] from None
        return self.summary

    async def _work(self) -> None:
        while self._queue and not self.summary.reason:
            stored = self._queue.pop()
            need = await self._ledger.reserve(self._grader.digest)
            if need is None:
                self.summary.reason = f"Stopped: {self._ledger.exhausted}."
                return
            used = TrialUsage()
            try:
                used = await self._judge(stored.id, Judgement(
                    self._grader, self._scenarios[stored.scenario], stored.trial))  # fmt: skip
            finally:
                self._ledger.settle(need, self._grader.digest, None, used)

    async def _judge(self, number: int, judgement: Judgement) -> TrialUsage:
        summary = self.summary
        try:
            response = await self._model.complete(judgement.request)
        except ModelError as error:
            summary.failed += 1
            if error.kind in LASTING or summary.failed >= _GIVE_UP:
                summary.reason = f"Stopped: {error}"
            return TrialUsage()
        verdict = judgement.verdict(response)
        await asyncio.to_thread(self._store.grade, self._check, [(number, verdict)])
        usd = response.cost or 0.0
        summary.judged, summary.left = summary.judged + 1, summary.left - 1
        summary.unreadable += verdict.kind == "na"
        summary.calls, summary.tokens = summary.calls + 1, summary.tokens + response.usage.total
        summary.usd += usd
        if self._budget.usd is not None and self._real and response.cost is None:
            summary.reason = (
                f"Stopped: the price of {self._grader.model} is not known, so dollars cannot be counted."
            )
        used = TrialUsage(trials=1, calls=1, tokens=response.usage.total, usd=usd)
        self._ledger.expect(self._grader.digest, used)
        return used
