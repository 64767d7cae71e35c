"""The detail of a question of consent: targets, and the change or the arguments, as lines that hide nothing.

Invariants: no line is cut. A long one goes on in further lines, and whatever is not drawn is marked, so that what a
person reads is what would run. Content stands behind a bar of its own, so that no content can pass for the question.
What cannot be shown (bytes that are no text, a masked secret, an object of the notebook) is said in a sentence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Literal

from reyn_jupyter.catalog.action import PartialPreview
from reyn_jupyter.catalog.action_face import FaceChange
from reyn_jupyter.catalog.effects import Effect, EffectKind
from reyn_jupyter.outputs.byte_source import AROUND
from reyn_jupyter.support.network.hosts import read_host_pattern
from reyn_jupyter.support.sanitize import printable, printable_path
from reyn_jupyter.support.secrets import Redactor
from reyn_jupyter.support.text import count

WIDTH = 160  # characters of a line, after which it goes on in the next one
MOST_SHOWN = 1 << 20  # characters of the targets, and of the change
DEEPEST = 40  # levels of an argument
_MOST_ORIGINS = 5
UNDER_WAY = "The call is under way already, and asks for more:"
CHANGED = "You said always to another version of this action."
MASKED = "A secret in it is masked."

LineKind = Literal["effect", "note", "text", "added", "removed", "place"]
_SIGNS: dict[str, LineKind] = {"+": "added", "-": "removed", "@": "place"}
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class DetailLine:
    """A line of the detail, at most `WIDTH` characters before hidden ones are marked.

    Attributes:
        kind: "effect" (a target), "note" (a sentence of ours), or content: "text", "added", "removed", "place".
        text: what stands there, on one line and without a hidden character.
        continued: it goes on with the line above.
    """

    kind: LineKind
    text: str
    continued: bool = False

    def __str__(self) -> str:
        """Return the line for a terminal, content behind a bar."""
        bar = "┆ " if self.continued else "" if self.kind in ("effect", "note") else "│ "
        return f"  {bar}{self.text}"


@dataclass(frozen=True)
class QuestionDetail:
    """The lines of a question, and in sentences what they cannot show."""

    lines: tuple[DetailLine, ...]
    withheld: tuple[str, ...] = ()


def question_detail(
    effects: Sequence[Effect | str],
    preview: str | PartialPreview | None,
    arguments: Mapping[str, Any],
    redactor: Redactor,
    reason: str | None = None,
    changes: Sequence[FaceChange] = (),
    origins: Sequence[str] = (),
) -> QuestionDetail:
    """Return what a call would do: its targets, then the preview of its tool, or else its arguments.

    Args:
        effects: what the call would change, or lines in place of it.
        preview: what the tool says of the change; None where it says nothing.
        arguments: what the call will be given.
        redactor: masks secrets, in the whole text before it is split.
        reason: what a handler says of a question in the middle of its call, "" where it says nothing; None before one.
        changes: what is different from the action that the person said "always" to.
        origins: where strangers' texts came from that the model has read, and that may have asked for the call.
    """
    withheld: list[str] = []
    targets = "\n".join(_one_line(_shown(each)) for each in effects)
    targets = _bounded(targets or "run (its effects are not known in advance)", "targets", withheld)
    if isinstance(preview, PartialPreview):
        withheld.append(preview.missing)
        preview = preview.text
    content = preview if preview is not None else _arguments_text(arguments, withheld)
    if reason:
        # Last, and indented, so that it neither pushes an argument out of what is shown nor passes for one.
        content = f"{content}\nreason: " + reason.replace("\n", "\n    ")
    # Whatever is shown is masked with all around it that may be part of a secret; the rest is only counted.
    content, rest = content[: MOST_SHOWN + AROUND], content[MOST_SHOWN + AROUND :]
    masked = redactor.masked(content)
    shown_targets = redactor.text(targets)
    if masked != content or shown_targets != targets:
        withheld.append(MASKED)
    lines = [DetailLine("note", UNDER_WAY)] if reason is not None else []
    lines += _face_lines(changes, redactor, withheld)
    lines += _origin_lines(origins, redactor)
    lines += _split("effect", shown_targets.split("\n"))
    lines += _content_lines(_bounded(masked, "content", withheld, beyond=len(rest)))
    notes = tuple(dict.fromkeys(withheld))
    return QuestionDetail((*lines, *(DetailLine("note", printable(each)) for each in notes)), notes)


def _face_lines(
    changes: Sequence[FaceChange], redactor: Redactor, withheld: list[str]
) -> Iterator[DetailLine]:
    """Yield what an action's maker has changed since the person said "always", their words as content."""
    for change in changes:
        yield DetailLine("note", f"{CHANGED} {change.sentence}")
        sides: tuple[tuple[LineKind, str], ...] = (
            ("removed", f"-{change.before}"),
            ("added", f"+{change.now}"),
        )
        for kind, text in sides:
            if len(text) > 1:
                yield from _split(kind, _bounded(redactor.text(text), "description", withheld).split("\n"))


def _origin_lines(origins: Sequence[str], redactor: Redactor) -> Iterator[DetailLine]:
    if origins:
        yield DetailLine("note", "The model has read text of others before, which may have asked for this:")
        for origin in origins[-_MOST_ORIGINS:]:
            yield from _split("text", [redactor.text(origin)])
        if len(origins) > _MOST_ORIGINS:
            yield DetailLine("note", f"and {len(origins) - _MOST_ORIGINS:,} earlier ones.")


def _shown(effect: Effect | str) -> str:
    """Return an effect as a line; a host without a port with the ports that it stands for."""
    if not isinstance(effect, Effect) or effect.kind is not EffectKind.NETWORK:
        return str(effect)
    if read_host_pattern(effect.target).host.port is None:
        return f"{effect} (ports 80 and 443)"
    return str(effect)


def _one_line(text: str) -> str:
    return text.replace("\n", "␊")


def _bounded(text: str, what: str, withheld: list[str], beyond: int = 0) -> str:
    left = len(text) - MOST_SHOWN + beyond
    if left > 0:
        withheld.append(f"The last {count(left, 'character')} of its {what} are not shown.")
    return text[:MOST_SHOWN]


def _content_lines(content: str) -> Iterator[DetailLine]:
    """Yield a text as lines, the changes of a unified diff by their kind."""
    if not content:
        return
    lines = content.removesuffix("\n").split("\n")
    is_diff = len(lines) > 2 and lines[0].startswith("--- ") and lines[1].startswith("+++ ")
    kinds: list[LineKind] = [_SIGNS.get(line[:1], "text") if is_diff else "text" for line in lines]
    if is_diff:
        kinds[:2] = ["text", "text"]
    pairs = _replaced(kinds)
    for at, (kind, line) in enumerate(zip(kinds, lines, strict=True)):
        if at in pairs and len(line) > WIDTH:
            first = _first_difference(line[1:], lines[pairs[at]][1:])
            yield DetailLine("note", f"The next line changes from character {first} on.")
        yield from _split(kind, [line], is_path=is_diff and at < 2)


def _replaced(kinds: Sequence[LineKind]) -> dict[int, int]:
    """Return which removed line is replaced by which added one, where as many are added as are removed."""
    pairs: dict[int, int] = {}
    at = 0
    for kind, group in groupby(kinds):
        size = len(list(group))
        if kind == "removed" and list(kinds[at + size : at + 2 * size + 1]).count("added") == size:
            pairs.update((at + each, at + size + each) for each in range(size))
        at += size
    return pairs


def _first_difference(old: str, new: str) -> int:
    """Return the first character, counted from 1, in which two lines differ."""
    same = next(
        (place for place, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), None
    )
    return 1 + (min(len(old), len(new)) if same is None else same)


def _split(kind: LineKind, lines: Iterable[str], *, is_path: bool = False) -> Iterator[DetailLine]:
    for line in lines:
        # A target may be a path; content is in whatever script its writer has.
        safe = printable_path if is_path or kind == "effect" else printable
        first = DetailLine(kind, safe(line[:WIDTH]))
        yield first
        for start in range(WIDTH, len(line), WIDTH):
            yield replace(first, text=safe(line[start : start + WIDTH]), continued=True)


@dataclass
class _Copy:
    """A copy of arguments that JSON can hold, with the types of what it cannot."""

    unknown: list[str] = field(default_factory=list)

    def of(self, value: object, depth: int = 0) -> object:
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return value
        if depth >= DEEPEST or kind not in (dict, list, tuple):
            self.unknown.append(kind.__name__)
            return f"<{kind.__name__}>"
        if isinstance(value, dict):
            return {
                key if type(key) is str else f"<{type(key).__name__}>": self.of(each, depth + 1)
                for key, each in value.items()
            }
        assert isinstance(value, list | tuple)
        return [self.of(each, depth + 1) for each in value]


def _arguments_text(arguments: Mapping[str, Any], withheld: list[str]) -> str:
    """Return one entry for each argument: a text of several lines indented below its name, anything else as JSON."""
    copy = _Copy()
    entries = []
    for name, value in arguments.items():
        key = name if _WORD.fullmatch(name) else json.dumps(name)
        if type(value) is str and "\n" in value:
            entries.append(f"{key}:\n" + "\n".join(f"    {line}" for line in value.split("\n")))
        else:
            entries.append(f"{key}: {json.dumps(copy.of(value), ensure_ascii=False, indent=2)}")
    withheld += [f"An object of type {kind} is not shown." for kind in dict.fromkeys(copy.unknown)]
    return "\n".join(entries)
