"""Documents of the person's: indexed into corpora, and found again by words and meaning.

Two categories over one store: `rag_corpus`, whose resources are the corpora themselves, each searched by invoking it,
and `rag_operation`, which indexes, searches several at once, and drops. A call of a corpus is judged as the recall that
it stands for. What is indexed has its secrets covered: passages lie on the disk, and go to models later.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from reyn_jupyter.backends.files.file_search import GrepPatternError
from reyn_jupyter.backends.files.file_tree import FileTree
from reyn_jupyter.catalog.action import Arguments, Category, Effect, Entry, Operation, Purity, Resources, Tool
from reyn_jupyter.corpora.corpus import FRAME, Corpus
from reyn_jupyter.corpora.corpus_file import CorpusError, CorpusFacts
from reyn_jupyter.corpora.corpus_store import NAME_LENGTH, NAME_PATTERN, CorpusStore
from reyn_jupyter.corpora.document import Document
from reyn_jupyter.corpora.frames import FrameError, frame_document
from reyn_jupyter.corpora.indexing import IndexPlan, glob_of, index_corpus
from reyn_jupyter.corpora.reading import FileReader
from reyn_jupyter.corpora.recall import Recalled, recall
from reyn_jupyter.guard.own_memories import MemoryOwnership, memory_digest
from reyn_jupyter.guard.state_folder import StateError
from reyn_jupyter.outputs.content import Stored, Structured
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.services import Services, Source, ToolContext
from reyn_jupyter.search.index_state import BusyError
from reyn_jupyter.search.metadata import FilterError
from reyn_jupyter.search.ranking.tokens import cut_note, cut_query
from reyn_jupyter.support.encoding import clip, compact
from reyn_jupyter.support.text import count, shorten

TOP_K, MOST_HITS = 5, 50
_PREFIX = 45  # bytes of a blob's id before a summary
_LEAST_LINE = 40  # bytes of a hit's line in a summary
_SHORT_NOTE = 90  # bytes of the notes in a summary
_NAME = {
    "type": "string",
    "pattern": NAME_PATTERN,
    "maxLength": NAME_LENGTH,
    "description": "Name of a corpus, lower case with - or _, e.g. tax-law.",
}
_QUERY = {
    "type": "string",
    "minLength": 1,
    "maxLength": 4000,
    "description": "What the passages should say, in words or as a question.",
}
_TOP_K = {
    "type": "integer",
    "minimum": 1,
    "maximum": MOST_HITS,
    "default": TOP_K,
    "description": f"Passages at most. Default {TOP_K}.",
}
_FILTERS = {
    "type": "object",
    "description": "Conditions on what is known of passages, all of which must hold: path (a pattern such as docs/** "
    "too), folder, type (markdown, text, code, notebook, html, pdf, word, slides, sheet, frame), heading, page, "
    "language, what a file's front matter says, columns of a frame. Each is a value, a list of which one must be "
    'equal, or {"min": …, "max": …}.',
}
_RECALL_ONE = {
    "type": "object",
    "properties": {"query": _QUERY, "top_k": _TOP_K, "filters": _FILTERS},
    "required": ["query"],
    "additionalProperties": False,
}
_RECALL = {
    "type": "object",
    "properties": {
        "query": _QUERY,
        "sources": {
            "type": "array",
            "items": _NAME,
            "minItems": 1,
            "maxItems": 50,
            "uniqueItems": True,
            "description": "The corpora to search.",
        },
        "top_k": _TOP_K,
        "filters": _FILTERS,
    },
    "required": ["query", "sources"],
    "additionalProperties": False,
}
_INDEX = {
    "type": "object",
    "properties": {
        "source": _NAME,
        "paths": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "maxItems": 100,
            "description": "Files, folders and patterns of the workspace, e.g. docs, notes/**/*.md. The corpus then "
            "holds these and nothing else.",
        },
        "frames": {
            "type": "object",
            "additionalProperties": {"x-reference": ["array", "object", "python"]},
            "maxProperties": 20,
            "description": "Name → a reference to a data frame whose rows are indexed. Left out, those that the corpus "
            "has stay.",
        },
        "text_column": {
            "type": "string",
            "minLength": 1,
            "description": "The column of the frames that has the text. Default: the one with the longest texts.",
        },
        "description": {
            "type": "string",
            "maxLength": 300,
            "description": "What the corpus holds, in a sentence, for whoever looks for it.",
        },
    },
    "required": ["source", "paths"],
    "additionalProperties": False,
}
_DROP = {
    "type": "object",
    "properties": {"source": _NAME},
    "required": ["source"],
    "additionalProperties": False,
}


def categories(services: Services) -> tuple[Category, ...]:
    """`rag_corpus` and `rag_operation` over ``<root>/.reyn/state/corpora``."""
    store, own = CorpusStore(services.workspace.root), services.trust.memories
    searching = Tool("recall", _recall(store), Purity.READ, _recall_effects, untrusted_output=True)
    return (
        Category(
            "rag_corpus",
            "Documents that were indexed: find the passages that answer a question, each with its place.",
            resources=Resources(
                searching,
                _one_source,
                "find the passages that fit a query best",
                lambda: asyncio.to_thread(_entries, store, own),
                judged_as="rag_operation__recall",
            ),
            revision=lambda: (store.revision(), own.stamp),
        ),
        Category(
            "rag_operation",
            "Index documents and data frames so that they can be searched, search several corpora, or drop one.",
            operations=_operations(store, searching),
        ),
    )


def _one_source(entry: str, args: Arguments) -> Arguments:
    return {**args, "sources": [entry]}


def _entries(store: CorpusStore, own: MemoryOwnership) -> list[Entry]:
    found = []
    for name in store.names():
        try:
            corpus = store.get(name)
            facts, (documents, passages) = corpus.file.facts(), corpus.file.counts()
        except CorpusError:  # `%reyn corpora` says why
            continue
        places = "the workspace" if "." in facts.paths else ", ".join(facts.paths) or "frames"
        about = facts.about or f"Search the documents of {places}"
        if not own.holds(
            _face_digest(name, facts)
        ):  # a listing marks nothing as text of others: so it shows none
            about = "Search documents that were indexed here"
        sizes = f"{count(passages, 'passage')} of {count(documents, 'document')}"
        found.append(Entry(name, f"{shorten(about.rstrip('. '), 150)} ({sizes}).", _RECALL_ONE))
    return found


def _face_digest(name: str, facts: CorpusFacts) -> str:
    """Return the hash of what the catalog says of a corpus, by which it is known to be the person's own words."""
    return memory_digest(json.dumps(["corpus", name, facts.about, facts.paths]).encode())


def _own_face(args: Arguments, corpus: Corpus, before: CorpusFacts, context: ToolContext) -> None:
    """Take what is said of a corpus as the person's own, unless it came with the folder or after text of others."""
    own, name = context.services.trust.memories, args["source"]
    kept = before.about and args.get("description") is None
    if context.origins() or (kept and not own.holds(_face_digest(name, before))):
        return
    with suppress(StateError):  # the catalog says less of it then
        own.add([_face_digest(name, corpus.file.facts())])


def _operations(store: CorpusStore, searching: Tool) -> tuple[Operation, ...]:
    return (
        Operation(
            "recall",
            "Find the passages of one or several corpora that fit a query best: path, place, "
            "headings, score and text of each.",
            _RECALL,
            searching,
        ),
        Operation(
            "index",
            "Index documents under a name, or refresh the index of them: Markdown, text, code, notebooks, HTML, "
            "PDF and office files of folders, and data frames. Only what is new or changed is read.",
            _INDEX,
            Tool("index_rag_operation", _index(store), Purity.WRITE, _index_effects, plan=_plan),
        ),
        Operation(
            "drop_source",
            "Remove a corpus, not the documents that it was made of.",
            _DROP,
            Tool("drop_source", _drop(store), Purity.WRITE, _drop_effects),
        ),
    )


# Indexing


def _plan(args: Arguments, context: ToolContext) -> dict[str, str]:
    """Return where each path begins: links are followed once."""
    tree = FileTree(context.services.workspace)
    places = {}
    for path in args["paths"]:
        try:
            pattern = glob_of(path)
        except GrepPatternError as error:
            raise ActionError(str(error), "Use * ? ** [abc] {csv,json}, e.g. docs/**/*.md.") from error
        places[path] = tree.locate(path if pattern is None else pattern.base or ".")
    return places


def _index_effects(args: Arguments, context: ToolContext) -> Sequence[Effect]:
    reads = dict.fromkeys(context.plan.values())
    return (Effect("write", f"corpora/{args['source']}"), *(Effect("read", place) for place in reads))


def _index(store: CorpusStore) -> Callable[[Arguments, ToolContext], Any]:
    async def index(args: Arguments, context: ToolContext) -> dict[str, Any]:
        services = context.services
        frames = None if args.get("frames") is None else await _frames(args, context)
        if not args["paths"] and not frames:
            raise ActionError("There is nothing to index.", "Name a file, a folder or a pattern in paths.")
        about = args.get("description")
        plan = IndexPlan(
            tuple(args["paths"]),
            context.plan,
            frames,
            None if about is None else services.redactor.text(about),
        )
        reader = FileReader(context.workspace, services.redactor, services.children)
        try:
            corpus = await asyncio.to_thread(store.of, args["source"])
            there = args["source"] in store.names()
            before = await asyncio.to_thread(corpus.file.facts) if there else CorpusFacts()
            outcome = await index_corpus(corpus, plan, reader, services.embedder, context.report)
            await asyncio.to_thread(_own_face, args, corpus, before, context)
        except BusyError as error:
            raise ActionError(
                f"{args['source']} is being indexed by {error.holder}.",
                "Try again once that is done; what is there can be searched meanwhile.",
                code="busy",
            ) from error
        except CorpusError as error:
            raise ActionError(str(error), error.hint) from error
        services.changed("rag_corpus")
        said = {
            key: value for key, value in asdict(outcome).items() if value not in ([], 0) or key in _ALWAYS
        }
        if "notes" in said:
            said["notes"] = [context.without_advice(note) for note in said["notes"]]
        if "left_out" in said:
            said["left_out"] = [
                {"path": each["path"], "why": context.without_advice(each["why"])}
                for each in said["left_out"]
            ]
        return {"source": args["source"], **said}

    return index


_ALWAYS = frozenset({"documents", "passages", "unchanged", "embedded"})


async def _frames(args: Arguments, context: ToolContext) -> dict[str, Document]:
    """Return the frames of a call as documents. Raises ActionError."""
    redactor, column = context.services.redactor, args.get("text_column")
    found = {}
    for name, value in args["frames"].items():
        if not name.isidentifier() or len(name) > NAME_LENGTH:
            raise ActionError(f"{name[:80]!r} is no name for a frame.", "Use letters, digits and _.")
        try:
            found[name] = await asyncio.to_thread(frame_document, name, value, column, redactor)
        except FrameError as error:
            raise ActionError(str(error), "Give a data frame with a column of texts.") from error
    return found


# Recall


def _recall_effects(args: Arguments, context: ToolContext) -> Sequence[Effect]:
    return tuple(Effect("read", f"corpora/{name}") for name in args["sources"])


def _recall(store: CorpusStore) -> Callable[[Arguments, ToolContext], Any]:
    async def search(args: Arguments, context: ToolContext) -> dict[str, Any] | Stored:
        query, sources = args["query"], list(args["sources"])
        for name in sources:
            context.came_from(f"documents of the corpus {name}")
        try:
            corpora = await asyncio.to_thread(lambda: [store.get(name) for name in sources])
            vector, why = await _query_vector(query, corpora, context)
            key = context.services.embedder.key if vector is not None else None
            found = await asyncio.to_thread(
                recall,
                corpora,
                query,
                int(args.get("top_k", TOP_K)),
                args.get("filters"),
                vector,
                key,
                context.may_read,
            )
        except CorpusError as error:
            raise ActionError(str(error), error.hint) from error
        except FilterError as error:
            raise ActionError(
                str(error).replace("where:", "filters:"), "Leave the filter out to see what there is."
            ) from error
        _report_sources(found, context)
        notes = [context.without_advice(note) for note in (cut_note(query), why, *found.notes) if note]
        value = {
            "query": query,
            "sources": sources,
            "ranking": found.ranking,
            **({"notes": notes} if notes else {}),
            "hits": [hit.as_json() for hit in found.hits],
        }
        bounds = context.services.settings().outputs
        if len(compact(value).encode()) <= bounds.inline_bytes:
            return value
        return Stored(summary_of(found, notes, bounds.summary_bytes), Structured(value))

    return search


async def _query_vector(query: str, corpora: Sequence[Corpus], context: ToolContext) -> tuple[Any, str]:
    """Return the vector of a query, or None and why there is none."""
    embedder = context.services.embedder
    if embedder.key is None:
        return None, "Ranked by words alone: nothing embeds here."
    if not query.strip() or not corpora:
        return None, ""
    try:
        return (await embedder.embed([cut_query(query)]))[0], ""
    except ActionError as error:  # a denial, too
        return None, f"Ranked by words alone: {error.message}"


def _report_sources(found: Recalled, context: ToolContext) -> None:
    for path in dict.fromkeys(hit.stored.document.path for hit in found.hits):
        kind = "variable" if path.startswith(FRAME) else "file"
        context.used(Source(kind, path.removeprefix(FRAME)))


def summary_of(found: Recalled, notes: Sequence[str], most: int) -> str:
    """Return one line a hit: its number, which `inspect` takes, score, document, place and headings.

    Args:
        most: bytes of it, with the id that will stand before it.
    """
    how = "words and meaning" if found.ranking == "hybrid" else "words"
    head = f"{count(len(found.hits), 'hit')} by {how}; a hit's text: path:/hits/0/text"
    if not found.hits:
        head = f"nothing found by {how}"
    note = clip(" ".join(notes), _SHORT_NOTE) if notes else ""
    left = most - _PREFIX - len(head.encode()) - (len(note.encode()) + 3 if note else 0)
    fitting = min(len(found.hits), max(1, left // (_LEAST_LINE + 1)))
    more = len(found.hits) - fitting
    rest = f"… {more} more: path:/hits/{fitting}" if more else ""
    left -= len(rest.encode()) + 1 if rest else 0
    lines = []
    for number, hit in enumerate(found.hits[:fitting]):
        room = left // (fitting - number) - 1
        lines.append(clip(f"{number} {hit.line}", room))
        left -= len(lines[-1].encode()) + 1
    return "\n".join([head, *lines, *([rest] if rest else []), *([f"! {note}"] if note else [])])


# Dropping


def _drop_effects(args: Arguments, context: ToolContext) -> Sequence[Effect]:
    return (Effect("delete", f"corpora/{args['source']}"),)


def _drop(store: CorpusStore) -> Callable[[Arguments, ToolContext], Any]:
    async def drop(args: Arguments, context: ToolContext) -> Mapping[str, Any]:
        try:
            await asyncio.to_thread(store.drop, args["source"])
        except CorpusError as error:
            raise ActionError(str(error), error.hint) from error
        context.services.changed("rag_corpus")
        return {"source": args["source"], "dropped": True}

    return drop
