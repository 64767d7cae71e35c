"""What helps a very small model, tried on a real one within some minutes: ``python -m tests.evidence``.

Each variant of the suite `first-steps` is tried on the same scenarios, one after the other, until the time is over; the
trials lie in a study's file under ``build/``, and another run goes on where the last one stopped. ``--write`` puts the
table into the manual (`docs/evidence.md`, between its markers) and the trials beside it. There are three tables: what
each help does (``--table helps``), what is left of it among more actions (``--table sizes``), and what a model that
is not on the floor does with the tasks of the suite `mandates` (``--table mandates``).
"""

from __future__ import annotations

import argparse
import math
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import reyn_jupyter as reyn
from reyn_jupyter.evaluation.plan.suite import Suite
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.results.comparison import Comparison
from reyn_jupyter.evaluation.results.report import Report
from reyn_jupyter.evaluation.statistics.rates import Rate

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "reyn_jupyter" / "docs" / "evidence.md"
HELPS, SIZES, MANDATES = TABLES = ("helps", "sizes", "mandates")
SUITES = {HELPS: "first-steps", SIZES: "first-steps", MANDATES: "mandates"}
BASES = {HELPS: "alone", SIZES: "alone", MANDATES: "none"}
# The variants of `mandates` that answer one question: what helps, the wording, the surface or the choice by force?
OF_MANDATES = ("explicit-3x", "gate", "flat", "two-steps-stop")
# Variants without more actions that stand in the table of sizes too, beside the base.
AS_IT_IS = ("two-steps-stop", "forced")
# Scenarios whose trials were read while the harness was mended: what it does on these says little about others.
MENDED_ON = frozenset(
    {
        "lamp-on-bedroom",
        "lamp-off-hall",
        "lamp-off-office",
        "order-pencils",
        "order-candles",
        "cancel-507",
        "track-226",
        "play-blue-moon",
        "volume-20",
        "read-door",
        "read-safe",
        "read-doctor",
        "read-choir",
        "read-cinema",
        "write-hello",
        "write-milk",
        "write-call",
        "write-animal",
        "delete-people",
        "remove-codes",
        "remove-people",
    }
)
CHECKS = ("state_reached", "right_action", "task_done")
AGAINST = {
    "state": "state_reached",
    "done": "task_done",
}  # what is compared with the base, and its name in the table
# Tokens of a reply at most: a first step is a short one.
LONGEST_REPLY = {HELPS: 80, SIZES: 80, MANDATES: 300}
DOLLARS = 0.5  # of a model that costs something
TIMEOUT = 900.0  # seconds a trial: a prompt alone takes a minute on two busy processors


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.evidence", description=__doc__)
    parser.add_argument("--model", default="local/smollm2", help="default: %(default)s")
    parser.add_argument("--minutes", type=float, default=30.0, help="for all trials; default: %(default)s")
    parser.add_argument("--scenarios", type=int, default=None, help="at most so many; all by default")
    parser.add_argument("--table", choices=TABLES, default=HELPS, help="default: %(default)s")
    parser.add_argument("--only", nargs="*", default=None, help="variants of the table, beside the first one")
    parser.add_argument("--write", action="store_true", help="put table and trials into the manual")
    parser.add_argument(
        "--dollars",
        type=float,
        default=DOLLARS,
        help="for all runs of a file; inf: no limit",
    )
    given = parser.parse_args()
    suite = held_out(reyn.load_suite(SUITES[given.table]))
    variants = variants_of(suite, given.model, given.table, given.only)
    folder = ROOT / "build" / "evidence"
    folder.mkdir(parents=True, exist_ok=True)
    model = re.sub(r"[^A-Za-z0-9.-]+", "-", given.model.removesuffix(".gguf"))
    file = folder / f"{model}-{given.table}.sqlite"
    most = min(given.scenarios or len(suite.scenarios), len(suite.scenarios))
    with reyn.Study(
        file, suite=suite, timeout=TIMEOUT, budget=budget_of(given.model, given.dollars)
    ) as study:
        with after(60 * given.minutes) as is_over:
            # Scenario by scenario, so that the variants can be compared at any time.
            for number in range(1, most + 1):
                ended = study.run(*variants, n=number, repeats=2).ended
                if is_over() or ended in ("budget", "interrupted"):
                    break
        report = study.report()
        print(table(report))
        if given.write:
            study.export(PAGE.parent / "evidence" / f"{file.stem}.parquet")
            write(file.stem, table(report))


def write(name: str, text: str) -> None:
    """Put a table between its markers in the manual. Raises SystemExit where the page has none for it."""
    begin, end = (f"<!-- {name}: {place} -->" for place in ("begin", "end"))
    head, found, rest = PAGE.read_text(encoding="utf-8").partition(begin)
    _, ended, tail = rest.partition(end)
    if not (found and ended):
        raise SystemExit(f"The page has no place for this table: put the lines\n{begin}\n{end}\ninto {PAGE}.")
    PAGE.write_text(f"{head}{begin}\n{text}\n{end}{tail}", encoding="utf-8")


def held_out(suite: Suite) -> Suite:
    """Return a suite without the scenarios that the harness was mended on."""
    return suite.only(*(scenario.id for scenario in suite.scenarios if scenario.id not in MENDED_ON))


def budget_of(model: str, dollars: float) -> reyn.Budget:
    """Return what trials of a model may cost. With a limit, one whose price is not known does not start."""
    return reyn.Budget(usd=None if model.startswith("local/") or math.isinf(dollars) else dollars)


def variants_of(suite: Suite, model: str, table: str = HELPS, only: list[str] | None = None) -> list[Variant]:
    """Return a table's variants on a model, the one without any help first."""
    sized = {name: each.catalog_size is not None for name, each in suite.variants.items()}
    names = [name for name in suite.variants if sized[name] == (table == SIZES) or name in AS_IT_IS]
    base, names = BASES[table], list(OF_MANDATES) if table == MANDATES else names
    asked = [name for name in names if name != base and (only is None or name in only)]
    exact = {"temperature": 0.0, "seed": 1, "max_tokens": LONGEST_REPLY[table]}
    return [suite.variants[name].but(name, model=model, parameters=exact) for name in (base, *asked)]


@contextmanager
def after(seconds: float) -> Iterator[Callable[[], bool]]:
    """Interrupt what runs in the block after so many seconds, as a person would; yield what says whether it did."""
    rings: list[int] = []

    def ring(number: int, _: object) -> None:
        rings.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield lambda: bool(rings)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def table(report: Report) -> str:
    """Return one line a variant: its rates, how far its first one is from the base, what a trial takes, what failed.

    The base is the variant that was tried first.
    """
    evidence, base = report.evidence, next(iter(report.figures))
    titles = " | ".join([evidence.check(name).title for name in CHECKS])
    head = f"trials | {titles} | against `{base}`, points | tokens | s | failing trials"
    lines = [f"| | {head} |", f"| ---{' | ---' * (head.count('|') + 1)} |"]
    against = {each.b: each for each in report.comparisons if each.a == base and each.check.name == CHECKS[0]}
    for name, figures in report.figures.items():
        effort = report.efforts[name]
        rates = [_rate(figures[check].found) for check in CHECKS]
        did = [f"{each.kind.value} {each.times}" for each in report.did_instead if each.variant == name]
        trials = getattr(figures[CHECKS[0]].found, "trials", 0)
        lines.append(
            f"| `{name}` | {trials} | {' | '.join(rates)} | {_difference(against.get(name))} | "
            f"{effort.tokens:,.0f} | {effort.seconds:.0f} | {', '.join(did[:3])} |"
        )
    return "\n".join(lines)


def _rate(found: object) -> str:
    if not isinstance(found, Rate):
        return "–"
    return f"{100 * found.estimate:.0f} % ({100 * found.low:.0f} to {100 * found.high:.0f})"


def _difference(comparison: Comparison | None) -> str:
    if comparison is None:
        return "–"
    found, low, high = comparison.difference, comparison.difference.low, comparison.difference.high
    if low is None or high is None:
        return "–"
    return f"{100 * found.estimate:+.0f} ({100 * low:+.0f} to {100 * high:+.0f})"


if __name__ == "__main__":
    main()
