"""`Dataset`: what was read of a dataset of others: a suite, and all that could not become part of it.

Invariant: every row is in the suite or in `left_out`; what of a row its scenario does not hold is in `notes`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from reyn_jupyter.evaluation.datasets.bfcl import convert_bfcl
from reyn_jupyter.evaluation.datasets.conversion import Conversion, LeftOut
from reyn_jupyter.evaluation.datasets.rows import DatasetError, read_rows
from reyn_jupyter.evaluation.datasets.samples import convert_samples
from reyn_jupyter.evaluation.datasets.tau_bench import convert_tau_bench
from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog
from reyn_jupyter.evaluation.plan.suite import Suite, SuiteError
from reyn_jupyter.evaluation.plan.validation import whole
from reyn_jupyter.support.text import count, shorten

_CALLS = ("right_action", "arguments_correct", "hallucinated_name", "calls", "tokens", "cost")
_MOST_REASONS = 10  # of a summary
_LONGEST_REASON = 160  # characters of a reason in a summary


@dataclass(frozen=True, kw_only=True, repr=False)
class Dataset:
    """A dataset of others as a suite. Made by `from_bfcl`, `from_tau_bench` and `from_inspect`.

    Attributes:
        suite: the scenarios, with their catalogs.
        left_out: the rows that are no scenarios, each with its place and reason.
        notes: what scenarios do not hold of their rows → in how many.

    Example:
        >>> read = Dataset.from_bfcl("BFCL_v4_parallel.json")          # doctest: +SKIP
        >>> read                                                      # doctest: +SKIP
        Dataset('BFCL_v4_parallel', 198 scenarios; 2 rows left out)
        >>> Study("bfcl.sqlite", suite=read.suite)                    # doctest: +SKIP
    """

    suite: Suite
    left_out: tuple[LeftOut, ...] = ()
    notes: Mapping[str, int]

    def __repr__(self) -> str:
        left = f"; {count(len(self.left_out), 'row')} left out" if self.left_out else ""
        return f"Dataset({self.suite.name!r}, {count(len(self.suite.scenarios), 'scenario')}{left})"

    def __str__(self) -> str:
        """In lines: what there is, what was left out and why, and what the scenarios do not hold."""
        lines = [repr(self)]
        reasons = _reasons(self.left_out)
        lines += [f"  left out, {count(much, 'row')}: {why}" for why, much in reasons[:_MOST_REASONS]]
        if rest := sum(much for _, much in reasons[_MOST_REASONS:]):
            lines.append(f"  left out, {count(rest, 'row')}: for other reasons, see left_out")
        lines += [f"  in {count(much, 'row')}: {note}" for note, much in self.notes.items()]
        return "\n".join(lines)

    @classmethod
    def from_bfcl(
        cls, questions: str | Path, answers: str | Path | None = None, *, limit: int | None = None
    ) -> Dataset:
        """Read a file of questions of the Berkeley Function-Calling Leaderboard, v3 or v4.

        Each scenario offers the functions of its question as actions that only record their calls.

        Args:
            questions: the file, one JSON object a line.
            answers: the file with the accepted calls; when None, the one of the same name in the folder
                possible_answer beside it, where there is one.
            limit: how many questions, from the first.

        Raises:
            DatasetError: a file or a row that is none of the format, or no row that is a scenario.
        """
        path = _path(questions)
        beside = path.parent / "possible_answer" / path.name
        given = _path(answers) if answers is not None else beside if beside.is_file() else None
        rows = read_rows(path, limit=_limit(limit))
        made = convert_bfcl(rows, () if given is None else read_rows(given))
        return cls._of(path, made, "labelled calls of BFCL", "chain", _CALLS)

    @classmethod
    def from_tau_bench(cls, tasks: str | Path, tools: Any, *, limit: int | None = None) -> Dataset:
        """Read tasks of τ-bench or τ²-bench: which tools have to be called, with which arguments.

        Their tools, database and simulated person are Python and are not run: a scenario's request is what the person
        is told, and its tools record their calls and answer nothing. A rate is therefore not one of the benchmark.

        Args:
            tasks: τ²-bench's ``tasks.json``, trajectories of τ-bench, or tasks of either as a JSON list or lines.
            tools: the tools' schemas as records, the path of a file with them, or a `Catalog`; see
                `Catalog.from_records`.
            limit: how many rows, from the first.

        Raises:
            DatasetError: a file or a row that is none of the format, or no row that is a scenario.
            ToolRecordError: a tool that is none.
        """
        path = _path(tasks)
        catalog = tools if isinstance(tools, Catalog) else Catalog.from_records(tools)
        made = convert_tau_bench(read_rows(path, limit=_limit(limit)), catalog, _name(path))
        return cls._of(path, made, "tasks of τ-bench", "chain", _CALLS)

    @classmethod
    def from_inspect(
        cls,
        path: str | Path,
        *,
        split: str | None = None,
        fields: Mapping[str, str] | None = None,
        limit: int | None = None,
    ) -> Dataset:
        """Read a dataset of inspect_ai's, or of any file with a request and a target in each row.

        The scenarios run on the installed actions; done is what says the target, or one of several.

        Args:
            path: a .jsonl, .json, .csv, .parquet or .arrow file, or the folder of a Hugging Face dataset on this disk
                (``save_to_disk``).
            split: of a folder that has several.
            fields: field of a sample (input, target, id, metadata, family …) → the column that holds it.
            limit: how many rows, from the first.

        Raises:
            DatasetError: a file or a row that is none of the format, or no row that is a scenario.

        Example:
            >>> Dataset.from_inspect("gsm8k", split="test", fields={"input": "question"})   # doctest: +SKIP
        """
        place = _path(path)
        made = convert_samples(read_rows(place, split, _limit(limit)), _name(place), fields or {})
        return cls._of(place, made, "questions with targets", "task_done", ("calls", "tokens", "cost"))

    @classmethod
    def _of(cls, path: Path, made: Conversion, what: str, primary: str, checks: tuple[str, ...]) -> Dataset:
        if not made.scenarios:
            why = "; ".join(f"{much} × {why}" for why, much in _reasons(made.left_out)[:5])
            raise DatasetError(f"{path.name}: none of its rows is a scenario ({why or 'it has no rows'})")
        used = {scenario.catalog for scenario in made.scenarios}
        name = _name(path)
        try:
            suite = Suite(
                name=name,
                title=f"{count(len(made.scenarios), 'scenario')} of {name}: {what}",
                primary=primary,
                scenarios=tuple(made.scenarios),
                checks=(primary, *checks),
                catalogs={key: make for key, make in made.catalogs.items() if key in used},
            )
        except SuiteError as error:
            raise DatasetError(f"{path.name}: {error}") from error
        return cls(suite=suite, left_out=tuple(made.left_out), notes=MappingProxyType(dict(made.notes)))


def _reasons(left_out: Iterable[LeftOut]) -> list[tuple[str, int]]:
    return Counter(shorten(each.reason, _LONGEST_REASON) for each in left_out).most_common()


def _path(given: str | Path) -> Path:
    path = Path(given).expanduser()
    if not path.exists():
        raise DatasetError(
            f"{path} is not there; give a file, or the folder of a dataset that was saved to disk"
        )
    return path


def _name(path: Path) -> str:
    return path.resolve().name.partition(".")[0].replace(" ", "_")[:80] or "dataset"


def _limit(limit: int | None) -> int | None:
    return None if limit is None else whole("limit", limit, DatasetError)
