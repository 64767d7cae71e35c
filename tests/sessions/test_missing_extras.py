"""Where the packages of an extra are missing, what needs them is hidden and refused, with what installs it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from contextlib import closing
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.support import optional_modules
from tests.support.document_samples import pdf


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Hide a module from whoever asks whether it is there."""
    real = importlib.util.find_spec

    def hide(hidden: str) -> None:
        def find_spec(name: str, package: str | None = None) -> ModuleSpec | None:
            return None if name == hidden else real(name, package)

        monkeypatch.setattr(optional_modules, "find_spec", find_spec)
        monkeypatch.setattr(optional_modules, "_looked_for", {})

    return hide


@pytest.mark.parametrize(("module", "package"), [("altair", "Altair"), ("vl_convert", "vl-convert-python")])
def test_charts_are_hidden_and_refused_without_their_packages(
    without: Callable[[str], None], module: str, package: str, tmp_path: Path
) -> None:
    (tmp_path / "orders.csv").write_text("product,amount\na,1\nb,2\n")
    call: dict[str, Any] = {"mark": "bar", "x": "product", "y": "amount", "data": "orders.csv"}
    with closing(reyn.Session(tmp_path)) as session:
        without(module)
        listed = set(session.list_actions(limit=100).df["qualified_name"])
        assert "file__read" in listed and not any(name.startswith("chart__") for name in listed)
        refused = session.invoke_action("chart__draw", call)
        assert not refused.ok and isinstance(refused.payload, dict)
        reason = refused.payload["reason"]
        assert package in reason and "pip install 'reyn-jupyter[charts]'" in reason


def test_documents_that_need_a_missing_package_are_left_out_with_what_installs_it(
    without: Callable[[str], None], tmp_path: Path
) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf("text"))
    (tmp_path / "b.md").write_text("text")
    with closing(reyn.Session(tmp_path, config={"action_retrieval": {"embedding_class": None}})) as session:
        without("pypdf")
        card = session.index_corpus("all", ["."])
    assert card.data["documents"] == 1
    (left_out,) = card.data["left_out"]
    assert left_out["path"] == "a.pdf" and "pip install 'reyn-jupyter[documents]'" in left_out["why"]
