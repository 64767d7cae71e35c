"""The record that a judge's verdict leaves beside its reply: who judged, how, and what it took.

Invariant: what all judgements of a trial by one grader took stands in the last of them, so that a verdict that is
replaced takes nothing off what was spent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self, get_args

from reyn_jupyter.models.base import Model, canonical

ReplyForm = Literal["schema", "words"]


def judge_identity(model: Model) -> str:
    """Return what makes a model the same judge: its name, where it runs, and the parameters of its configuration.

    A tier stands for another model tomorrow; this is what it stands for today.

    Example:
        >>> from reyn_jupyter.models.scripted import ScriptedModel
        >>> judge_identity(ScriptedModel(label="a"))
        'a'
    """
    host = f" at {model.host}" if model.host else ""
    parameters: Mapping[str, Any] = getattr(model, "parameters", None) or {}
    given = f" with {canonical(dict(parameters)).decode()}" if parameters else ""
    return f"{model.label}{host}{given}"


@dataclass(frozen=True)
class JudgementRecord:
    """What is kept of one judgement.

    Attributes:
        judge: the model, see `judge_identity`.
        form: by what the reply was held to its form: "schema" where it was asked for by a JSON schema, and fits it.
        calls, tokens, usd, unpriced: what this judgement took, and the earlier ones of this trial.
        finish_reason: how the reply ended.
    """

    judge: str
    form: ReplyForm
    tokens: int
    usd: float
    unpriced: int
    finish_reason: str
    calls: int = 1

    def after(self, earlier: JudgementRecord | None) -> Self:
        """Return the record with what an earlier judgement of the trial took."""
        if earlier is None:
            return self
        return replace(
            self,
            calls=self.calls + earlier.calls,
            tokens=self.tokens + earlier.tokens,
            usd=self.usd + earlier.usd,
            unpriced=self.unpriced + earlier.unpriced,
        )

    @property
    def text(self) -> str:
        """The record as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, evidence: Sequence[str]) -> Self:
        """Return the record of a verdict's evidence.

        Raises:
            ValueError, TypeError, KeyError, OverflowError: it holds none.
        """
        *_, last = evidence
        found = json.loads(last)
        if found["form"] not in get_args(ReplyForm):
            raise ValueError("no form of a reply")
        return cls(
            judge=str(found["judge"]),
            form=found["form"],
            tokens=max(0, int(found["tokens"])),
            usd=max(0.0, float(found["usd"])),
            unpriced=max(0, int(found["unpriced"])),
            finish_reason=str(found["finish_reason"]),
            calls=max(1, int(found["calls"])),
        )

    @classmethod
    def found_in(cls, evidence: Sequence[str]) -> Self | None:
        """Return the record of a verdict's evidence; None where it holds none."""
        try:
            return cls.of(evidence)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            return None
