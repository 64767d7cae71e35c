"""A table of a million rows in JupyterLab, beside the tables of others: first paint, last row, sorting.

Everybody shows the same frame in the same notebook, one after another, in another order each round; each round has a
frame of its own, made before anything is timed, so that nobody shows or sorts what it has kept. What is timed ends with
the frame of the screen that shows the row. A peer that shows no rows here is reported with the reason; one that can
only be measured with fewer rows has a notebook and a frame of its own, and its line says how many rows.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from playwright.sync_api import Error

from tests.benchmarks._lab import KEPT, MEASURED, Lab, lab
from tests.benchmarks._lab_peers import COLUMNS, PEERS, Peer
from tests.browser.browser_support import CHROMIUM

ROWS = 1_000_000
ROUNDS = 5
SLOW, FEW = 20.0, 2  # a peer that takes longer (seconds) to show a row is measured so many times only
MARKS = "νσπ"  # the names of the rows at both ends of these orders begin so; short, since some cut at 64 px

_BASE = """
import gc, time
import numpy as np, pandas as pd
rng = np.random.default_rng(7)
count = {rows}
letters = np.array(list("bcdefghijklmnopqrstuvwxy"))
base = pd.DataFrame({{
    "name": [f"row {{number}}" for number in range(count)],
    "amount": rng.normal(100, 20, count).round(2),
    "code": letters[rng.integers(0, len(letters), (count, 8))].view("U8").ravel().astype(str).tolist(),
    "pieces": rng.integers(0, 1000, count),
    "city": rng.choice(["Lagos", "Lima", "Oslo"], count),
    "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 2000, count), unit="D"),
    "price": rng.random(count),
    "paid": rng.random(count) > 0.5,
    "share": rng.random(count),
    "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 10**7, count), unit="s"),
}})
"""
# Both ends of an order have the same name, since a first click may sort either way.
_ROUND = """
frame = base.copy()
third = len(frame) // 3
frame.loc[0, "name"], frame.loc[len(frame) - 1, "name"] = "α{round}", "ω{round}"
frame.loc[[third, third + 1], "name"] = "ν{round}"
frame.loc[third, "amount"], frame.loc[third + 1, "amount"] = -1e6, 1e6
frame.loc[[third + 2, third + 3], "name"] = "σ{round}"
frame.loc[third + 2, "code"], frame.loc[third + 3, "code"] = "aaaaaaaa", "zzzzzzzz"
frame.loc[[third + 4, third + 5], "name"] = "π{round}"
frame.loc[third + 4, "pieces"], frame.loc[third + 5, "pieces"] = -10**6, 10**6
gc.collect()
"""
_CLEAN = """
from ipywidgets import Widget
Widget.close_all()
table = None
get_ipython().displayhook.flush()
gc.collect()
"""


@dataclass
class Measured:
    """What was measured of a peer: figures by name, in milliseconds, and what stood in the way."""

    figures: dict[str, list[float]] = field(default_factory=dict)
    rows: str = ""
    megabytes: float = 0.0
    slow: bool = False
    problem: str = ""

    def add(self, name: str, value: float | None) -> None:
        if value is None:
            self.problem = self.problem or f"{name}: not in time"
        else:
            self.figures.setdefault(name, []).append(value)

    def median(self, name: str) -> str:
        found = self.figures.get(name)
        return f"{statistics.median(found):,.0f}" if found else "–"


class Comparison:
    """All peers in one notebook, round after round."""

    def __init__(self, lab: Lab, peers: tuple[Peer, ...], rows: int) -> None:
        self._lab, self._rows = lab, rows
        self.peers = list(peers)
        self.measured = {peer.name: Measured() for peer in peers}

    def warm_up(self) -> None:
        """One round that is not counted; who shows no row in it is left out, with the reason."""
        self._lab.run(_BASE.format(rows=self._rows))
        for peer in list(self.peers):
            try:
                self._lab.run(peer.before, KEPT if "init_notebook_mode" in peer.before else MEASURED)
            except RuntimeError as error:
                self._drop(peer, str(error))
        self.round(0)
        for peer in list(self.peers):
            found = self.measured[peer.name]
            if "run → row" not in found.figures:
                said = self._lab.complaints[-1].splitlines()[0][:100] if self._lab.complaints else ""
                self._drop(peer, " ".join(filter(None, (found.problem, said))))
            self.measured[peer.name] = Measured(rows=found.rows, slow=found.slow, problem=found.problem)

    def round(self, number: int) -> None:
        """Everybody once; who begins moves on from round to round."""
        self._lab.run(_ROUND.format(round=number))
        turn = number % max(1, len(self.peers))
        for peer in [*self.peers[turn:], *self.peers[:turn]]:
            found = self.measured[peer.name]
            if found.slow and number > FEW:
                continue
            self._lab.complaints.clear()
            try:
                self._once(peer, found, number)
            except (RuntimeError, Error) as error:
                found.problem = found.problem or str(error).splitlines()[0][:100]
            self._lab.page.keyboard.press("Escape")
            self._lab.run(_CLEAN)

    def _once(self, peer: Peer, found: Measured, number: int) -> None:
        if peer.store:
            found.add("store", 1000 * float(self._lab.run(peer.store)))
        times = self._lab.show(peer.show, f"α{number}", peer.within)
        painted = times.texts[0]
        found.megabytes = times.bytes / 1e6
        found.add("run → row", painted)
        if painted is None:
            return
        found.slow = painted > 1000 * SLOW
        if times.display is not None:
            found.add("message → row", painted - times.display)
        if peer.within:
            found.add("run → grid", times.texts[1])
            if times.texts[1] is not None and times.display is not None:
                found.add("message → grid", times.texts[1] - times.display)
        found.rows = f"{self._rows:,}"
        if peer.rows is not None:
            found.rows = str(self._lab.page.evaluate(peer.rows))
        if peer.down:
            self._steps(peer, found, number)

    def _steps(self, peer: Peer, found: Measured, number: int) -> None:
        found.add("last row", self._lab.until_painted(f"ω{number}", peer.down))
        self._lab.until_painted(f"α{number}", peer.up)
        for column, mark, name in zip(COLUMNS, MARKS, SORTS, strict=True):
            if peer.sort is not None:
                sort = partial(peer.sort, column=column)
                found.add(name, self._lab.until_painted(f"{mark}{number}", sort))

    def end(self, problem: str) -> None:
        """The page is gone: nobody can be measured any more."""
        for peer in list(self.peers):
            self._drop(peer, self.measured[peer.name].problem or problem)

    def _drop(self, peer: Peer, problem: str) -> None:
        self.peers.remove(peer)
        self.measured[peer.name].problem = problem or "showed no row"


SORTS = ("sort numbers", "sort strings", "numbers again")
NAMES = ("message → row", "run → row", "last row", *SORTS)


def report(comparison: Comparison, rounds: int) -> None:
    """Print a line a peer, and what is to be known about it."""
    print(f"{'median ms':<30}" + "".join(f"{name:>15}" for name in (*NAMES, "rows", "MB sent")))
    notes = []
    for name, found in comparison.measured.items():
        figures = "".join(f"{found.median(each):>15}" for each in NAMES)
        print(f"{name:<30}{figures}{found.rows:>15}{found.megabytes:>15.2f}")
        if "run → grid" in found.figures:
            notes.append(
                f"{name}: the first row stands in the snapshot; in the grid of all rows "
                f"{found.median('message → grid')} ms after the message, "
                f"{found.median('run → grid')} ms after the run. "
                f"Storing the frame before took {found.median('store')} ms."
            )
        if found.slow and found.figures and rounds > FEW:
            notes.append(f"{name}: slower than {SLOW:.0f} s, so measured {FEW} times instead of {rounds}.")
        if found.problem:
            notes.append(f"{name}: {found.problem}.")
    for line in (*notes, *NOTES):
        print(f"  {line}")


NOTES = (
    "The first sort counts what has to be loaded for it; the third is of integers, when that is there.",
    "limits: message → row 250 ms, last row 50 ms, sort 250 ms (numbers) and 600 ms (strings)",
    "The message is timed at the socket. What ipydatagrid and buckaroo send before it counts in run → row alone.",
    "buckaroo runs with a module that pandas 3.1 moved put back; without it, it shows no row of strings.",
    "itables cuts to 64 KB; with maxBytes=0 all rows travel in one message, and stay in the saved notebook.",
    "The browser's driver gets a copy of every message and ends at one over 200 MB, which a million rows would be.",
)


def measure(rows: int = ROWS, rounds: int = ROUNDS, peers: tuple[Peer, ...] = PEERS) -> Comparison:
    """A JupyterLab, a warm-up and the rounds; those with a limit of rows come after the others, alone."""
    groups = [(rows, tuple(peer for peer in peers if peer.most is None))]
    groups += [(min(rows, peer.most), (peer,)) for peer in peers if peer.most is not None]
    whole: Comparison | None = None
    for count, group in groups:
        if not group:
            continue
        with tempfile.TemporaryDirectory(prefix="reyn-lab-") as name, lab(Path(name)) as opened:
            comparison = Comparison(opened, group, count)
            try:
                comparison.warm_up()
                for number in range(1, rounds + 1):
                    print(f"… {count:,} rows, round {number} of {rounds}", file=sys.stderr, flush=True)
                    comparison.round(number)
            except Error as error:
                comparison.end(str(error).splitlines()[0])
        if whole is None:
            whole = comparison
        else:
            whole.measured |= comparison.measured
    if whole is None:
        raise ValueError("there is nobody to measure")
    return whole


def main() -> None:
    """Print the table; takes about a quarter of an hour, most of it the slowest peer's and storing."""
    if not Path(CHROMIUM).exists():
        print(f"{CHROMIUM} is missing; install it with: make browser")
        return
    present = []
    for peer in PEERS:
        try:
            print(f"{peer.package} {version(peer.package)}", end=" · ")
            present.append(peer)
        except PackageNotFoundError:
            print(f"{peer.package} is not installed", end=" · ")
    print(
        f"JupyterLab {version('jupyterlab')} · {ROWS:,} rows × 10 columns · {ROUNDS} rounds after a warm-up"
    )
    report(measure(peers=tuple(present)), ROUNDS)


if __name__ == "__main__":
    main()
