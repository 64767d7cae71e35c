"""Opening a blob: what is known about it, which panes fit it, and where a selector leads.

Invariants: opening reads a bounded part, whatever the size. Every reading happens in a thread, tells how far it is and
stops when the view cancels; what goes wrong in it becomes one sentence and what to do next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeVar

from reyn_jupyter.notebook.render import formatting
from reyn_jupyter.notebook.render.blob_view import KINDS, blob_title, content_blocks
from reyn_jupyter.notebook.render.blocks import Block
from reyn_jupyter.notebook.serving.operation import (
    OperationContext,
    OperationError,
    ServedOperation,
    WireMessage,
)
from reyn_jupyter.outputs.blob import Blob
from reyn_jupyter.outputs.blobs.ids import InvalidBlobIdError
from reyn_jupyter.outputs.blobs.in_memory_store import as_local_store
from reyn_jupyter.outputs.blobs.manifest import BlobInfo
from reyn_jupyter.outputs.blobs.random_access import LocalBlobStore, is_local
from reyn_jupyter.outputs.blobs.read_progress import StoppedError, Watch, WatchedSource
from reyn_jupyter.outputs.blobs.reader import BlobView
from reyn_jupyter.outputs.content import BlobNotFoundError, BlobStoreError
from reyn_jupyter.outputs.inspect import MEDIA_HEAD
from reyn_jupyter.outputs.json_index import first_byte
from reyn_jupyter.outputs.json_tree import IndexCache
from reyn_jupyter.outputs.parts.media_type import media_facts
from reyn_jupyter.outputs.selectors import (
    BytesSelector,
    GrepSelector,
    KeySelector,
    LastLinesSelector,
    LinesSelector,
    PartSelector,
    PointerSelector,
    SelectorError,
    SliceSelector,
    parse_selector,
)
from reyn_jupyter.runtime.record.events import ActionFinished
from reyn_jupyter.support.text import count

T = TypeVar("T")
Pane = Literal["content", "grid", "tree", "text"]
ORIGIN_SECONDS = 0.5
BORROWED = 2  # blobs of a store elsewhere that are kept here


class OpenBlob(WireMessage):
    blob: str
    selector: str | None = None


class ReadContent(WireMessage):
    blob: str


class BlobContent(WireMessage):
    """Hold what is drawn of a blob: the parts of a result, an image, a sound."""

    blocks: tuple[Block, ...]


class BlobStart(WireMessage):
    """Name the place to begin at: a row of the grid, a path in the tree, a line, a byte or a search in the text."""

    row: int = 0
    path: tuple[str, ...] = ()
    line: int = 1
    byte: int | None = None
    find: str = ""
    note: str = ""


class OpenedBlob(WireMessage):
    """Describe a blob to its viewer. `facts` and `about` are texts; `commands` are ready lines, each with its
    purpose; `value` is the Python expression that a path is appended to."""

    id: str
    kind: str
    title: str
    facts: tuple[str, ...]
    about: tuple[tuple[str, str], ...]
    commands: tuple[tuple[str, str], ...]
    value: str
    panes: tuple[Pane, ...]
    pane: Pane
    start: BlobStart


@dataclass(frozen=True)
class BlobReading:
    """A blob open in a thread.

    Attributes:
        view: its bytes and indexes; its source is watched.
        kept: where its indexes are kept between two requests.
    """

    view: BlobView
    kept: IndexCache

    @property
    def info(self) -> BlobInfo:
        return self.view.info


async def reading(context: OperationContext, blob_id: str, work: Callable[[BlobReading], T], note: str) -> T:
    """Return what `work` makes of a blob, in a thread. `note` says in progress what is being done."""
    store, wanted = await _store(context, blob_id)
    context.session.parts.services.redactor.refresh()  # the environment may hold new secrets since the last run
    kept: IndexCache = context.caches.setdefault("indexes", IndexCache())
    watch = Watch(context.progress, note)

    def within() -> T:
        with BlobView(store, store.describe(wanted)) as view:
            view.source = WatchedSource(view.source, watch)
            return work(BlobReading(view, kept))

    try:
        return await asyncio.to_thread(within)
    except BlobNotFoundError as error:
        raise _missing(error.blob_id) from None
    except StoppedError:
        raise asyncio.CancelledError from None
    except SelectorError:
        raise
    except (BlobStoreError, ValueError, OSError) as error:
        said = context.look.line(str(error), 300)
        raise OperationError(
            f"The blob cannot be read: {said}", "The text pane shows what is there."
        ) from None
    finally:
        watch.stop()


async def _store(context: OperationContext, blob_id: str) -> tuple[LocalBlobStore, str]:
    store = context.session.parts.services.blobs
    if store is None:
        raise OperationError("This session keeps no blobs.", 'reyn.Session(store="files") keeps them.')
    copies: dict[str, LocalBlobStore] = context.caches.setdefault("borrowed", {})
    if blob_id in copies:
        return copies[blob_id], blob_id
    try:
        local, wanted = await as_local_store(store, blob_id)
    except InvalidBlobIdError as error:
        raise OperationError(context.look.line(str(error), 200), "%reyn blobs lists what is there.") from None
    except BlobNotFoundError as error:
        raise _missing(error.blob_id) from None
    except BlobStoreError as error:
        raise OperationError(
            context.look.line(str(error), 300), "Try again, or run the action again."
        ) from None
    if not is_local(store):
        while len(copies) >= BORROWED:
            del copies[next(iter(copies))]
        copies[wanted] = local
    return local, wanted


def _missing(blob_id: str) -> OperationError:
    return OperationError(
        f"No blob {blob_id[:60]} is in this session's store: it was collected, or belongs to another workspace.",
        "Run the action again, or see what is there: %reyn blobs",
    )


async def open_blob(context: OperationContext, arguments: OpenBlob) -> OpenedBlob:
    opened = await reading(
        context, arguments.blob, lambda at: _describe_blob(context, at, arguments.selector), "opening"
    )
    step = ""
    with suppress(TimeoutError):  # a very long record is not waited for
        step = await asyncio.wait_for(asyncio.to_thread(_step, context, opened), ORIGIN_SECONDS)
    about = [*opened.about]
    if step:
        about.insert(-2, ("step", step))
    return opened.model_copy(update={"about": tuple(about)})


def _describe_blob(context: OperationContext, at: BlobReading, selector: str | None) -> OpenedBlob:
    info, look = at.info, context.look
    facts = [KINDS.get(info.kind, info.kind)]
    if info.shape is not None:
        facts.append(f"{count(info.shape[0], 'row')} × {count(info.shape[1], 'column')}")
    elif info.entries is not None and info.kind != "json_value":
        one = {"lines": "line", "keys": "key"}.get(info.counted, "entry")
        facts.append(count(info.entries, one, info.counted))
    facts.append(formatting.size(info.size))
    if info.action:
        facts.append(f"blob {formatting.tail(info.id)}")
    facts.append(formatting.moment(info.created))
    about = [
        ("id", info.id),
        *(
            (label, look.line(known, 100))
            for label, known in (("action", info.action), ("run", info.run))
            if known
        ),
        ("size", count(info.size, "byte")),
        ("sha256", look.line(info.sha256, 80) or "not recorded"),
    ]
    panes, pane = _panes(at)
    pane, start = _start(at, selector, panes, pane)
    value = f'reyn.session().blob("{info.id}")'
    content = {"parts": "parts", "bytes": "data"}.get(info.kind, "json" if info.is_json else "text")
    commands = (
        ("In a cell", f"%reyn inspect {info.id}"),
        ("In Python", f"{value}.{'df' if 'grid' in panes else content}"),
    )
    return OpenedBlob(
        id=info.id,
        kind=info.kind,
        title=blob_title(info, look),
        facts=tuple(facts),
        about=tuple(about),
        commands=commands,
        value=f"{value}.{content}",
        panes=panes,
        pane=pane,
        start=start.model_copy(update={"note": look.line(start.note, 300)}),
    )


def _panes(at: BlobReading) -> tuple[tuple[Pane, ...], Pane]:
    """Return the panes that fit, and the one to begin with: a grid for records, a tree for other JSON."""
    if at.info.kind == "parts":
        return ("content",), "content"
    if at.info.kind == "bytes" and media_facts(at.view.source.read(0, MEDIA_HEAD)).mime is not None:
        return ("content", "text"), "content"
    if not at.info.is_json:
        return ("text",), "text"
    if at.info.kind != "json_array":
        return ("tree", "text"), "tree"
    source = at.view.source
    opening = first_byte(source, 0, source.size)
    inside = source.read(first_byte(source, opening + 1, source.size), 1)
    return ("grid", "tree", "text"), "grid" if inside == b"{" or at.info.frame else "tree"


def _start(
    at: BlobReading, selector: str | None, panes: tuple[Pane, ...], pane: Pane
) -> tuple[Pane, BlobStart]:
    """Return where a selector leads; one that makes no sense here leads to the beginning, with a note."""
    if not selector:
        return pane, BlobStart()
    try:
        parsed = parse_selector(selector)
    except SelectorError as error:
        return pane, BlobStart(note=f"{error}. {error.hint}")
    match parsed:
        case LinesSelector(first=first):
            return "text", BlobStart(line=first)
        case LastLinesSelector(number=number):
            return "text", BlobStart(line=max(1, at.view.lines.count - number + 1))
        case BytesSelector(start=byte):
            return "text", BlobStart(byte=byte)
        case GrepSelector(pattern=pattern):
            return "text", BlobStart(find=pattern)
        case PartSelector() if at.info.kind == "parts":
            return pane, BlobStart()
        case SliceSelector(start=row) if "tree" in panes:
            return pane, BlobStart(row=row, path=(str(row),) if row else ())
        case KeySelector(key=key) if "tree" in panes:
            return "tree", BlobStart(path=(key,))
        case PointerSelector(tokens=tokens) if "tree" in panes:
            return "tree", BlobStart(path=tokens)
    return pane, BlobStart(
        note=f"{selector} does not fit: this blob is {KINDS.get(at.info.kind, at.info.kind)}."
    )


async def content(context: OperationContext, arguments: ReadContent) -> BlobContent:
    store, _ = await _store(context, arguments.blob)

    def work(at: BlobReading) -> BlobContent:
        return BlobContent(blocks=content_blocks(Blob(at.info, store), context.look))

    return await reading(context, arguments.blob, work, "reading the parts")


def _step(context: OperationContext, opened: OpenedBlob) -> str:
    """Return the step of the run that gave a blob, as far as it is recorded."""
    run = dict(opened.about).get("run")
    with suppress(LookupError, ValueError, OSError):
        events = context.session.trace(run).events if run else ()
        for event in events:
            if isinstance(event, ActionFinished) and event.blob == opened.id:
                return str(event.step)
    return ""


OPERATIONS = (
    ServedOperation("blob.open", OpenBlob, OpenedBlob, open_blob),
    ServedOperation("blob.content", ReadContent, BlobContent, content),
)
