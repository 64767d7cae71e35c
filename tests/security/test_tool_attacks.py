"""Tools that attack, each run as if nobody had looked at its code: none gets its way."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.security.tool_attack_table import label, refused, run_all, seen, table, written
from tests.security.tool_attacks import Attack, Outcome, analysis, attacked_place, attacks, unconfined

# What ends by itself, and harms nothing but its place, when it runs as a plain program.
PLAIN = frozenset({"marker", "victim", "loot", "port", "signal"})


def test_the_corpus_has_enough_of_each_language_and_every_piece_is_another_one() -> None:
    corpus = attacks()
    modes = Counter(each.mode for each in corpus)
    assert modes["python"] >= 60 and modes["typescript"] >= 25
    assert len({(each.mode, each.code) for each in corpus}) == len(corpus)
    assert len({(each.mode, each.name) for each in corpus}) == len(corpus)
    assert {each.effect for each in corpus} == PLAIN | {"hang", "memory", "flood", "processes", "lie"}


def test_each_piece_gets_its_way_where_nothing_confines_it(tmp_path: Path) -> None:
    pieces = [each for each in attacks() if each.effect in PLAIN and each.name != "kill everything"]
    idle = [
        Attack("idle", "python", "", "", "marker", "def execute(params): return 1"),
        Attack("idle", "typescript", "", "", "marker", "function execute(params) { return 1; }"),
    ]
    with attacked_place(tmp_path) as place:
        assert not any(unconfined(each, place, patience=0.0).happened for each in idle)
        harmless = {each.name: made for each in pieces if not (made := unconfined(each, place, 20)).happened}
    assert not harmless


async def test_no_piece_gets_its_way_in_the_sandbox_whatever_the_analysis_says(tmp_path: Path) -> None:
    outcomes = await run_all(tmp_path)
    assert len(outcomes) == len(attacks())
    assert not [(each.name, each.mode) for each, outcome in outcomes.items() if outcome.happened]


async def test_no_piece_in_python_gets_its_way_where_landlock_alone_holds_it(tmp_path: Path) -> None:
    pieces = [each for each in attacks() if each.mode == "python"]
    outcomes = await run_all(tmp_path, "landlock", pieces)
    assert [(each.name, outcomes[each].stopped_by) for each in pieces if outcomes[each].happened] == []


def test_the_table_of_the_manual_says_what_the_analysis_sees_and_that_nothing_got_through() -> None:
    rows = {
        line.split(" | ")[0]: line.split(" | ") for line in written().splitlines() if line.startswith("| ")
    }
    for each in attacks():
        assert rows[f"| {label(each)}"][1:5] == [each.wants, each.hides, seen(each), refused(each)]
    held = {each: Outcome(False, "") for each in attacks()}
    assert written().splitlines()[0] == table(held).splitlines()[0] and "got through" not in written()


@pytest.mark.parametrize("mode", ["python", "typescript"])
def test_what_is_critical_and_not_hidden_is_refused_before_it_exists(mode: str) -> None:
    plain = [each for each in attacks() if each.mode == mode and each.hides == "nothing"]
    critical = {
        "delete a file outside",
        "run a command",
        "run code made at run time",
        "call native code",
        "signal the kernel",
    }
    for each in plain:
        assert bool(analysis(each).blocked_operations) or each.wants not in critical, each.name
