"""A view as JSON: what a display keeps for hosts that draw it themselves.

Invariant: at most 24 KB (a report: 72 KB) as compact UTF-8 beside the data of images and sounds, whatever the view
holds; every text has passed `visible`,
so that it can be encoded and shows what it hides. What had to be left out is announced in its place, in the words of
the HTML.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from reyn_jupyter.notebook.render.blocks import Cell, View, pack_cell
from reyn_jupyter.notebook.render.charts import titles_of
from reyn_jupyter.notebook.render.hosts.fit import (
    LEAST,
    ORDERED,
    ROOMY,
    left_out_sentence,
    share_fairly,
    share_in_order,
)
from reyn_jupyter.notebook.serving.protocol import PROTOCOL, Live
from reyn_jupyter.support.sanitize import visible

SNAPSHOT_BYTES = 24 * 1024
REPORT_BYTES = 72 * 1024
LOST_BYTES = 6 * 1024
_LEAST_TEXT = 40  # bytes of a tree's value that are worth showing
_WITH_DATA = ("media", "chart")
_SMALL = "left out to keep this view small"

Json = dict[str, Any]


def to_snapshot(
    view: View,
    session_id: str,
    live: Live | None = None,
    limit: int | None = None,
    lost: View | None = None,
) -> Json:
    """Return what a display holds, as JSON of at most `limit` bytes.

    Args:
        session_id: of the kernel session that `live` belongs to.
        live: what a view may go on with while that session lives.
        limit: bytes, for a page of its own; 24 KB, for a report 72 KB, when None.
        lost: of a run that goes on, what is left to show when its kernel ends before it; at most 6 KB of it.

    Example:
        >>> to_snapshot(View("status", "Ready"), "s")["view"]["title"]
        'Ready'
    """
    whole = plain(view)
    data = _taken_out(whole["blocks"])
    blocks = whole["blocks"]
    made: Json = {
        "protocol": PROTOCOL,
        "session": session_id,
        "view": whole,
        "live": None if live is None else live.model_dump(mode="json"),
        "lost": None if lost is None else to_snapshot(lost, "", limit=LOST_BYTES)["view"],
    }
    roomy = view.kind in ROOMY
    bound = limit if limit is not None else REPORT_BYTES if roomy else SNAPSHOT_BYTES
    if json_size(made) > bound:
        cutter = _Cutter(whole["knob"])
        titles = titles_of(view.blocks) if roomy else []
        whole["blocks"] = []
        room = bound - json_size(made) - json_size(cutter.left_out([each for each in titles if each]))
        kept = cutter.blocks(blocks, room, ordered=view.kind in ORDERED)
        gone = [title for place, title in enumerate(titles) if title and place in cutter.gone]
        whole["blocks"] = [*kept, cutter.left_out(gone)] if cutter.dropped else kept
    _put_back(whole["blocks"], data)
    return made


def _taken_out(blocks: Any, data: list[str] | None = None) -> list[str]:
    """Take the data out of media and charts, so that the rest is fitted by its own size; returns it by its place."""
    data = [] if data is None else data
    for block in blocks:
        if block.get("type") in _WITH_DATA:
            data.append(block["data"])
            block["data"] = str(len(data) - 1)
        for inner in _inner_lists(block):
            _taken_out(inner, data)
    return data


def _put_back(blocks: Any, data: list[str]) -> None:
    for block in blocks if data else ():
        if block.get("type") in _WITH_DATA:
            block["data"] = data[int(block["data"])]
        for inner in _inner_lists(block):
            _put_back(inner, data)


def _inner_lists(block: Json) -> Iterator[list[Json]]:
    yield from (block[key] for key in ("blocks", "left_blocks", "right_blocks") if key in block)
    yield from block["items"] if block.get("type") == "bullets" else ()


def plain(value: Any) -> Any:
    """Return dataclasses as dicts, tuples as lists, cells as they travel."""
    if isinstance(value, Cell):
        value = pack_cell(value)
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    return value


def json_size(value: Any) -> int:
    """Return bytes of a value as compact JSON."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(text) if text.isascii() else len(text.encode("utf-8"))


def _leading(parts: Sequence[Any], room: int) -> int:
    """Return how many of the first parts fit, each with the comma after it."""
    used = 0
    for place, part in enumerate(parts):
        used += json_size(part) + 1
        if used > room:
            return place
    return len(parts)


def _text_within(text: str, room: int) -> str:
    """Return the start of a text whose JSON, quotes aside, takes at most so many bytes; it ends with "…"."""
    if json_size(text) - 2 <= room:
        return text
    low, high = 0, min(len(text), max(0, room))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if json_size(text[:middle]) + 1 <= room else (low, middle - 1)
    return text[:low] + "…" if room >= 3 else ""


class _Cutter:
    """Cuts the blocks of one view to size. Every method keeps to its limit; what does not fit at all is []."""

    def __init__(self, knob: str) -> None:
        self._end = f"; all of it: {knob}" if knob else ""
        self.dropped = False
        self.gone: set[int] = set()  # places of blocks that were left out, of the list that was cut last

    def left_out(self, titles: Sequence[str]) -> Json:
        return self._note(f"{left_out_sentence(titles)}{self._end}")

    def blocks(self, blocks: Sequence[Json], limit: int, *, ordered: bool = False) -> list[Json]:
        """Blocks that are small whole, the others with equal parts of what is left; `ordered`: the first ones whole."""
        sizes = [json_size(block) + 1 for block in blocks]
        if sum(sizes) <= limit:
            return list(blocks)
        shares = share_in_order(sizes, limit) if ordered else share_fairly(sizes, limit)
        if max(shares, default=0) < LEAST:
            kept = list(blocks[: _leading(blocks, limit)])
            self.dropped = self.dropped or len(kept) < len(blocks)
            self.gone = set(range(len(kept), len(blocks)))
            return kept
        made = [
            [block] if size <= share else self._cut(block, share)
            for block, size, share in zip(blocks, sizes, shares, strict=True)
        ]
        self.gone = {place for place, parts in enumerate(made) if not parts}
        self.dropped = self.dropped or bool(self.gone)
        return [part for parts in made for part in parts]

    def _cut(self, block: Json, limit: int) -> list[Json]:
        made = self._shorter(block, limit)
        return made if sum(json_size(each) + 1 for each in made) <= limit else []

    def _shorter(self, block: Json, limit: int) -> list[Json]:
        kind = block["type"]
        if kind in ("paragraph", "heading"):
            return [self._spans(block, limit)]
        if kind in ("quote", "section", "fold", "toolbar", "item"):
            inner = self.blocks(block["blocks"], limit - _bare(block, "blocks"))
            return [{**block, "blocks": inner}] if inner else []  # no heading over nothing
        if kind == "code":
            cut = {**block, "more": f"… cut to keep this view small{self._end}"}
            return [{**cut, "text": _text_within(block["text"], limit - _bare(cut, "text", ""))}]
        if kind == "notice":
            cut = {**block, "hint": ""}
            return [{**cut, "text": _text_within(block["text"], limit - _bare(cut, "text", ""))}]
        if kind == "tree":
            cut = {**block, "more": f"Not all of it is shown{self._end}"}
            root = _node(block["root"], limit - _bare(cut, "root", None))
            return [{**cut, "root": root}] if root is not None else []
        if kind == "pair":
            return [self._pair(block, limit)]
        if kind == "chart":
            table = self._shorter(block["table"], limit - _bare(block, "table", None))
            return [{**block, "table": table[0]}] if table else []
        return self._rows(self._narrower(block, limit // 2), limit)

    def _pair(self, block: Json, limit: int) -> Json:
        """Fit two sides: each gets what the other leaves of the room, and half of it at least."""
        empty: Json = {**block, "left_blocks": [], "right_blocks": []}
        sizes = [sum(json_size(each) + 1 for each in block[side]) for side in ("left_blocks", "right_blocks")]
        left, right = share_fairly(sizes, limit - json_size(empty))
        return {
            **block,
            "left_blocks": self.blocks(block["left_blocks"], left),
            "right_blocks": self.blocks(block["right_blocks"], right),
        }

    def _narrower(self, block: Json, limit: int) -> Json:
        """Keep the first columns of a grid whose header alone would take most of the room."""
        columns = block.get("columns", [])
        kept = _leading(columns, limit)
        if kept == len(columns):
            return block
        said = f"… {len(columns) - kept:,} of these {len(columns):,} columns {_SMALL}{self._end}"
        return {
            **block, "columns": columns[:kept], "rows": [row[:kept] for row in block["rows"]], "more": said
        }  # fmt: skip

    def _rows(self, block: Json, limit: int) -> list[Json]:
        """Return as many leading rows as fit; the note stands in `more`, or in a line of its own."""
        key, what = {
            "grid": ("rows", "rows"),
            "lines": ("lines", "lines"),
            "diff": ("lines", "lines"),
            "commands": ("lines", "lines"),
            "bullets": ("items", "items"),
            "facts": ("pairs", "facts"),
            "intervals": ("rows", "rows"),
            "scatter": ("points", "points"),
        }.get(block["type"], ("", ""))
        if not key:
            return []
        rows = block[key]
        if json_size(block) < limit:
            return [block]
        before = f"{block['more']}\n" if block.get("more", "").startswith("…") else ""

        def with_rows(kept: int) -> list[Json]:
            said = f"{before}… {len(rows) - kept:,} of these {len(rows):,} {what} {_SMALL}{self._end}"
            cut = {**block, key: rows[:kept]}
            return [{**cut, "more": said}] if "more" in block else [cut, self._note(said)]

        bare = sum(json_size(each) + 1 for each in with_rows(0))
        return with_rows(_leading(rows, limit - bare))

    @staticmethod
    def _spans(block: Json, limit: int) -> Json:
        """Return one span without marks in place of those that are too long."""
        empty = {"text": "", "marks": [], "href": ""}
        cut = {**block, "spans": [empty]}
        text = "".join(span["text"] for span in block["spans"])
        return {**cut, "spans": [{**empty, "text": _text_within(text, limit - json_size(cut) - 1)}]}

    @staticmethod
    def _note(text: str) -> Json:
        return {"spans": [{"text": text, "marks": ["muted"], "href": ""}], "type": "paragraph"}


def _bare(block: Json, key: str, empty: Any = ()) -> int:
    """Return the size of a block without what `key` holds, and the comma after it."""
    return json_size({**block, key: empty}) + 1


def _node(node: Json, limit: int) -> Json | None:
    """A node with as many of its children as fit, shared fairly, a long text cut; None where not even that fits."""
    if json_size(node) <= limit:
        return node
    if not node["children"]:
        room = limit - json_size({**node, "text": ""})
        return {**node, "text": _text_within(node["text"], room)} if room >= _LEAST_TEXT else None
    room = limit - json_size({**node, "children": []})
    if room < 0:
        return None
    children = node["children"]
    sizes = [json_size(child) + 1 for child in children]
    shares = share_fairly(sizes, room)
    if max(shares, default=0) < LEAST:
        return {**node, "children": children[: _leading(children, room)]}
    kept = [
        child if size <= share else _node(child, share - 1)
        for child, size, share in zip(children, sizes, shares, strict=True)
    ]
    return {**node, "children": [child for child in kept if child is not None]}
