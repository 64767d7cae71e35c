"""`%reyn report [STUDY]`: the report of a study that `%reyn eval` ran, from its file; nothing is tried again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.options import Options, Positional
from reyn_jupyter.notebook.verb import Context, Verb
from reyn_jupyter.notebook.verbs.eval_ import FOLDER
from reyn_jupyter.sessions.session import Session
from reyn_jupyter.support.text import did_you_mean, nearest_names

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.results.report import Report


class ReportOptions(Options):
    study: Annotated[str | None, Positional("STUDY")] = None


def run(context: Context, options: ReportOptions) -> Report:
    from reyn_jupyter.evaluation.store.study_file import StoreError
    from reyn_jupyter.evaluation.study import Study

    try:
        with Study.open(_file(context.session, options.study)) as study:
            return study.report()
    except StoreError as error:
        raise ReynError(str(error), "%reyn eval runs a study.") from error


def _file(session: Session, name: str | None) -> Path:
    """Return the file that a name means: a path, a study of `%reyn eval`, or without one the study tried last."""
    root = session.parts.root
    studies = {file.stem: file for file in (root / FOLDER).glob("*.sqlite")}
    if name is None:
        if not studies:
            raise ReynError("No study was run here yet.", "%reyn eval mandates -m simulator")
        return max(studies.values(), key=lambda file: file.stat().st_mtime)
    if name in studies:
        return studies[name]
    if (root / name).is_file():
        return root / name
    near = did_you_mean(nearest_names(name, studies))
    raise ReynError(f"There is no study {name!r}.", near or "%reyn eval runs one.")


def _completions(session: Session, before: list[str], word: str) -> list[str]:
    return [] if before else sorted(file.stem for file in (session.parts.root / FOLDER).glob("*.sqlite"))


VERB = Verb(
    "report",
    "the report of a study again, from its file",
    run,
    ReportOptions,
    ("%reyn report", "%reyn report mandates-simulator"),
    completes=_completions,
    group="measure",
)
