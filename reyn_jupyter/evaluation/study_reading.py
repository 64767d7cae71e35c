"""What a study shows: trials, verdicts, comparisons, a report.

Invariant: all of it follows from the study's file, and nothing here tries anything that is not asked for by name
(`replay` and `fork` of one trial).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reyn_jupyter.evaluation.checks import find_check
from reyn_jupyter.evaluation.evidence import Evidence
from reyn_jupyter.evaluation.exporting import export_trials
from reyn_jupyter.evaluation.grading import grade_stored
from reyn_jupyter.evaluation.ordering import Wish
from reyn_jupyter.evaluation.spending import spent
from reyn_jupyter.evaluation.statistics.arms import Arm
from reyn_jupyter.evaluation.store_file import StoreError
from reyn_jupyter.evaluation.store_rows import Spent
from reyn_jupyter.evaluation.study_parts import StudyParts
from reyn_jupyter.evaluation.suite import Suite
from reyn_jupyter.evaluation.trials import Hands, TrialTable, TrialView
from reyn_jupyter.evaluation.variant import Variant
from reyn_jupyter.evaluation.verifying import StoreCheck, verify
from reyn_jupyter.sessions.wiring import ENGINE

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.comparison import Comparison
    from reyn_jupyter.evaluation.recommend import Recommendation
    from reyn_jupyter.evaluation.report import Report


class ReadableStudy:
    """The reading half of `Study`."""

    parts: StudyParts

    def __repr__(self) -> str:
        path = self.parts.store.path
        place = str(path) if path else None
        try:
            return (
                f"Study({place!r}, suite={self.parts.subject().name!r}, trials={len(self.evidence.trials)})"
            )
        except StoreError:  # closed, or its file is gone: still an object that can be looked at
            return f"Study({place!r}, closed)"

    @property
    def suite(self) -> Suite | None:
        """The scenarios, catalogs and suggested variants; None in a study that is open for reading."""
        return self.parts.suite

    @property
    def moved(self) -> tuple[str, ...]:
        """What is different from the last run of this file (suite, catalogs, code), a sentence each."""
        return self.parts.moved()

    @property
    def spent(self) -> Spent:
        """What all trials of the file have used: trials, calls, tokens, dollars, and what of that belongs to none that
        came to its end (`unfinished`)."""
        return spent(self.parts.store)

    @property
    def evidence(self) -> Evidence:
        """The trials that count, sorted into arms; what reports and comparisons are made from."""
        return self.parts.gathered().evidence

    @property
    def trials(self) -> TrialTable:
        """The trials that count."""
        evidence = self.evidence
        return TrialTable(evidence, tuple(evidence.trials), self._hands)

    @property
    def _hands(self) -> Hands:
        return Hands(self.parts.events, self._replay, self._fork)

    def _replay(self, view: TrialView) -> TrialView:
        self.parts.prepare()  # here, where nothing waits for the engine
        return ENGINE.run(self.parts.replay(view, self._hands))

    def _fork(self, view: TrialView, variant: Variant) -> TrialView:
        order = self.parts.order((variant,), Wish(repeats=1, retry=True))
        return ENGINE.run(self.parts.fork(view, order, self._hands))

    def verdicts(self, check: str | None = None) -> dict[str, Arm]:
        """Variant → scenario → repeat → value of a check, for `evaluation.statistics`. Raises UnknownCheckError."""
        evidence = self.evidence
        name = evidence.check(check or evidence.primary).name
        return {variant: evidence.arm(variant, name) for variant in evidence.tried}

    def grade(self, check: str) -> int:
        """Grade the stored trials by a check, without a model; how many verdicts were made. Those that its present
        version gave stay. Raises UnknownCheckError."""
        return grade_stored(self.parts.store, find_check(check))

    def regrade(self) -> int:
        """Grade all stored trials again, by every check of the suite; how many verdicts were made."""
        checks = self.parts.subject().checks
        return sum(grade_stored(self.parts.store, find_check(name), again=True) for name in checks)

    def verify(self) -> StoreCheck:
        """Read the whole file and prove that nothing in it is missing or doubled."""
        return verify(self.parts.store)

    def compare(self, a: str | Variant, b: str | Variant, check: str | None = None) -> Comparison:
        """Two variants under a check, the one that was named in advance if None; differences are b − a.

        Raises:
            EvidenceError: there is nothing to compare, or a variant was tried with other settings.
            UnknownCheckError: there is no such check.
        """
        from reyn_jupyter.evaluation.comparison import compare

        evidence = self.evidence
        return compare(evidence, evidence.name_of(a), evidence.name_of(b), check)

    def report(self) -> Report:
        """Everything that the study found."""
        from reyn_jupyter.evaluation.report import report

        return report(self.evidence)

    def recommend(self, model: str | None = None, check: str | None = None) -> Recommendation:
        """Settings for a model, from its trials; see `evaluation.recommend`. Raises RecommendationError."""
        from reyn_jupyter.evaluation.recommend import recommend

        return recommend(self.evidence, model, check)

    def export(self, path: str | Path) -> Path:
        """Write the trials to a ``.parquet`` or ``.jsonl`` file. Raises ExportError."""
        return export_trials(self.evidence, self.trials.df, Path(path).expanduser())
