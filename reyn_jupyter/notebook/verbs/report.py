"""`%reyn report [STUDY]`: the report of a study that `%reyn eval` ran, from its file; nothing is tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line.options import Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.session import Session

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.results.report import Report


class ReportOptions(Options):
    study: Annotated[str | None, Positional("STUDY")] = None


def run(context: Context, options: ReportOptions) -> Report:
    from reyn_jupyter.evaluation.store.study_file import StoreError
    from reyn_jupyter.evaluation.study import Study
    from reyn_jupyter.evaluation.study_places import find_study_file

    try:
        with Study.open(find_study_file(context.session.parts.root, options.study)) as study:
            return study.report()
    except StoreError as error:
        raise ReynError(str(error), "%reyn eval runs a study.") from error


def _completions(session: Session, before: list[str], word: str) -> list[str]:
    from reyn_jupyter.evaluation.study_places import study_files

    return [] if before else list(study_files(session.parts.root))


VERB = Verb(
    "report",
    "the report of a study again, from its file",
    run,
    ReportOptions,
    ("%reyn report", "%reyn report mandates-simulator"),
    completes=_completions,
    group="measure",
)
