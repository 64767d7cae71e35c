"""`%reyn eval SUITE`: how a model keeps to the catalog, measured on a suite of scenarios."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from reyn_jupyter.config import PROJECT_FILE
from reyn_jupyter.models.base import ModelError
from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line import completers
from reyn_jupyter.notebook.magic_line.options import Option, Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Table
from reyn_jupyter.sessions.session import Session

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.results.report import Report
    from reyn_jupyter.evaluation.run.budget import Budget
    from reyn_jupyter.evaluation.run.progress import RunSummary
    from reyn_jupyter.evaluation.study import Study


class EvalOptions(Options):
    suite: Annotated[str | None, Positional("SUITE")] = None
    model: Annotated[
        str | None,
        Option("-m", "A,B"),
        Field(
            description="a tier, offline, simulator, or a LiteLLM model string; several are compared with each other"
        ),
    ] = None
    variants: Annotated[
        str | None,
        Option(takes="a,b"),
        Field(
            description="variants of the suite to compare, the baseline first; without it its first two, or its first "
            "one with several models"
        ),
    ] = None
    n: Annotated[
        int | None,
        Option("-n", "N"),
        Field(ge=1, description="scenarios at most, from all families in proportion; all without it"),
    ] = None
    repeats: Annotated[
        int,
        Option(takes="N"),
        Field(ge=1, le=100, description="repeats of each scenario under each variant; 2 without it"),
    ] = 2
    stop: Annotated[
        Literal["fixed", "evalue"],
        Option(),
        Field(description="evalue stops once the evidence is strong enough"),
    ] = "fixed"
    check: Annotated[
        str | None,
        Option(takes="CHECK"),
        Field(description="the check that decides; the suite's primary check without it"),
    ] = None
    budget: Annotated[
        float | None, Option(takes="USD"), Field(gt=0, allow_inf_nan=False, description="US dollars at most")
    ] = None
    judge_budget: Annotated[
        float | None,
        Option(takes="USD"),
        Field(
            gt=0,
            allow_inf_nan=False,
            description="US dollars at most for all model graders of the suite together, apart from the trials",
        ),
    ] = None
    no_judge: Annotated[bool, Option(), Field(description="leave the suite's model graders unasked")] = False
    file: Annotated[
        str | None,
        Option(takes="FILE"),
        Field(description="the study's file; .reyn/studies/SUITE-MODEL.sqlite without it"),
    ] = None


def run(context: Context, options: EvalOptions) -> Any:
    if options.suite is None:
        return _suites()
    from reyn_jupyter.evaluation.checks import UnknownCheckError
    from reyn_jupyter.evaluation.run.lock import StudyBusyError
    from reyn_jupyter.evaluation.run.planning import PlanError
    from reyn_jupyter.evaluation.store.study_file import StoreError

    try:
        return _measured(context.session, options)
    except PlanError as error:
        hint = "Without a key, -m simulator shows how all of it looks."
        raise ReynError(str(error), hint if isinstance(error.__cause__, ModelError) else "") from error
    except (StoreError, StudyBusyError, UnknownCheckError) as error:
        said = str(error)
        hint = "--file FILE keeps this study in another file." if isinstance(error, StoreError) else ""
        raise ReynError(said[:1].upper() + said[1:], hint) from error


def _measured(session: Session, options: EvalOptions) -> Report | RunSummary:
    """Run the suite and report, or tell how the run ended where nothing was tried."""
    from reyn_jupyter.evaluation.run.budget import Budget
    from reyn_jupyter.evaluation.study import Study
    from reyn_jupyter.evaluation.study_places import choose_variants, default_study_file
    from reyn_jupyter.evaluation.suites import load_suite

    assert options.suite is not None
    suite = load_suite(options.suite)
    root, models = session.parts.root, _parts(options.model)
    chosen = choose_variants(suite, _parts(options.variants), models)
    study = Study(
        root / options.file if options.file is not None else default_study_file(root, suite.name, models),
        options.suite,
        root=root,
        budget=Budget(usd=options.budget) if options.budget is not None else None,
    )
    with study:
        if not options.no_judge:
            _refuse_unusable_graders(study)
        summary = study.run(
            *chosen,
            repeats=options.repeats,
            n=options.n,
            stop=options.stop,
            check=options.check,
        )
        ends: tuple[str, ...] = ()
        if summary.ended == "complete" and not options.no_judge:
            ends = _judge(study, Budget(usd=options.judge_budget))
        if not study.evidence.tried:
            return summary
        report = study.report()
        return replace(report, warnings=(*ends, *report.warnings))


def _refuse_unusable_graders(study: Study) -> None:
    """Refuse model graders that cannot be asked, before a trial costs anything."""
    try:
        study.check_graders()
    except ModelError as error:
        said = f"{error.message} {error.hint}".rstrip()
        raise ReynError(said, "--no-judge leaves the graders unasked.") from error


def _judge(study: Study, budget: Budget) -> tuple[str, ...]:
    """Let the suite's model graders judge the answers; return where one did not come to its end, a sentence each."""
    found = zip(study.parts.spec().graders, study.judge(budget=budget), strict=True)
    return tuple(f"{grader.name}: {judged!r}" for grader, judged in found if judged.left)


def _parts(text: str | None) -> list[str]:
    """Return the parts between commas, each once."""
    return list(dict.fromkeys(part for each in (text or "").split(",") if (part := each.strip())))


def _suites() -> Table:
    """Return what there is to run."""
    from reyn_jupyter.evaluation.suites import describe_suites

    rows = tuple({"suite": name, "asks": title} for name, title in describe_suites().items())
    return Table("suites", rows, "Suites", "%reyn eval SUITE -m MODEL runs one; -m simulator needs no key.")


def _completions(session: Session, before: list[str], word: str) -> list[str]:
    from reyn_jupyter.evaluation.suites import suite_names

    if before:
        return []
    files = sorted(path.name for path in session.parts.root.glob("*.y*ml") if path.name != PROJECT_FILE)
    return [*suite_names(), *files]


def _variant_names(session: Session, before: list[str], word: str) -> list[str]:
    """Return the suite's variants that are not named yet."""
    from reyn_jupyter.evaluation.suites import load_suite

    named = word.split(",")[:-1]
    return [name for name in load_suite(before[0]).variants if name not in named] if before else []


def _check_names(session: Session, before: list[str], word: str) -> list[str]:
    from reyn_jupyter.evaluation.checks import CHECKS

    return sorted(CHECKS)


def _models(session: Session, before: list[str], word: str) -> list[str]:
    return ["simulator", *completers.models(session, word.rpartition(",")[2])]


VERB = Verb(
    "eval",
    "the suites, or a study: how a model keeps to the catalog",
    run,
    EvalOptions,
    (
        "%reyn eval",
        "%reyn eval mandates -m simulator -n 20",
        "%reyn eval mandates -m light,standard -n 40",
        "%reyn eval mandates --variants generic-1x,explicit-3x -n 40",
        "%reyn eval abstention -m light --budget 2 --stop evalue",
    ),
    completes=_completions,
    values={"variants": _variant_names, "check": _check_names, "model": _models},
    group="measure",
)
