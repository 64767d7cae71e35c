"""What a number of scenarios can find agrees with what a plan asks for, and the manual's table with both."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import reyn_jupyter
from reyn_jupyter.evaluation.statistics.power import plan, smallest_found

PAGE = Path(reyn_jupyter.__file__).parent / "docs" / "statistics.md"


@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.parametrize("detect", [0.1, 0.2, 0.3])
def test_as_many_as_a_plan_asks_for_find_its_difference_and_fewer_do_not(detect: float, repeats: int) -> None:
    scenarios = plan(detect=detect, repeats=repeats).scenarios
    assert smallest_found(scenarios, repeats=repeats) == detect
    fewer = smallest_found(scenarios - 10, repeats=repeats)
    assert fewer is not None and fewer > detect


def test_a_known_share_of_pairs_that_differ_finds_more() -> None:
    known, unknown = smallest_found(60, discordant=0.2), smallest_found(60)
    assert known is not None and unknown is not None and known < unknown


def test_too_few_find_nothing_at_all() -> None:
    assert smallest_found(3, repeats=2) is None


def test_the_table_of_the_manual_is_what_is_planned() -> None:
    rows = re.findall(r"^\| (\d+) points \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(points) for points, _ in rows] == [5, 10, 15, 20, 30]
    for points, cells in rows:
        gap = int(points) / 100
        wanted = [
            plan(detect=gap),
            plan(detect=gap, repeats=2),
            *(plan(detect=gap, discordant=max(gap, share)) for share in (0.3, 0.2)),
        ]
        assert [int(cell) for cell in cells.split("|")] == [each.scenarios for each in wanted]
