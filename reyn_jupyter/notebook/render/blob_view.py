"""A result, a stored blob, and a part of one.

Any value as blocks: a frame as a grid, JSON as a tree, text as numbered lines, the rest by its type's name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reyn_jupyter.notebook.render import formatting
from reyn_jupyter.notebook.render.blocks import (
    Badge,
    Block,
    Code,
    Commands,
    Facts,
    Lines,
    Notice,
    Tree,
    View,
)
from reyn_jupyter.notebook.render.dataframe_view import ROWS, frame_grid, frame_of, records_grid
from reyn_jupyter.notebook.render.parts_view import (
    MEDIA_BYTES,
    MediaRoom,
    given_parts,
    stored_media,
    stored_parts,
)
from reyn_jupyter.notebook.render.problems import problem
from reyn_jupyter.notebook.render.text_blocks import LINES, text_lines, text_preview
from reyn_jupyter.notebook.render.tree_view import kind_of, members_tree, tree
from reyn_jupyter.notebook.render.value_text import Look, is_a, type_name
from reyn_jupyter.outputs.content import BlobStoreError
from reyn_jupyter.outputs.parts.content_parts import ContentParts
from reyn_jupyter.support.reyn_line import reyn_line
from reyn_jupyter.support.text import count
from reyn_jupyter.workflows.execution.workflow_run import PARTLY_DONE, undone_part

if TYPE_CHECKING:
    from reyn_jupyter.outputs.blob import Blob
    from reyn_jupyter.outputs.blobs.manifest import BlobInfo
    from reyn_jupyter.sessions.result_objects import Inspection, Result


_PROGRAMS = ("utility", "skill")  # categories whose results say what was not done
KINDS = {
    "text": "text",
    "json_array": "JSON array",
    "json_object": "JSON object",
    "json_value": "JSON value",
    "bytes": "bytes",
    "parts": "several parts",
}
_COUNTED = {
    "text": ("line", "lines"),
    "bytes": ("line", "lines"),
    "json_object": ("key", "keys"),
    "parts": ("part", "parts"),
}
_KNOBS = {
    "json_array": "blob.df or blob.json",
    "json_object": "blob.json",
    "json_value": "blob.json",
    "parts": "blob.parts",
}
_TRAILER = re.compile(r"[\d,]+ \w+ left(?: · next: (?P<next>\S.*))?")
KEYS = 30
LINE_BYTES = 400


def result_view(result: Result, look: Look) -> View:
    """Return what a call gave: its value by kind, or what went wrong."""
    name = look.line(result.name, 120)
    if result.error is not None:
        payload = result.payload if isinstance(result.payload, dict) else {"error": result.error}
        blocks = problem(payload, look)
        kept = payload.get("blob")
        if isinstance(kept, str):
            blocks = (*blocks, Commands((f"%reyn inspect {look.line(kept, 60)}",), "The whole error"))
        return View("result", name, (Badge("✗ failed", "bad"),), _took(result), blocks, ".payload")
    blocks = preview(result.value, look, "result.value")
    if (
        result.value is None
        and isinstance(result.payload, str)
        and result.payload not in ("", "null", "None")
    ):
        blocks = text_preview(result.payload, look, "result.payload")
    if result.blob is not None:
        blocks = (*blocks, *_blob_facts(result.blob, look))
    if result.hint:
        blocks = (*blocks, Notice(look.text(result.hint, 400), "muted"))
    for advice in result.trace.advice if result.trace is not None else ():
        blocks = (*blocks, Notice(look.text(advice, 600), "info"))
    undone = _undone(result, look)
    badge = Badge("partly done", "warn") if undone else Badge("✓ ok", "good")
    return View("result", name, (badge,), (*undone, *_took(result)), blocks, "result.value")


def _undone(result: Result, look: Look) -> tuple[str, ...]:
    """Return what a utility or a workflow reports as not done."""
    if result.name.partition("__")[0] not in _PROGRAMS or not isinstance(result.value, Mapping):
        return ()
    if said := result.value.get(PARTLY_DONE):
        return (look.line(str(said), 200),)
    part = undone_part(result.value)
    return (f"{part} failed",) if part else ()


def _took(result: Result) -> tuple[str, ...]:
    return (formatting.seconds(result.trace.seconds),) if result.trace is not None else ()


def _blob_facts(blob: Blob, look: Look) -> tuple[Block, ...]:
    what = f"{KINDS.get(blob.kind, blob.kind)}, {formatting.size(blob.size)}"
    if blob.kind == "parts":  # the size of the list says nothing of its parts
        what = count(blob.entries or 0, "part")
    return (Commands((f"%reyn inspect {blob.id}",), f"Blob: {what}"),)


def inspection_view(inspection: Inspection, look: Look) -> View:
    """Return a part of a blob, with the line that gives the next part."""
    selector = look.line(inspection.selector or "The leading part", 120)
    if inspection.error is not None:
        payload = inspection.payload if isinstance(inspection.payload, dict) else {"error": inspection.error}
        return View("inspection", selector, (Badge("✗ failed", "bad"),), (), problem(payload, look))
    facts = (f"blob {formatting.tail(inspection.blob.id)}",) if inspection.blob is not None else ()
    shown, _, last = inspection.text.rpartition("\n")
    trailer = _TRAILER.fullmatch(last)
    if trailer is None:
        shown = inspection.text
    if inspection.selector is None and trailer is not None:
        head, _, shown = shown.partition("\n")
        facts = (*facts, look.line(head, 120))
    blocks = _part(shown, inspection, look)
    if trailer is not None:
        blocks = (*blocks, Notice(look.line(last, 300), "muted"))
    if trailer is not None and trailer["next"]:
        blob = inspection.blob.id if inspection.blob is not None else "ID"
        blocks = (
            *blocks,
            Commands((reyn_line("inspect", blob, look.line(trailer["next"], 200)),), "Next part"),
        )
    return View("inspection", selector, (), facts, blocks, "inspection.text")


def _part(shown: str, inspection: Inspection, look: Look) -> tuple[Block, ...]:
    """Return numbered lines for lines, else a tree where it is JSON and text where it is not."""
    blob = inspection.blob
    if blob is not None and blob.kind in ("parts", "bytes"):
        number = re.fullmatch(r"part:([1-9]\d{0,5})", inspection.selector or "")
        drawn = (
            _drawn_part(blob, int(number[1]) if number else None, look)
            if inspection.selector is None or number
            else ()
        )
        if drawn:
            return drawn
    lines = re.match(r"lines:([1-9]\d{0,15})", inspection.selector or "")
    of_text = inspection.blob is not None and inspection.blob.kind == "text" and inspection.selector is None
    if lines or of_text:
        return (text_lines(shown, look, "inspection.text", int(lines.group(1)) if lines else 1, limit=200),)
    rows = _records(shown, inspection)
    if rows and inspection.blob is not None:
        begins = re.match(r"slice:(\d+)", inspection.selector or "")
        start = int(begins[1]) if begins else 0
        shape = (len(rows), None)
        return (records_grid(rows, shape, look, "inspection.text", inspection.blob.info, start),)
    return text_preview(shown, look, "inspection.text")


def _records(shown: str, inspection: Inspection) -> list[dict[str, Any]]:
    """Return the objects of a part of an array; none where it holds anything else."""
    slices = inspection.selector is None or inspection.selector.startswith("slice:")
    if inspection.blob is None or inspection.blob.kind != "json_array" or not slices:
        return []
    try:
        # Without a selector an array's elements stand one a line.
        rows = json.loads(shown) if inspection.selector else [json.loads(line) for line in shown.split("\n")]
    except ValueError:
        return []
    return rows if isinstance(rows, list) and all(isinstance(row, dict) for row in rows) else []


def blob_title(info: BlobInfo, look: Look) -> str:
    """Return what a blob is called: the action that gave it, else the end of its id."""
    return look.line(info.action, 100) if info.action else f"Blob {formatting.tail(info.id)}"


def blob_view(blob: Blob, look: Look) -> View:
    """Return a stored blob: where it came from, and the head of what it holds."""
    facts = [KINDS.get(blob.kind, blob.kind)]
    if blob.shape is not None:
        facts.append(f"{count(blob.shape[0], 'row')} × {count(blob.shape[1], 'column')}")
    elif blob.entries is not None:
        facts.append(count(blob.entries, *_COUNTED.get(blob.kind, ("entry", "entries"))))
    facts.append(formatting.size(blob.size))
    title = blob_title(blob.info, look)
    if blob.action:
        facts.append(f"blob {formatting.tail(blob.id)}")
    facts.append(formatting.moment(blob.info.created))
    try:
        blocks = content_blocks(blob, look)
    except (BlobStoreError, OSError) as error:
        said = Notice(look.text(str(error), 300), "bad", "Run the action again." if blob.action else "")
        return View("blob", title, (Badge("✗ not readable", "bad"),), tuple(facts), (said,))
    about = [
        (label, look.line(value, 80))
        for label, value in (("id", blob.id), ("run", blob.run), ("sha256", blob.sha256))
        if value
    ]
    blocks = (*blocks, *((Facts(tuple(about)),) if about else ()))
    return View("blob", title, (), tuple(facts), blocks, _KNOBS.get(blob.kind, "blob.text"))


def content_blocks(blob: Blob, look: Look) -> tuple[Block, ...]:
    """Return the head of what a blob holds.

    Raises:
        BlobStoreError, OSError: it cannot be read.
    """
    match blob.kind:
        case "parts":
            return stored_parts(blob.store, blob.id, look, "blob.parts", MediaRoom())
        case "bytes" if seen := _seen(blob, look):
            return seen
        case "json_array":
            return _array(blob, look)
        case "json_object":
            members = blob.head_keys(KEYS)
            tree_block = members_tree(members, blob.entries or len(members), look, "blob.json")
            keys = [member.key for member in members if member.cut]
            return (tree_block, *_next(blob, f"key:{look.line(keys[0], 80)}" if keys else ""))
        case "json_value":
            return text_preview(blob.inspect(), look, "blob.json")
        case _:
            lines = blob.head_lines(LINES, LINE_BYTES)
            total = blob.entries if blob.entries is not None else len(lines)
            more = f"The first {len(lines)} of {count(total, 'line')}; all of it: blob.text"
            shown = look.lines(lines, LINE_BYTES)
            cut = total > len(lines)
            return (
                Lines(1, shown, "", more if cut else ""),
                *_next(blob, f"lines:{len(lines) + 1}-{len(lines) + LINES}" if cut else ""),
            )


def _drawn_part(blob: Blob, number: int | None, look: Look) -> tuple[Block, ...]:
    """Return what people see of a blob that holds parts or an image: part `number`, all of them when None."""
    try:
        if number is None:
            return content_blocks(blob, look) if blob.kind == "parts" else _seen(blob, look)
        return stored_parts(blob.store, blob.id, look, "blob.parts", MediaRoom(), number)
    except (BlobStoreError, OSError):
        return ()


def _seen(blob: Blob, look: Look) -> tuple[Block, ...]:
    """Return a blob of bytes as the image or the sound that it is; none where it is neither, or too large."""
    if blob.size > MEDIA_BYTES:
        return ()
    return stored_media(blob.data, "", look, "blob", MediaRoom())


def _array(blob: Blob, look: Look) -> tuple[Block, ...]:
    rows = blob.head_rows(ROWS)
    total = blob.entries if blob.entries is not None else len(rows)
    following = _next(blob, f"slice:{len(rows)}..{len(rows) + ROWS}" if total > len(rows) else "")
    if rows and all(isinstance(row, dict) for row in rows):
        shape = (total, None if blob.shape is None else len(blob.dtypes))
        return (records_grid(rows, shape, look, "blob.df", blob.info), *following)
    more = f"The first {len(rows)} of {count(total, 'entry', 'entries')}; all of it: blob.json"
    drawn = tree(rows, look, "blob.json")
    return (Tree(drawn.root, more if total > len(rows) else drawn.more), *following)


def _next(blob: Blob, selector: str) -> tuple[Block, ...]:
    return (Commands((reyn_line("inspect", blob.id, selector),), "Next part"),) if selector else ()


def preview(value: object, look: Look, knob: str) -> tuple[Block, ...]:
    """Return the first look at a value; `knob` names what gives all of it."""
    frame = frame_of(value)
    if frame is not None:
        return (frame_grid(frame, look, knob),)
    if is_a(value, ContentParts):
        return given_parts(value, look, knob)
    kind = kind_of(value)
    if is_a(value, str):
        return (text_lines(str.__str__(value), look, knob),)
    if kind in ("object", "array"):
        return (tree(value, look, knob),)
    if is_a(value, bytes):
        return (
            Notice(f"{count(bytes.__len__(value), 'byte')} of binary content; all of it: {knob}", "muted"),
        )
    if kind == "other":
        return (
            Notice(
                f"An object of type {look.line(type_name(value), 100)}; {knob} is the object itself.", "muted"
            ),
        )
    return (Code(look.compact(value)),)
