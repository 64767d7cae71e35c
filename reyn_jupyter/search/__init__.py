"""Finding actions: by words and by meaning, over any records that have a name.

>>> import reyn_jupyter.search as search  # doctest: +SKIP
>>> index = search.build([{"id": "1", "name": "read_file", "description": "Read a text file."}])  # doctest: +SKIP
>>> index.search("open a document")[0][0]  # doctest: +SKIP
'1'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from reyn_jupyter.search.action_records import Record
    from reyn_jupyter.search.embedders.embedder import Embedder
    from reyn_jupyter.search.ranking.index import Index

__all__ = ["build"]


def build(records: Iterable[Record | Mapping[str, Any]], embedder: Embedder | None = None) -> Index:
    """Return an index in memory over records, with a vector each.

    Args:
        records: records, or mappings with `id`, `name` and perhaps `description`, `parameters` (a JSON Schema) and
            `category`; ids are unique.
        embedder: who embeds; None for the local model `local-mini`, as it is found on this machine.

    Returns:
        An index; `index.search(text, limit)` gives ids and scores, `index.answer(text)` also whether they fit.

    Raises:
        RecordError: a record without id or name, an id that stands twice, or a part of the wrong type.
        EmbedderError: no embedder was given, and this machine has none.
    """
    import numpy as np

    from reyn_jupyter.search.action_records import records_of
    from reyn_jupyter.search.embedding_texts import join_vectors, texts_of
    from reyn_jupyter.search.ranking.index import Index

    given = records_of(records)
    serving = embedder if embedder is not None else _local()
    texts = [texts_of(record) for record in given]
    every = list(dict.fromkeys(text for group in texts for text in group))
    if not every:
        return Index(given, None, serving)
    rows = dict(zip(every, serving.embed(every), strict=True))
    vectors = np.stack([join_vectors(np.stack([rows[text] for text in group])) for group in texts])
    return Index(given, vectors, serving)


def _local() -> Embedder:
    from reyn_jupyter.config import Settings
    from reyn_jupyter.search.embedders.embedder import EmbedderError
    from reyn_jupyter.search.embedders.embedding_classes import resolve

    found = resolve(Settings(), {})
    serving = found.embedder()
    if serving is None:
        raise EmbedderError(
            f"No local embedder: {found.reason}. Install one: {found.hint}; or give `embedder`."
        )
    return serving
