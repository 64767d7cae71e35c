"""`reyn`: studies from a terminal, without a notebook.

Invariants: `--help` imports no model library and no tables; what cannot be done is one message on the error stream and
never a traceback; what is shown goes to the output, all else to the error stream; an interrupt keeps what was done, and
the same line goes on with it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import sqlite3
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.text import count, did_you_mean, nearest_names, shorten
from reyn_jupyter.support.user_errors import UserError, sanitize
from reyn_jupyter.support.versions import version_of

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.plan.suite import Suite
    from reyn_jupyter.evaluation.results.report import Report
    from reyn_jupyter.evaluation.run.progress import RunSummary
    from reyn_jupyter.evaluation.study import Study

GOOD, WRONG, INTERRUPTED = 0, 1, 130
_FAILED = ("errors", "disk")  # how a run ends that somebody has to mend
_EXIT_CODES = (
    "exit codes: 0 it was done, or a limit that you set ended it; 1 it cannot be done, or the trials failed; "
    "130 interrupted, with all finished trials kept."
)


class _WrongUseError(UserError):
    """Words that the command does not take."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are those of the command."""

    def error(self, message: str) -> NoReturn:
        raise _WrongUseError(f"{message}. {self.prog} --help says what there is.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: the words after `reyn`; those of the process when None.

    Returns:
        The exit code: 0 when it was done, or when a limit that was set ended it; 1 when it cannot be done, or when the
        trials failed; 130 when it was interrupted.

    Example:
        >>> main(["suite", "check", "first-steps"])   # doctest: +ELLIPSIS
        first-steps: ... scenarios, ... variants; nothing is wrong with it.
        0
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options, more = _parser().parse_known_args(words)
        if more:
            _refuse_unknown(options.parser, more[0])
        code: int = options.run(options)
        sys.stdout.flush()
    except UserError as error:
        hint = getattr(error, "hint", "")
        said = str(error)
        _tell(f"reyn: {said}" if not hint or hint in said else f"reyn: {said} {hint}")
        return WRONG
    except KeyboardInterrupt:
        _tell("Interrupted before anything was done.")
        code = INTERRUPTED
    except BrokenPipeError:  # whoever reads has seen enough, as in `reyn study show | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return GOOD
    if code == INTERRUPTED:
        _tell(f"Go on with: {shlex.join(['reyn', *words])}")
    return code


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="reyn",
        description="Studies of models on suites of scenarios, without a notebook. A first one, which needs no key: "
        "reyn study run mandates -m simulator -n 20",
        epilog=_EXIT_CODES,
    )
    parser.add_argument("--version", action="version", version=f"reyn-jupyter {version_of('reyn-jupyter')}")
    parser.set_defaults(run=partial(_help, parser), parser=parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    study = commands.add_parser("study", help="run a study, show it, export its trials")
    study.set_defaults(run=partial(_help, study), parser=study)
    verbs = study.add_subparsers(title="commands", metavar="COMMAND")
    _add_run(
        verbs.add_parser(
            "run",
            help="try what is missing of a study",
            description="Try every scenario of a suite under each variant, as far as no earlier run did. The suite "
            "comes first: reyn study run mandates --variants generic-1x explicit-3x -m light. "
            "reyn study show tells what came of it.",
            epilog=_EXIT_CODES,
        )
    )
    show = verbs.add_parser("show", help="show the report of a study")
    show.add_argument("--json", action="store_true", help="for programs: one JSON object")
    show.add_argument(
        "--trial", nargs=2, metavar=("VARIANT", "SCENARIO"), help="what happened in the trials of a scenario"
    )
    export = verbs.add_parser(
        "export",
        help="write the trials, or the report",
        description="Write the trials to a .csv, .parquet or .jsonl file, the report to an .html or .md file, or, "
        "where OUT has no ending, a log of inspect_ai for each variant into that folder.",
    )
    show.add_argument("file", nargs="?", metavar="FILE", help=_FILE_HELP)
    export.add_argument("file", metavar="FILE", help="the study's file, or its name")
    export.add_argument("out", type=Path, metavar="OUT", help="the file to write, or a folder")
    suites = commands.add_parser("suites", help="list the suites, or what one of them holds")
    suites.add_argument("suite", nargs="?", metavar="SUITE", help="the name of a suite, or its .yaml file")
    suites.add_argument(
        "scenario",
        nargs="?",
        metavar="SCENARIO",
        help="one of its scenarios: what it asks, and what is right",
    )
    suite = commands.add_parser("suite", help="work on a suite of your own")
    suite.set_defaults(run=partial(_help, suite), parser=suite)
    check = suite.add_subparsers(title="commands", metavar="COMMAND").add_parser(
        "check", help="check a suite against its catalogs, without a model"
    )
    check.add_argument("suite", metavar="FILE", help="the suite's .yaml file")
    for command, act in ((show, _show), (export, _export), (suites, _suites), (check, _check)):
        command.set_defaults(run=act, parser=command)
    return parser


_FILE_HELP = "the study's file, or its name in .reyn/studies; without it the study that was tried last"


def _add_run(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("suite", metavar="SUITE", help="the name of a suite (reyn suites lists them), or its .yaml file")
    add(
        "--model", "-m", action="append", default=[], metavar="M",
        help="a tier, offline, simulator, local/~/FILE.gguf, or a LiteLLM model string; given again, the models are "
        "compared; without it what the variants name, else the tier standard",
    )  # fmt: skip
    add(
        "--variants", nargs="+", default=[], metavar="V",
        help="variants of the suite, the baseline first; its first two without it, its first one for several models",
    )  # fmt: skip
    add("--only", nargs="+", default=[], metavar="SCENARIO", help="these scenarios alone")
    add(
        "-n",
        type=_whole,
        metavar="N",
        help="scenarios at most, from all families in proportion; all without it",
    )
    add("--repeats", type=_whole, default=2, metavar="R", help="repeats of each scenario; 2 without it")
    add("--check", metavar="CHECK", help="the check that decides; the suite's primary one without it")
    add(
        "--stop", choices=("fixed", "evalue"), default="fixed",
        help="evalue ends the run once the evidence for a difference of two variants is strong enough",
    )  # fmt: skip
    add(
        "--file",
        type=Path,
        metavar="FILE",
        help="the study's file; .reyn/studies/SUITE-MODEL.sqlite without it",
    )
    add(
        "--dollars",
        type=_number,
        metavar="X",
        help="US dollars that the study may spend, its earlier runs included",
    )
    add(
        "--judge-dollars",
        type=_number,
        metavar="X",
        help="US dollars that all model graders together may spend, apart from that",
    )
    add("--no-judge", action="store_true", help="leave the suite's model graders unasked")
    add("--minutes", type=_number, metavar="T", help="minutes that this run may take")
    add("--concurrency", type=_whole, metavar="C", help="trials at a time at most, for each provider")
    add("--retry", action="store_true", help="try again what ended in an error or a timeout")
    parser.set_defaults(run=_run, parser=parser)


def _whole(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is no whole number above 0")
    return value


def _number(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no number above 0")
    return value


_whole.__name__, _number.__name__ = "whole number", "number"  # what argparse calls what it could not read


def _refuse_unknown(parser: argparse.ArgumentParser, word: str) -> NoReturn:
    """Refuse a word that a command does not take, with the option that was probably meant."""
    known = re.findall(r"--[a-z-]+", parser.format_usage())
    meant = did_you_mean(nearest_names(word.partition("=")[0], known, 1)) if word.startswith("-") else ""
    said = (f"{parser.prog} takes no {word!r}.", meant, f"{parser.prog} --help says what there is.")
    raise _WrongUseError(" ".join(filter(None, said)))


def _help(parser: argparse.ArgumentParser, _: argparse.Namespace) -> int:
    parser.print_help()
    return GOOD


def _run(options: argparse.Namespace) -> int:
    with _Interrupts(options.minutes) as interrupts:
        from reyn_jupyter.evaluation.run.budget import Budget
        from reyn_jupyter.evaluation.run.concurrency import Concurrency
        from reyn_jupyter.evaluation.run.terminal_progress import TerminalProgress
        from reyn_jupyter.evaluation.study import Study
        from reyn_jupyter.evaluation.study_places import choose_variants, default_study_file
        from reyn_jupyter.evaluation.suites import load_suite

        suite = load_suite(options.suite)
        suite = suite.only(*options.only) if options.only else suite
        if suite.allow_actions:
            _tell(_allowed(suite))
        variants = choose_variants(suite, options.variants, options.model)
        file = options.file or default_study_file(Path.cwd(), suite.name, options.model)
        most = options.concurrency
        pace = None if most is None else Concurrency(start=min(4, most), most=most, most_local=min(4, most))
        with (
            _without_empty(file),
            Study(file, suite, budget=Budget(usd=options.dollars), concurrency=pace) as study,
        ):
            _tell(f"Study {study.parts.store.path}: {', '.join(each.name for each in variants)}.")
            if not options.no_judge:
                _refuse_unusable_judges(study)
            listener = TerminalProgress(first=1.0)
            summary = study.run(
                *variants, n=options.n, repeats=options.repeats, retry=options.retry, on_progress=listener,
                check=options.check, stop=options.stop,
            )  # fmt: skip
            listener.end()
            _tell(repr(summary))
            judges = summary.ended == "complete" and not options.no_judge
            code = _judge(study, options.judge_dollars) if judges else _code(summary)
            interrupts.over()
            # Who interrupts waits for the end: a report takes tables and statistics to be imported.
            if (code != INTERRUPTED or interrupts.time_up) and study.evidence.tried:
                _say(str(study.report()))
                _tell(_as_python(study))
    if code == INTERRUPTED and interrupts.time_up:
        _tell("The time is up. The same line goes on.")
        return GOOD
    return code


def _code(summary: RunSummary) -> int:
    if summary.ended == "interrupted":
        return INTERRUPTED
    return WRONG if summary.ended in _FAILED else GOOD


@contextmanager
def _without_empty(file: Path) -> Iterator[None]:
    """Take a study's file away again where it was new and what was asked for was refused before the first trial."""
    new = not file.exists()
    try:
        yield
    except UserError:
        if new and file.is_file() and _is_empty(file):
            file.unlink(missing_ok=True)
        raise


def _is_empty(file: Path) -> bool:
    """Whether a study's file holds nothing, and nobody has it open."""
    holds = "SELECT (SELECT count(*) FROM trials) + (SELECT count(*) FROM runs)"
    try:
        with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as base:
            # SQLite leaves this mode only where no other connection has the file.
            alone = base.execute("PRAGMA journal_mode=DELETE").fetchone()[0] == "delete"
            return bool(alone and not base.execute(holds).fetchone()[0])
    except sqlite3.Error:
        return False


def _refuse_unusable_judges(study: Study) -> None:
    """Refuse model graders that cannot be asked, before a trial costs anything."""
    from reyn_jupyter.models.base import ModelError

    try:
        study.check_graders()
    except ModelError as error:
        said = f"{error.message} {error.hint}".rstrip()
        raise _WrongUseError(f"{said}\n--no-judge leaves the graders unasked.") from error


def _as_python(study: Study) -> str:
    return f"In Python this study is: study = reyn_jupyter.Study.open({str(study.parts.store.path)!r})"


def _judge(study: Study, dollars: float | None) -> int:
    """Let the suite's model graders judge the answers."""
    from reyn_jupyter.evaluation.run.budget import Budget

    found = study.judge(budget=Budget(usd=dollars))
    for grader, judged in zip(study.parts.spec().graders, found, strict=True):
        _tell(f"{grader.name}, judged by {grader.model}: {judged!r}")
    if any(judged.interrupted for judged in found):
        return INTERRUPTED
    return WRONG if any(judged.failed for judged in found) else GOOD


class _Interrupts:
    """Within it a signal to end and the end of the time both end a run as Ctrl-C does.

    Args:
        minutes: how long it may take; None for as long as it does.

    Attributes:
        time_up: whether it was the time that ended it.
    """

    _NAMES = ("SIGINT", "SIGTERM", "SIGHUP")

    def __init__(self, minutes: float | None) -> None:
        self.time_up = False
        self._before: dict[int, Any] = {}
        self._timer = threading.Timer(60 * minutes, self._end_of_time) if minutes is not None else None

    def __enter__(self) -> _Interrupts:
        for number in (getattr(signal, name) for name in self._NAMES if hasattr(signal, name)):
            # nohup ignores SIGHUP; an interrupt is ignored only where a shell began this in the background.
            if number == signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._strike)
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def over(self) -> None:
        """Let the time end nothing any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _end_of_time(self) -> None:
        self.time_up = True
        signal.raise_signal(signal.SIGINT)

    @staticmethod
    def _strike(*_: object) -> NoReturn:
        raise KeyboardInterrupt


@contextmanager
def _opened(name: str | None) -> Iterator[Study]:
    from reyn_jupyter.evaluation.study import Study
    from reyn_jupyter.evaluation.study_places import find_study_file

    with Study.open(
        find_study_file(Path.cwd(), None if name is None else str(Path(name).expanduser()))
    ) as study:
        yield study


def _show(options: argparse.Namespace) -> int:
    with _opened(options.file) as study:
        if options.trial:
            _say(_transcripts(study, *options.trial))
            return GOOD
        report = study.report()
        if options.json:
            _say(json.dumps(_plain(study, report), indent=2))
            return GOOD
        _say(_text(report, knob=f"reyn study export {shlex.quote(options.file or _name(study))} report.html"))
        _tell(_as_python(study))
    return GOOD


def _name(study: Study) -> str:
    return Path(study.parts.store.path or "").stem


def _transcripts(study: Study, variant: str, scenario: str) -> str:
    """Return what happened in each trial of a scenario under a variant, with the verdict of each check."""
    of_variant = list(study.trials.of(variant))
    found = [each for each in of_variant if each.trial.scenario == scenario]
    if not found:
        tried = sorted({each.trial.scenario for each in of_variant})
        meant = did_you_mean(nearest_names(scenario, tried))
        if not meant:
            known = tried or sorted({each.trial.variant for each in study.trials})
            meant = f"{'Its scenarios' if tried else 'The variants'} are {shorten(', '.join(known), 1_000)}."
        raise _WrongUseError(f"There is no trial of {scenario!r} under {variant!r}. {meant}".rstrip())
    knob = f"reyn study export {shlex.quote(_name(study))} trials.jsonl"
    return "\n\n".join(_text(each, knob, roomy=True) for each in found)


def _plain(study: Study, report: Report) -> dict[str, Any]:
    """Return a report as plain JSON."""
    spent = study.spent
    return {
        "file": str(study.parts.store.path),
        "suite": study.parts.spec().name,
        "primary": report.evidence.primary,
        "finding": report.finding,
        "sentence": report.sentence,
        "advice": report.advice,
        "warnings": list(report.warnings),
        "figures": json.loads(report.df.to_json(orient="records")),
        "comparisons": [each.sentence for each in report.comparisons],
        "spent": {"trials": spent.trials, "calls": spent.calls, "tokens": spent.tokens, "usd": spent.usd},
    }


def _export(options: argparse.Namespace) -> int:
    with _opened(options.file) as study:
        ending = options.out.suffix.lower()
        if not ending or options.out.is_dir():
            for path in study.export_inspect_logs(options.out):
                _say(str(path))
        elif ending in (".html", ".htm", ".md"):
            from reyn_jupyter.notebook.export import export

            export(options.out, study.report())
            _say(str(options.out))
        else:
            _say(str(study.export(options.out)))
    return GOOD


def _suites(options: argparse.Namespace) -> int:
    from reyn_jupyter.evaluation.suites import describe_suites, load_suite

    if options.suite is None:
        titles = describe_suites()
        wide = max(map(len, titles))
        _say("\n".join(f"{name:<{wide}}  {title}" for name, title in titles.items()))
        return GOOD
    suite = load_suite(options.suite)
    if options.scenario is not None:
        _say(_text(suite.scenario(options.scenario)))
        return GOOD
    _say(_text(suite))
    _say("\nScenarios")
    _say("\n".join(f"  {each.id}" for each in suite.scenarios))
    _tell(f"One of them: {shlex.join(['reyn', 'suites', options.suite, suite.scenarios[0].id])}")
    return GOOD


def _check(options: argparse.Namespace) -> int:
    from reyn_jupyter.evaluation.suites import check_suite, load_suite, suite_names

    suite: Suite = load_suite(options.suite)
    if options.suite in suite_names():  # a file was held to its catalogs when it was loaded
        check_suite(suite)
    holds = f"{count(len(suite.scenarios), 'scenario')}, {count(len(suite.variants), 'variant')}"
    holds += f", {count(len(suite.graders), 'model grader')}" if suite.graders else ""
    _say(f"{options.suite}: {holds}; nothing is wrong with it.")
    if suite.allow_actions:
        _say(_allowed(suite))
    return GOOD


def _allowed(suite: Suite) -> str:
    """Return what a suite lets its trials do, which is said before they run."""
    return f"The suite lets its trials act outside their own workspaces: {', '.join(suite.allow_actions)}."


def _text(shown: object, knob: str = "", *, roomy: bool = False) -> str:
    """Return an object as a terminal shows it.

    Args:
        shown: what a notebook shows too; the commands of a notebook that its view proposes are left out.
        knob: what shows all of it, where not all of it fits a text.
        roomy: give it the space of a report.
    """
    from reyn_jupyter.notebook.render.blocks import Commands
    from reyn_jupyter.notebook.render.displayables import view
    from reyn_jupyter.notebook.render.hosts.plain_text import to_text
    from reyn_jupyter.support.secrets import environment_redaction

    seen = view(shown, redact=environment_redaction())
    blocks = tuple(each for each in seen.blocks if not isinstance(each, Commands))
    return to_text(replace(seen, blocks=blocks, knob=knob or seen.knob), roomy=roomy).rstrip("\n")


def _say(text: str) -> None:
    sys.stdout.write(f"{visible(text)}\n")


def _tell(text: str) -> None:
    sys.stderr.write(f"{sanitize(text)}\n")
    sys.stderr.flush()
