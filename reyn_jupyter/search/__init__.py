"""Finding actions: by words and by meaning, over any records that have a name.

>>> import reyn_jupyter.search as search  # doctest: +SKIP
>>> index = search.build([{"id": "1", "name": "read_file", "description": "Read a text file."}])  # doctest: +SKIP
>>> index.search("open a document")[0][0]  # doctest: +SKIP
'1'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from typing import Any, Literal

    from reyn_jupyter.search.action_records import Record
    from reyn_jupyter.search.embedders.embedder import Embedder
    from reyn_jupyter.search.index_state import BuildProgress
    from reyn_jupyter.search.ranking.index import Index
    from reyn_jupyter.search.vector_store import VectorStore

__all__ = ["build"]


def build(
    records: Iterable[Record | Mapping[str, Any]],
    embedder: Embedder | Literal["local"] | None = "local",
    *,
    store: VectorStore | Path | str | None = None,
    name: str = "records",
    on_progress: Callable[[BuildProgress], object] | None = None,
) -> Index:
    """Return an index over records, with a vector each.

    Args:
        records: records, or mappings with `id`, `name` and perhaps `description`, `parameters` (a JSON Schema),
            `category` and `metadata` (facts to filter by); ids are unique.
        embedder: who embeds; "local" for the model `local-mini`, as it is found on this machine; None for an index of
            words alone.
        store: a folder, or the store in it, that keeps the vectors, so that the next time only new records are
            embedded; None keeps them in memory. Texts are never stored.
        name: of this index among those that share the store.
        on_progress: hears how far it is after every batch, and every two seconds meanwhile; None shows it, in a
            notebook once it takes more than a second, elsewhere on the error stream once it takes more than two; at
            once where the model has to be loaded first.

    Returns:
        An index; `index.search(text, limit, where={"language": "en"})` gives ids and scores, `index.answer(text)` also
        whether they fit.

    Warns:
        UserWarning: of some records only the beginning of the texts is searched; `index.shortened` names them.

    Raises:
        RecordError: a record without id or name, an id that stands twice, or a part of the wrong type.
        EmbedderError: "local", and this machine has no model.
        IndexStoreError: the store cannot serve.
    """
    from contextlib import ExitStack
    from pathlib import Path

    from reyn_jupyter.search.action_records import records_of
    from reyn_jupyter.search.build_listener import listener
    from reyn_jupyter.search.ranking.index import Index
    from reyn_jupyter.search.stored_index import embed_records
    from reyn_jupyter.search.vector_store import VectorStore

    given = records_of(records)
    serving = _local() if embedder == "local" else embedder
    if serving is None or not given:
        return _with_warning(Index(given, None, serving))
    opened = VectorStore(Path(store)) if isinstance(store, str | Path) else store
    with ExitStack() as ending:
        if opened is not None and opened is not store:
            ending.callback(opened.close)
        if on_progress is None:
            on_progress = shown = listener()
            ending.callback(shown.end)
        vectors = embed_records(given, serving, opened or VectorStore(None), name, on_progress)
        return _with_warning(Index(given, vectors, serving))


def _with_warning(index: Index) -> Index:
    """Return an index, with a warning where it does not search all of its records' texts."""
    import warnings

    from reyn_jupyter.search.ranking.vocabulary import LONGEST_EMBEDDED, LONGEST_TEXT

    if shortened := index.shortened:
        meaning = (
            ""
            if index.lexical_only
            else f", by meaning the first {LONGEST_EMBEDDED:,}, or what the model reads of them"
        )
        said = (
            f"Of {len(shortened):,} of {index.size:,} records only the beginning is searched: by words the first "
            f"{LONGEST_TEXT:,} characters of a text{meaning}. `index.shortened` names them; give a long text in parts."
        )
        warnings.warn(said, UserWarning, stacklevel=3)
    return index


def _local() -> Embedder:
    from reyn_jupyter.config import Settings
    from reyn_jupyter.search.embedders.embedder import EmbedderError
    from reyn_jupyter.search.embedders.embedding_classes import resolve

    found = resolve(Settings(), {})
    serving = found.embedder()
    if serving is None:
        raise EmbedderError(
            f"No local embedder: {found.reason}. Install one: {found.hint}; or give `embedder`, None for words alone."
        )
    return serving
