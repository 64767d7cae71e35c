"""The trials of a study given to a judge, those that it has not judged yet.

Invariants: a verdict is stored as soon as it is there, also where an interrupt comes with it, and never asked of the
same model twice unless somebody asks again; another model behind the same name is another judge. What a judge uses is
counted with its verdicts and never with the trials; a call that failed leaves the trial ungraded, and the next time it
is asked again.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.evaluation.checks import is_missing
from reyn_jupyter.evaluation.checks.check import Check
from reyn_jupyter.evaluation.judging.judgement import FORM_REQUESTS, FormRequest, Judgement, draw_key
from reyn_jupyter.evaluation.plan.model_grader import ModelGrader
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.run.budget import Budget, Ledger
from reyn_jupyter.evaluation.store.judgement_record import JudgementRecord, judge_identity
from reyn_jupyter.evaluation.store.rows import StudyUsage
from reyn_jupyter.evaluation.store.store import Store
from reyn_jupyter.evaluation.trial.trial import Trial, TrialUsage
from reyn_jupyter.models.base import LASTING, ErrorKind, Model, ModelError, Response
from reyn_jupyter.models.retry import RetryingModel
from reyn_jupyter.runtime.record.verdict import Verdict, not_applicable
from reyn_jupyter.support.text import count

_AT_A_TIME = 4
_GIVE_UP = 10  # calls that failed, after which nothing is gained by going on
# What a provider says that does not take the form of a reply.
_REFUSALS: frozenset[ErrorKind] = frozenset({"bad_request", "unsupported", "tool_choice"})
_FORMATS = (
    "response_format",
    "grammar",
    "guided_json",
)  # parameters by which a grader asks for a form itself
_FIRST = StudyUsage(
    trials=1, calls=1, tokens=2_000
)  # what a judgement is expected to use before there was one


@dataclass
class JudgeSummary:
    """The outcome of judging.

    Attributes:
        judged: verdicts of this time, the unreadable ones among them.
        by_schema: those among them whose reply was held to a JSON schema; the others were asked for in words alone.
        unreadable: replies that held no verdict; these trials stay ungraded.
        failed: calls that failed; these trials are asked about again the next time.
        left: trials that have no verdict of the judge.
        calls, tokens, usd: what judging used, this time; apart from all trials.
        reason: why it ended before all were judged; "" where they were.
        interrupted: whether that was an interrupt.
    """

    judged: int = 0
    by_schema: int = 0
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
        said += [f"{self.by_schema} of them held to a schema"] if self.by_schema else []
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


def judgement_records(store: Store, grader: ModelGrader) -> dict[int, JudgementRecord]:
    """Return the record of each trial's verdict of a grader, by the trial's row. Raises StoreError."""
    query = 'SELECT trial, evidence FROM verdicts WHERE "check" = ? AND version = ?'
    with store.reading(f"a verdict of {grader.name}"):
        return {
            number: JudgementRecord.of(json.loads(evidence))
            for number, evidence in store.rows(query, (grader.name, grader.version))
        }


def judge_usage(records: Iterable[JudgementRecord]) -> StudyUsage:
    """Return what judgements took, those among it whose verdicts were replaced."""
    kept = tuple(records)
    calls = sum(each.calls for each in kept)
    return StudyUsage(
        trials=calls,
        calls=calls,
        tokens=sum(each.tokens for each in kept),
        usd=sum(each.usd for each in kept),
        unpriced=sum(each.unpriced for each in kept),
    )


class JudgePass:
    """One pass of a judge over the trials of a study.

    Args:
        store: the study's file.
        grader: what is asked.
        model: who is asked.
        budget: what all judgements in the file may use, of this grader and of `others`, this pass and replaced verdicts
            among them.
        code: the version of the code whose trials count.
        again: ask about trials that have a verdict too.
        others: graders whose judgements the budget is for as well.
    """

    def __init__(
        self,
        store: Store,
        grader: ModelGrader,
        model: Model,
        budget: Budget,
        code: str | None = None,
        again: bool = False,
        others: Iterable[ModelGrader] = (),
    ) -> None:
        self._store, self._grader, self._budget = store, grader, budget
        self._real, self._model = model.real, RetryingModel(model)
        self._check = judged_check(grader)
        self._identity, self._key = judge_identity(model), draw_key()
        self._form: FormRequest = FORM_REQUESTS[0]
        if any(name in {**grader.parameters, **_extra_body(grader)} for name in _FORMATS):
            self._form = "words"
        self._records = judgement_records(store, grader)
        own = {row: each for row, each in self._records.items() if each.judge == self._identity}
        spent = judge_usage(own.values())
        # Of a judge whose price is not known yet the first judgement runs alone, as with trials.
        known_price = budget.usd is None or spent.calls
        of_all = [*self._records.values()]
        for other in others:
            of_all += judgement_records(store, other).values()
        self._ledger = Ledger(budget, judge_usage(of_all), {grader.digest: _FIRST} if known_price else {})
        if spent.calls:
            each = TrialUsage(1, 1, math.ceil(spent.tokens / spent.calls), spent.usd / spent.calls)
            self._ledger.expect(grader.digest, each)
        self._scenarios = store.scenarios()
        known = frozenset() if again else own.keys()
        todo = [each for each in store.trials(code) if each.id not in known and not is_missing(each.trial)]
        self.summary = JudgeSummary(left=len(todo))
        self._queue = todo[::-1]
        self._interrupted = False  # whether the pass is to end as soon as what came is kept

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
                    self._grader, self._scenarios[stored.scenario], stored.trial, key=self._key))  # fmt: skip
            finally:
                self._ledger.settle(need, self._grader.digest, None, used)
            if self._interrupted:
                raise asyncio.CancelledError

    async def _judge(self, number: int, judgement: Judgement) -> TrialUsage:
        """Ask, and keep what came, also where an interrupt came first: it is paid for."""
        summary = self.summary
        call = asyncio.ensure_future(self._ask(judgement))
        self._interrupted |= await _outlast(call, cancel=True)
        try:
            response, form = call.result()  # raises CancelledError where nothing had come
        except ModelError as error:
            summary.failed += 1
            if error.kind in LASTING or summary.failed >= _GIVE_UP:
                summary.reason = f"Stopped: {error}"
            return TrialUsage()
        keeping = asyncio.ensure_future(self._keep(number, judgement, response, form))
        self._interrupted |= await _outlast(keeping)
        return keeping.result()

    async def _ask(self, judgement: Judgement) -> tuple[Response, FormRequest]:
        """Return the judge's response, and by what form of a reply it was asked: the first one that it takes."""
        for form in FORM_REQUESTS[FORM_REQUESTS.index(self._form) :]:
            try:
                response = await self._model.complete(judgement.request(form))
            except ModelError as error:
                if form == "words" or error.kind not in _REFUSALS:
                    raise
            else:
                self._form = max(self._form, form, key=FORM_REQUESTS.index)
                return response, form
        raise AssertionError("a reply in words returns or raises")

    async def _keep(
        self, number: int, judgement: Judgement, response: Response, form: FormRequest
    ) -> TrialUsage:
        """Store the verdict of a reply, then count it."""
        summary, earlier = self.summary, self._records.get(number)
        verdict = judgement.verdict(response, self._identity, form, earlier)
        await asyncio.to_thread(self._store.grade, self._check, [(number, verdict)])
        usd = response.cost or 0.0
        summary.judged, summary.left = summary.judged + 1, summary.left - 1
        summary.by_schema += JudgementRecord.of(verdict.evidence).form == "schema"
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


def _extra_body(grader: ModelGrader) -> dict[str, Any]:
    found = grader.parameters.get("extra_body")
    return dict(found) if isinstance(found, dict) else {}


async def _outlast(task: asyncio.Future[Any], *, cancel: bool = False) -> bool:
    """Wait for the end of a task, whatever cancels the waiting.

    Args:
        task: what to wait for; it may fail.
        cancel: pass a cancellation on to it.

    Returns:
        Whether the waiting was cancelled.
    """
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            cancelled = True
            if cancel:
                task.cancel()
    return cancelled
