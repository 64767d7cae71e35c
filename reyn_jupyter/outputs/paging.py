"""The pieces that answers of `inspect` are made of: lines, elements, values, keys, each with what is left.

Invariant: each piece keeps to its cap in bytes, shows as many whole lines or elements as fit, and ends with one line
that says what is left and which selector comes next. What does not even fit once is cut, and ``bytes:`` comes next.
"""

from __future__ import annotations

from reyn_jupyter.outputs.encoding import clip, one_line
from reyn_jupyter.outputs.info import headline
from reyn_jupyter.outputs.structure import JsonIndex, Member, elements, label_at, members
from reyn_jupyter.outputs.view import BlobView

LEADING_LINES, LEADING_ELEMENTS, LEADING_VALUES = 50, 5, 3
TRAILER = 192  # bytes kept for the last line


def overview(view: BlobView, cap: int) -> str:
    """Kind and size, then the leading part: 50 lines, 5 elements, or all keys with types and the first 3 values."""
    info = view.info
    if info.is_json:
        described = headline(view.json.kind, view.json.count, info.frame)
    else:
        described = headline(info.kind, view.lines.count)
    header = f"{described} | {info.size} bytes"
    room = cap - len(header.encode()) - 1
    if not info.is_json:
        leading = lines_from(view, 0, LEADING_LINES, room)
    elif view.json.kind == "json_object":
        leading = _leading_keys(view, view.json, room)
    elif view.json.kind == "json_array":
        leading = _leading_elements(view, room)
    else:
        leading = value_at(view, view.json.start, view.json.end, room)
    return f"{header}\n{leading}"


def left(number: int, unit: str, following: str = "") -> str:
    """The last line of an answer.

    >>> left(150, "lines", "lines:51-100")
    '150 lines left · next: lines:51-100'
    """
    return f"{number} {unit} left" + (f" · next: {following}" if number and following else "")


def _cut(view: BlobView, position: int, cap: int) -> str:
    """The last line where the cap cut inside a line or value: the bytes from there on."""
    return left(view.info.size - position, "bytes", f"bytes:{position}..{position + cap - TRAILER}")


def lines_from(view: BlobView, first: int, stop: int | None, cap: int) -> str:
    """Lines ``first … stop-1`` (0-based); None stands for the end. The next page is as long as the one asked for."""
    count = view.lines.count
    if first >= count:
        return f"no line {first + 1}: the text has {count} lines"
    shown, lines, position = view.read_lines(
        first, count if stop is None else min(stop, count), cap - TRAILER
    )
    if not lines:
        return f"{shown}\n{_cut(view, position, cap)}"
    following = first + lines
    end = "" if stop is None else str(following + stop - first)
    return f"{shown}\n{left(count - following, 'lines', f'lines:{following + 1}-{end}')}"


def _fitting(view: BlobView, first: int, stop: int, room: int) -> tuple[list[str], int]:
    """Elements as text while they fit; when not even the first does, its beginning, and where it was cut (else -1)."""
    shown: list[str] = []
    for start, end in elements(view.source, view.json, first, stop):
        text, reached = view.written(start, end, room)
        if reached < end:
            return (shown, -1) if shown else ([text], reached)
        shown.append(text)
        room -= len(text.encode()) + 1
    return shown, -1


def _leading_elements(view: BlobView, cap: int) -> str:
    shown, cut = _fitting(view, 0, LEADING_ELEMENTS, cap - TRAILER)
    if cut >= 0:
        return f"{shown[0]}\n{_cut(view, cut, cap)}"
    following = len(shown)
    remaining = left(
        view.json.count - following, "entries", f"slice:{following}..{following + LEADING_ELEMENTS}"
    )
    return "\n".join([*shown, remaining])


def elements_from(view: BlobView, first: int, stop: int | None, cap: int) -> str:
    """Elements ``first … stop-1`` as one array; None stands for the end. Pages follow as for lines."""
    count = view.json.count
    shown, cut = _fitting(view, first, count if stop is None else stop, cap - TRAILER - 2)
    if cut >= 0:
        return f"[{shown[0]}\n{_cut(view, cut, cap)}"
    if first >= count and first:
        return f"[]\nno element {first}: the array has {count} entries"
    following = first + len(shown)
    end = "" if stop is None else str(following + max(1, stop - first))
    return f"[{','.join(shown)}]\n{left(count - following, 'entries', f'slice:{following}..{end}')}"


def value_at(view: BlobView, start: int, end: int, cap: int) -> str:
    """One value, whole when it fits; else its beginning and the bytes that come next."""
    text, reached = view.written(start, end, cap)
    if reached >= end:
        return text
    text, reached = view.written(start, end, cap - TRAILER)
    following = f"bytes:{reached}..{min(end, reached + cap - TRAILER)}"
    return f"{text}\n{left(end - reached, 'bytes of this value', following)}"


def _leading_keys(view: BlobView, index: JsonIndex, cap: int) -> str:
    """All keys with their types, as many as fit into half of the room, then the first values."""
    lines = ["── keys ──"]
    first: list[Member] = []
    room = (cap - TRAILER) // 2
    for number, member in enumerate(members(view.source, index)):
        line = f"{_name(member)}: {label_at(view.source, member.start, member.end, member.inner)}"
        room -= len(line.encode()) + 1
        if room < 0:
            following = f"bytes:{member.start}..{member.start + cap // 2}"
            lines.append(f"… {index.count - number} keys omitted · next: {following}")
            break
        lines.append(line)
        if len(first) <= LEADING_VALUES:
            first.append(member)
    lines.append("── values ──")
    return "\n".join([*lines, *_leading_values(view, index, first, cap - len("\n".join(lines).encode()) - 1)])


def _leading_values(view: BlobView, index: JsonIndex, first: list[Member], cap: int) -> list[str]:
    lines: list[str] = []
    room = cap - TRAILER
    for number, member in enumerate(first[:LEADING_VALUES]):
        name = f"{_name(member)}: "
        text, reached = view.written(member.start, member.end, max(0, room - len(name.encode())))
        lines.append(name + text)
        room -= len(lines[-1].encode()) + 1
        if reached < member.end:
            following = f"bytes:{reached}..{member.end}"
            cut = left(member.end - reached, "bytes of this value", following)
            return [*lines, f"{left(index.count - number - 1, 'values')}, {cut}"]
    following = _key_selector(first[LEADING_VALUES]) if len(first) > LEADING_VALUES else ""
    return [*lines, left(max(0, index.count - LEADING_VALUES), "values", following)]


def _name(member: Member) -> str:
    return clip(one_line(member.key), 200)


def _key_selector(member: Member) -> str:
    plain = len(member.key.encode("utf-8", "replace")) <= 100 and one_line(member.key) == member.key
    return f"key:{member.key}" if plain else f"bytes:{member.start}..{member.end}"
