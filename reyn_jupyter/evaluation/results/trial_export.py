"""A study's trials as one file for other tools: Parquet, CSV or JSON lines. Never a pickle.

Invariants: the file is there whole or not at all, and every row says what its source is; no cell of a CSV file is a
formula, whatever a model wrote.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from reyn_jupyter.evaluation.results.trial_set import TrialSet
from reyn_jupyter.evaluation.store.event_codec import facts_text
from reyn_jupyter.evaluation.store.judgement_record import JudgementRecord
from reyn_jupyter.outputs.frames.parquet import write_parquet
from reyn_jupyter.support.files.replacement import replacement
from reyn_jupyter.support.user_errors import UserError

if TYPE_CHECKING:
    import pandas as pd


# A spreadsheet takes a cell that begins so for a formula. Source: OWASP, CSV Injection; the wide forms are read alike.
_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


class ExportError(UserError, ValueError):
    """A file that cannot be written; says why and what to do."""


def export_trials(evidence: TrialSet, table: pd.DataFrame, path: Path) -> Path:
    """Write trials.

    Args:
        evidence: the study's.
        table: one row a trial, for Parquet and CSV.
        path: ends in ``.parquet`` or ``.csv`` (one column a fact; in CSV what is missing is empty, and a text that a
            spreadsheet would take for a formula begins with an apostrophe) or ``.jsonl`` (whole trials, with the
            verdicts of all checks).

    Raises:
        ExportError: another ending, nothing that writes Parquet is installed, or the file cannot be written there.
    """
    kind = path.suffix.lower()
    if kind not in (".parquet", ".csv", ".jsonl"):
        raise ExportError(f"{path.name} names no format; let it end in .parquet, .csv or .jsonl")
    if path.is_dir():
        raise ExportError(f"{path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise ExportError(f"there is no folder {path.parent}; make it first, or name another file")
    try:
        with replacement(path) as part:
            if kind == ".jsonl":
                with part.open("w", encoding="utf-8") as file:
                    file.writelines(_lines(evidence))
            elif kind == ".csv":
                plain = table.rename(columns=_plain_cell)
                texts = plain.select_dtypes(include=["object", "string"]).columns
                plain[texts] = plain[texts].map(_plain_cell)
                # Every text in quotation marks: a lone carriage return would begin a line, and a cell, of its own.
                plain.to_csv(
                    part, index=False, encoding="utf-8", errors="replace", quoting=csv.QUOTE_NONNUMERIC
                )
            else:
                _parquet(table, part)
    except OSError as error:
        raise ExportError(f"{path} cannot be written ({error.strerror}); name another file") from error
    return path


def _plain_cell(value: object) -> object:
    """Return a text as a cell that no spreadsheet computes; anything else as it is.

    >>> _plain_cell("=1+1"), _plain_cell("2 - 1")
    ("'=1+1", '2 - 1')
    """
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def written_cell(value: str) -> str:
    """Return the text that an exported cell stands for.

    >>> written_cell("'=1+1"), written_cell("'tis")
    ('=1+1', "'tis")
    """
    return value[1:] if value.startswith("'") and _FORMULA.match(value, 1) else value


def _lines(evidence: TrialSet) -> Iterable[str]:
    judged = {grader.name for grader in evidence.graders}
    for trial in evidence.trials:
        scenario = evidence.scenarios[trial.scenario]
        verdicts = {}
        for name in evidence.checks:
            verdict = evidence.check(name).grade(trial, scenario)
            verdicts[name] = {"kind": verdict.kind, "value": verdict.value, "reason": verdict.reason}
            if name in judged and verdict.evidence:
                verdicts[name]["reply"] = verdict.evidence[0]
                record = JudgementRecord.found_in(verdict.evidence)
                verdicts[name] |= {} if record is None else {"judge": record.judge, "form": record.form}
        data = {**json.loads(facts_text(trial)), "family": scenario.family, "verdicts": verdicts}
        yield json.dumps(data) + "\n"


def _parquet(table: pd.DataFrame, path: Path) -> None:
    mode = path.stat().st_mode  # as the person's own files have it; a stored frame is for them alone
    if not write_parquet(table, path):
        lacking = "pip install 'reyn-jupyter[sql]', or " if find_spec("duckdb") is None else ""
        raise ExportError(f"the table could not be written as Parquet; {lacking}export to .csv or .jsonl")
    path.chmod(mode)
