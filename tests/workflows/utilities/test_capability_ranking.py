"""Which utility serves a capability: the order, the gates, and the reason where none does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.workflows.utilities.capability_ranking import rank
from reyn_jupyter.workflows.utilities.contract import Contract
from reyn_jupyter.workflows.utilities.registry import UtilityRegistry
from tests.workflows.utilities.manifest_samples import put, registry_of


def order(registry: UtilityRegistry, **more: Any) -> list[str]:
    return [row.utility.id for row in rank(registry, "text.count", **more).rows]


def test_stable_beats_a_higher_version_and_priority_beats_both(tmp_path: Path) -> None:
    put(tmp_path, "a", name="old", version="0.9.0", stability="stable")
    put(tmp_path, "b", name="new", version="2.0.0")
    assert order(registry_of(tmp_path)) == ["old@0.9.0", "new@2.0.0"]
    put(tmp_path, "c", name="old", version="0.10.0", stability="stable")
    put(tmp_path, "d", name="aged", version="0.10.0", stability="stable")
    assert order(registry_of(tmp_path)) == ["aged@0.10.0", "old@0.10.0", "old@0.9.0", "new@2.0.0"]
    put(tmp_path, "e", name="first", version="0.0.1", priority=1)
    ranking = rank(registry_of(tmp_path), "text.count")
    assert ranking.chosen is not None and ranking.chosen.id == "first@0.0.1"
    assert "priority 1 is above 0" in ranking.message


def test_the_gates_come_in_their_order_and_say_why(tmp_path: Path) -> None:
    registry = registry_of(tmp_path)
    assert rank(registry, "Text Count").reason == "invalid_capability"
    assert rank(registry, "text.count").reason == "no_capability_match"
    put(tmp_path)
    registry = registry_of(tmp_path)
    number = {"type": "object", "properties": {"lines": {"type": "string"}}, "required": ["lines"]}
    ranking = rank(registry, "text.count", Contract({}, number), 0.1)
    assert (ranking.reason, ranking.chosen) == ("schema_incompatible", None)
    assert [each.path for each in ranking.rows[0].violations] == ["/properties/lines/type"]
    assert rank(registry, "text.count", confidence=0.7).reason == "low_confidence"
    assert rank(registry, "text.count", confidence=0.75).chosen is not None
    assert rank(registry, "text.count").chosen is not None


@pytest.mark.parametrize("confidence", [None, float("nan"), float("inf"), "0.9", True, [], 2, -1])
def test_a_confidence_that_is_none_is_zero(tmp_path: Path, confidence: object) -> None:
    put(tmp_path)
    assert (
        rank(registry_of(tmp_path), "text.count", confidence=confidence, by_model=True).reason
        == "low_confidence"
    )


def test_a_program_that_is_missing_is_named_and_its_utility_not_chosen(tmp_path: Path) -> None:
    put(tmp_path, "a", name="needs", priority=9, dependencies=[{"command": "no-such-program"}])
    put(tmp_path, "b", name="packed", priority=9, dependencies=[{"package": "no-such-package"}])
    ranking = rank(registry_of(tmp_path), "text.count")
    assert ranking.chosen is None and ranking.reason == "no_capability_match"
    assert [row.verdict for row in ranking.rows] == ["not ready", "not ready"]
    assert "no-such-program is not installed" in ranking.message
    put(tmp_path, "c", name="ready")
    chosen = rank(registry_of(tmp_path), "text.count").chosen
    assert chosen is not None and chosen.id == "ready@1.0.0"


def test_one_that_is_not_trusted_is_listed_and_never_chosen(tmp_path: Path) -> None:
    put(tmp_path, priority=100)
    ranking = rank(registry_of(tmp_path, trusted=False), "text.count")
    assert ranking.chosen is None
    assert (ranking.rows[0].verdict, ranking.rows[0].utility.trust_name) == (
        "not trusted",
        "tools/line-count",
    )
