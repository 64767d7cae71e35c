"""Searches of small catalogs for the tests: what they are made with, and how they are asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from reyn_jupyter.catalog.action import Entry
from reyn_jupyter.catalog.discovery.search_results import Found
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.config import Settings
from reyn_jupyter.runtime.engine import Engine
from reyn_jupyter.search.action_index import ActionEmbeddingIndex
from tests.catalog.samples import schema, skill_category

ENGINE = Engine()
SPEAKING = CatalogSnapshot.build(
    [skill_category()],
    {
        "skill": [
            Entry("salesReport", "Sums the orders of a quarter by region.", schema("quarter")),
            Entry("売上集計", "四半期の売上を地域別に集計する。", schema()),
            Entry("отчёт", "Собирает продажи по регионам за квартал.", schema()),
            Entry("translate_text", "Translates a text into another language.", schema("target_language")),
            Entry("text", "Nothing else.", schema()),
        ]
    },
)
LITTLE = CatalogSnapshot.build(
    [skill_category()],
    {
        "skill": [
            Entry("post_letter", "Sends a message by electronic mail.", schema("to")),
            Entry("convert_currency", "Converts an amount between currencies.", schema("amount")),
            Entry("weather", "Forecast for a place.", schema("place")),
        ]
    },
)


def configured(name: str | None, **classes: str) -> Callable[[], Settings]:
    made = Settings.model_validate(
        {
            "action_retrieval": {"embedding_class": name},
            "embedding": {"classes": {"local-mini": "sentence-transformers/all-MiniLM-L6-v2", **classes}},
        }
    )
    return lambda: made


WORDS, LOCAL = configured(None), configured("local-mini")


def run(work: Any) -> Any:
    return ENGINE.run(work)


def found(
    index: ActionEmbeddingIndex, snapshot: CatalogSnapshot, query: str, *options: Any, **named: Any
) -> Found:
    made: Found = run(index.find(snapshot, query, *options, **named))
    return made


def names(answer: Found) -> list[str]:
    return [action.name.text for action, _ in answer.hits]


def built(settings: Callable[[], Settings] = LOCAL, folder: Path | None = None) -> ActionEmbeddingIndex:
    index = ActionEmbeddingIndex(settings, folder)
    run(index.build(LITTLE))
    return index
