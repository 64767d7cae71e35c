"""The corpora of a session, for people: what there is, what stands in one, what a request finds, indexing, dropping.

Invariant: a person's index, recall and drop are calls of the same actions that a model makes, and stand in the record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from reyn_jupyter.corpora.corpus import Corpus, vectors_key
from reyn_jupyter.corpora.corpus_file import CorpusError
from reyn_jupyter.corpora.corpus_store import CorpusStore
from reyn_jupyter.corpora.recall import place_of
from reyn_jupyter.sessions.result_objects import Card, Result, Table
from reyn_jupyter.support.reyn_line import reyn_line
from reyn_jupyter.support.text import shorten
from reyn_jupyter.support.user_errors import UserError

if TYPE_CHECKING:
    from reyn_jupyter.sessions.assembly import Parts
    from reyn_jupyter.sessions.async_session import AsyncSession

MOST_ROWS = 1000
_TEXT = 160  # characters of a passage in a table


class CorpusActionError(UserError):
    """Something of a corpus failed; the message says why, `hint` what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message} {hint}".strip())
        self.message, self.hint = message, hint


def corpora(parts: Parts) -> Table:
    """Return one row a corpus: documents, passages, vectors, bytes, when it was brought up to date, what changed."""
    store = CorpusStore(parts.workspace.root)
    rows, problems = [], []
    for name in store.names():
        try:
            with closing(store.get(name)) as corpus:
                rows.append(_row(parts, corpus))
        except CorpusError as error:
            problems.append(f"{name}: {error} {error.hint}".strip())
    stale = [str(row["corpus"]) for row in rows if row["state"] in ("stale", "unfinished")]
    notes = list(problems)
    if stale:
        notes.append(f"{reyn_line('corpora index', stale[0])} brings it up to date")
    if not rows and not problems:
        notes.append("Nothing is indexed yet: %reyn corpora index notes docs notes/**/*.md")
    return Table("corpora", tuple(rows), "Corpora", "; ".join(notes))


def _row(parts: Parts, corpus: Corpus) -> dict[str, Any]:
    facts, documents = corpus.file.facts(), corpus.file.documents()
    _, passages = corpus.file.counts()
    model = parts.services.embedder.key
    vectors = corpus.vectors.counts().get(vectors_key(model), 0) if model is not None else 0
    changed = corpus.changed_files({each.path: each for each in documents})
    state = "stale" if changed else "ready" if facts.indexed else "unfinished"
    if corpus.holder is not None:
        state = "indexing"
    return {
        "corpus": corpus.name,
        "documents": len(documents),
        "passages": passages,
        "vectors": vectors,
        "bytes": corpus.size,
        "updated": _time(facts.indexed) if facts.indexed else None,
        "changed files": len(changed),
        "state": state,
        "of": shorten(", ".join(facts.paths), 80),
        "about": facts.about,
    }


def passages(parts: Parts, name: str) -> Table:
    """Return the passages of a corpus, by document and place. Raises CorpusActionError."""
    try:
        with closing(CorpusStore(parts.workspace.root).get(name)) as corpus:
            found = corpus.file.passages()
    except CorpusError as error:
        raise CorpusActionError(str(error), error.hint) from None
    redact = parts.redactor.text
    rows = tuple(
        {
            "path": each.document.path,
            "place": place_of(each.passage.unit, each.passage.first, each.passage.last),
            "heading": redact(" › ".join(each.passage.heading)),
            "characters": len(each.passage.text),
            "text": redact(shorten(" ".join(each.passage.text.split()), _TEXT)),
        }
        for each in found[:MOST_ROWS]
    )
    note = f"the first {MOST_ROWS:,} of {len(found):,}" if len(found) > MOST_ROWS else ""
    return Table("passages", rows, f"Passages of {name}", note, tuple(found[:MOST_ROWS]))


async def recall(
    session: AsyncSession,
    parts: Parts,
    query: str,
    sources: Sequence[str] | None,
    top_k: int,
    filters: Mapping[str, Any] | None,
) -> Table:
    """Return the passages that fit a query best, as a table. Raises CorpusActionError."""
    names = CorpusStore(parts.workspace.root).names() if sources is None else list(sources)
    if not names:
        raise CorpusActionError("Nothing is indexed yet.", "%reyn corpora index notes docs")
    given = {
        "query": query,
        "sources": names,
        "top_k": top_k,
        **({"filters": dict(filters)} if filters else {}),
    }
    result = await session.invoke_action("rag_operation__recall", given)
    value = _value(result)
    rows = tuple(
        {
            "score": hit["score"],
            "corpus": hit["source"],
            "path": hit["path"],
            "place": _place(hit),
            "heading": " › ".join(hit["heading"]),
            "text": shorten(" ".join(hit["text"].split()), _TEXT),
        }
        for hit in value["hits"]
    )
    how = "ranked by words and meaning" if value["ranking"] == "hybrid" else "ranked by words"
    note = " ".join([f"{how}.", *value.get("notes", [])])
    return Table("recall", rows, f"Recall: {shorten(query, 80)}", note, tuple(value["hits"]))


async def index(
    session: AsyncSession,
    parts: Parts,
    name: str,
    paths: Sequence[str] | None,
    frames: Sequence[str] | None,
    about: str | None,
) -> Card:
    """Index a corpus, by default what it was made of before. Raises CorpusActionError."""
    given: dict[str, Any] = {"source": name, "paths": list(paths or ())}
    try:
        with closing(CorpusStore(parts.workspace.root).of(name)) as corpus:
            if paths is None and frames is None:
                given["paths"] = list(corpus.file.facts().paths)
            known = corpus.exists
    except CorpusError as error:
        raise CorpusActionError(str(error), error.hint) from None
    if paths is None and frames is None and not known:
        raise CorpusActionError(
            f"There is no corpus {name!r}.", f"Say of what: {reyn_line('corpora index', name, 'docs')}"
        )
    if frames is not None:
        given["frames"] = {each: {"$var": each} for each in frames}
    if about is not None:
        given["description"] = about
    value = _value(await session.invoke_action("rag_operation__index", given))
    return _indexed(name, value)


def _indexed(name: str, value: Mapping[str, Any]) -> Card:
    moved = ", ".join(
        f"{value.get(key, 0):,} {key}"
        for key in ("added", "changed", "removed", "unchanged")
        if value.get(key)
    )
    facts = [
        ("documents", f"{value['documents']:,}" + (f" ({moved})" if moved else "")),
        ("passages", f"{value['passages']:,}, {value['embedded']:,} of them embedded now"),
        ("took", f"{value.get('seconds', 0):,.1f} s"),
    ]
    left_out = [f"{each['path']}: {each['why']}" for each in value.get("left_out", ())]
    more = value.get("left_out_total", 0) - len(left_out)
    left_out += [f"{more:,} more"] if more > 0 else []
    sections = [("Left out, or not whole", tuple(left_out))] if left_out else []
    if value.get("notes"):
        sections.append(("Notes", tuple(value["notes"])))
    tries = (reyn_line("corpora", name, "a question"), reyn_line("corpora", name))
    return Card("corpora", f"{name} is indexed", tuple(facts), tuple(sections), tries, dict(value))


async def drop(session: AsyncSession, name: str) -> Card:
    """Remove a corpus. Raises CorpusActionError."""
    _value(await session.invoke_action("rag_operation__drop_source", {"source": name}))
    return Card("corpora", f"{name} is dropped", (("documents", "are where they were"),))


def _value(result: Result) -> dict[str, Any]:
    if result.error is not None:
        payload = result.payload if isinstance(result.payload, dict) else {}
        wrong = [f"{each['path']}: {each['message']}" for each in payload.get("invalid", ())]
        raise CorpusActionError("; ".join(wrong) or result.error, str(payload.get("hint") or ""))
    value: dict[str, Any] = result.value
    return value


def _place(hit: Mapping[str, Any]) -> str:
    unit = next(unit for unit in ("line", "row", "page", "slide", "cell", "section") if unit in hit)
    return place_of(unit, hit[unit], hit.get("to", hit[unit]))


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).astimezone().isoformat(timespec="seconds")
