"""`make evidence`: every variant has a table, a paid model costs no more than was allowed, and none starts unasked."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.evaluation.run.budget import BudgetError
from tests import evidence
from tests.support.openai_server import Answer, OpenAIServer


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, model: str, *more: str) -> int:
    """Run it; return how many trials its file holds."""
    monkeypatch.setattr(evidence, "ROOT", folder)
    monkeypatch.setattr(sys, "argv", ["evidence", "--model", model, "--only", "--scenarios", "3", *more])
    evidence.main()
    (file,) = (folder / "build" / "evidence").glob("*.sqlite")
    with reyn.Study(file) as study:
        return study.spent.trials


def test_a_paid_model_stops_at_the_budget_and_another_run_spends_no_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with OpenAIServer() as server:
        usage = {"prompt_tokens": 3_000_000, "completion_tokens": 10, "total_tokens": 3_000_010}  # $0.45
        server.otherwise = Answer("Done.", usage=usage)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert run(monkeypatch, tmp_path, "openai/gpt-4o-mini") == 1
        assert run(monkeypatch, tmp_path, "openai/gpt-4o-mini") == 1
        assert run(monkeypatch, tmp_path, "openai/gpt-4o-mini", "--dollars", "1.4") == 3


def test_a_model_without_a_known_price_starts_only_without_a_limit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with OpenAIServer() as server:
        server.otherwise = Answer("Done.")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with pytest.raises(BudgetError, match="price"):
            run(monkeypatch, tmp_path, "openai/house-model")
        assert run(monkeypatch, tmp_path, "openai/house-model", "--dollars", "inf") == 6


def test_a_model_of_this_machine_has_no_limit() -> None:
    assert evidence.budget_of("local/smollm2", evidence.DOLLARS) == reyn.Budget()


def test_each_variant_of_the_suite_stands_in_a_table_after_the_one_without_help() -> None:
    suites = {table: reyn.load_suite(name) for table, name in evidence.SUITES.items()}
    found = {table: evidence.variants_of(suites[table], "local/smollm2", table) for table in evidence.TABLES}
    of_first_steps = (*found[evidence.HELPS], *found[evidence.SIZES])
    assert {each.name for each in of_first_steps} == set(suites[evidence.HELPS].variants)
    for table, variants in found.items():
        assert variants[0].name == evidence.BASES[table]
        assert len({each.name for each in variants}) == len(variants)
    assert {each.catalog_size for each in found[evidence.HELPS]} == {None}
    assert {each.catalog_size for each in found[evidence.SIZES]} == {None, 20, 200}
