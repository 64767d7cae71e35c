"""Secrets: the values of the environment and well-known keys, and their removal from text that leaves the kernel.

Invariant: ``text(text(x)) == text(x)``, and no value of an environment variable that is named like a secret
is in what comes out (for a model, a run file, a cassette, a saved display), in any spelling that `spellings` decodes,
nor in base64. A text is looked through as it stands and as it reads once it is decoded. One without a secret and
without an escape comes back as the very same object after one linear pass (about 2 µs for 500 bytes, 2 ms for a
megabyte), since every text of a turn passes here; escapes cost more (50 to 100 ms for a megabyte). Time is linear in
the text, however many secrets it holds.
"""

from __future__ import annotations

import base64
import os
import re
import threading
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from reyn_jupyter.support.key_shapes import SHAPES, KeyShape, key_spans
from reyn_jupyter.support.secret_names import secret_variable
from reyn_jupyter.support.spellings import DECODERS, DecodedText, Spellings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

SHORTEST = 8  # characters; anything shorter would eat ordinary words
DEEPEST = 200  # levels of JSON; what lies deeper is replaced as a whole
LONGEST_KEPT = 16 << 10  # characters of a clean text that is remembered
MOST_KEPT = 4 << 20  # characters of all of them
MOST_TEXTS = 20_000
LONG = 4 << 10  # characters of a text in which one pass tells which secrets are worth looking for
HINT = 32  # characters of a secret that the first pass looks for
_NESTED = "[redacted:nested]"
_STRUCTURE = re.compile(r"""(\\[^u]|[\s"{}\[\],:])""", re.DOTALL)  # of JSON and of lines
_SURROGATE = re.compile("[\ud800-\udfff]+")
_SHORTEST_HINT = 4
_NEVER = r"[^\x00-\x{10FFFF}]"
_PASSES = 3  # looks at what a redaction gave
_SAFE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_versions = count(1)  # of all redactors, so that what is clean for one is not taken for clean for another


@dataclass(frozen=True, slots=True)
class SecretSpan:
    """A secret in a text: text[start:end], and what it is ("key", or the variable's name)."""

    start: int
    end: int
    name: str


@dataclass(frozen=True, slots=True)
class Redaction:
    """A mark that stands where a secret was taken out of a JSON value; text that reads like a mark has none.

    Attributes:
        path: the keys and positions that lead to the string, in the redacted value.
        start, length: the mark, text[start:start + length].
        variable: the environment variable whose value stood there to the letter; None for any other secret.
        in_key: whether the string is the last key of the path, not the value under it.
    """

    path: tuple[str | int, ...]
    start: int
    length: int
    variable: str | None = None
    in_key: bool = False


class Redactor:
    """Knows the secrets of one environment and takes them out of text. Safe to use from several threads.

    Args:
        environ: the environment (`os.environ`); read now, and again at `refresh()`.

    Example:
        >>> redactor = Redactor({"DEMO_API_KEY": "correct-horse"})
        >>> redactor.text("the key is correct-horse, keep it")
        'the key is [redacted:DEMO_API_KEY], keep it'
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._held: dict[Any, Any] | None = None
        self._learnt: dict[str, str] = {}
        self._lock = threading.Lock()
        self._secrets = _Secrets({})
        self._version = 0
        self.refresh()

    def refresh(self) -> None:
        """Read the environment again, as at the start of a run and before an outcome; cheap when nothing changed."""
        # `os.environ` decodes each name and value it is asked for; what it holds can be compared as it is.
        held = getattr(self._environ, "_data", None)
        if held is not None:
            if held == self._held:
                return
            self._held = dict(held)
        values: dict[str, str] = {}
        for name in self._environ:
            if secret_variable(name) and len(value := self._environ.get(name, "").strip()) >= SHORTEST:
                values[name] = value
        for name, value in dict(self._learnt).items():
            values[name if values.get(name, value) == value else f"{name} of the session"] = value
        if values != self._secrets.values:
            self._secrets = _Secrets(values)
            self._version = next(_versions)

    def learn(self, name: str, value: str) -> None:
        """Know a further secret from now on; one of fewer than `SHORTEST` characters cannot be.

        >>> redactor = Redactor({})
        >>> redactor.learn("RATES_API_KEY", "correct-horse")
        >>> redactor.text("the key is correct-horse, keep it")
        'the key is [redacted:RATES_API_KEY], keep it'
        """
        value = value.strip()
        with self._lock:
            if len(value) < SHORTEST or value in self._learnt.values():
                return
            # A name may get another value: the one before is a secret still.
            label = name if name not in self._learnt else f"{name} {len(self._learnt)}"
            self._learnt[label] = value
            self._held = None
        self.refresh()

    def text(self, text: str) -> str:
        """Return the text with every secret replaced by ``[redacted:NAME]`` or ``[redacted:key]``."""
        if text in self._secrets.clean:
            return text
        return self._redacted(text)[0]

    def masked(self, text: str) -> str:
        """Return the text with every secret covered by as many bytes of UTF-8, so that offsets and lines stay true.

        For what is cut afterwards: a secret that a cut had split would no longer be found.

        >>> Redactor({"DEMO_API_KEY": "correct-horse-battery-staple"}).masked("key: correct-horse-battery-staple.")
        'key: [redacted:DEMO_API_KEY]*****.'
        """
        pieces: list[str] = []
        position = 0
        for span in self.spans(text):
            pieces += (text[position : span.start], _covered(text[span.start : span.end], span.name))
            position = span.end
        return "".join([*pieces, text[position:]]) if pieces else text

    def value(self, value: Any) -> Any:
        """Return a JSON value with its strings redacted, keys included; the same object when nothing was found."""
        return self._value(value, 0)

    def redacts(self, text: str) -> bool:
        """Return whether anything in `text` would be redacted."""
        return bool(self.spans(text))

    def marked(self, text: str) -> bool:
        """Return whether `text` holds a mark that a redaction left (an edit that quotes one can match no file)."""
        return "[redacted:" in text and self._secrets.mark.search(text) is not None

    def spans(self, text: str) -> tuple[SecretSpan, ...]:
        """Return the secrets in `text`, in order, overlapping ones joined."""
        secrets = self._secrets
        if text in secrets.clean:
            return ()
        if not secrets.may_be_in(text):
            secrets.remember(text)
            return ()
        found = secrets.found_in(text)
        if found and "[redacted:" in text:
            found = _outside([match.span() for match in secrets.mark.finditer(text)], found)
        if not found:
            secrets.remember(text)
        return _joined(found)

    @property
    def version(self) -> int:
        """A number that differs once the secrets do; 0 where there never were any, and else no other redactor's."""
        return self._version

    def may_hold(self, raw: bytes) -> bool:
        """Return False for bytes that certainly hold no secret, after one linear pass."""
        return self._secrets.may_be_in(raw)

    def byte_spans(self, raw: bytes) -> tuple[SecretSpan, ...]:
        """Return the secrets in the bytes of a text, in order, by their positions as bytes."""
        if not self.may_hold(raw):
            return ()
        text = raw.decode("utf-8", "surrogateescape")
        found: list[SecretSpan] = []
        characters = position = 0
        for span in self.spans(text):
            start = position + _bytes(text[characters : span.start])
            position = start + _bytes(text[span.start : span.end])
            characters = span.end
            found.append(SecretSpan(start, position, span.name))
        return tuple(found)

    def redactions(self, value: Any) -> tuple[Redaction, ...]:
        """Return the marks that `value(value)` puts into a JSON value, in order; none for what looked like one before.

        >>> Redactor({"DEMO_API_KEY": "correct-horse"}).redactions(["[redacted:PATH]", "is correct-horse"])
        (Redaction(path=(1,), start=3, length=23, variable='DEMO_API_KEY', in_key=False),)
        """
        return tuple(self._redactions(value, ()))

    def _redactions(self, value: Any, path: tuple[str | int, ...]) -> Iterator[Redaction]:
        if isinstance(value, str):
            yield from self._in_text(value, path)
        elif isinstance(value, dict | list | tuple) and len(path) >= DEEPEST:
            yield Redaction(path, 0, len(_NESTED))
        elif isinstance(value, dict):
            for key, item in value.items():
                below = (*path, self.text(key) if isinstance(key, str) else key)
                if isinstance(key, str):
                    yield from self._in_text(key, below, in_key=True)
                yield from self._redactions(item, below)
        elif isinstance(value, list | tuple):
            for place, item in enumerate(value):
                yield from self._redactions(item, (*path, place))

    def _in_text(
        self, text: str, path: tuple[str | int, ...], *, in_key: bool = False
    ) -> Iterator[Redaction]:
        for span, taken in self._redacted(text)[1]:
            variable = span.name if taken and self._environ.get(span.name) == taken else None
            yield Redaction(path, span.start, span.end - span.start, variable, in_key)

    def _redacted(self, text: str) -> tuple[str, list[tuple[SecretSpan, str]]]:
        """Return the text with marks, and for each mark where it stands and what stood there."""
        spans = self.spans(text)
        if not spans:
            return text, []
        for _ in range(_PASSES):
            redacted = DecodedText(
                text, ((span.start, span.end, f"[redacted:{span.name}]") for span in spans)
            )
            # A mark ends the word before it, and what stands there may only now be seen to be a key: look again.
            more = self.spans(redacted.text)
            if not more:
                break
            moved = (SecretSpan(*redacted.source(span.start, span.end), span.name) for span in more)
            spans = _joined([*spans, *moved])
        marks: list[tuple[SecretSpan, str]] = []
        longer = 0
        for span in spans:
            start, taken = span.start + longer, text[span.start : span.end]
            longer += len(f"[redacted:{span.name}]") - len(taken)
            marks.append((SecretSpan(start, span.end + longer, span.name), taken))
        return DecodedText(
            text, ((each.start, each.end, f"[redacted:{each.name}]") for each in spans)
        ).text, marks

    def _value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return self._mapping(value, depth)
        if not isinstance(value, list | tuple):
            return value
        if depth >= DEEPEST:
            return _NESTED
        clean = self._secrets.clean
        changed: list[Any] | None = None
        for place, item in enumerate(value):
            made = item if type(item) is str and item in clean else self._value(item, depth + 1)
            if made is not item:
                changed = list(value) if changed is None else changed
                changed[place] = made
        if changed is None:
            return value
        return changed if isinstance(value, list) else tuple(changed)

    def _mapping(self, value: dict[Any, Any], depth: int) -> Any:
        if depth >= DEEPEST:
            return _NESTED
        clean = self._secrets.clean
        made: dict[Any, Any] | None = None
        for place, (key, item) in enumerate(value.items()):
            # Most of what passes here passed before, so that a look is worth more than a call.
            name = self.text(key) if isinstance(key, str) and key not in clean else key
            inner = item if type(item) is str and item in clean else self._value(item, depth + 1)
            if made is None:
                if inner is item and name is key:
                    continue
                made = dict(islice(value.items(), place))
            made[name] = inner
        return value if made is None else made


def environment_redaction() -> Callable[[str], str]:
    """Return a function that takes the secrets of the environment, as they are now, out of a text.

    So it does with what `cover_in_displays` was told.
    """
    redactor = _environment_redactor()
    redactor.refresh()
    return redactor.text


def cover_in_displays(name: str, value: str) -> None:
    """Take a secret that is in no environment, or there under a harmless name, out of what is displayed, too."""
    _environment_redactor().learn(name, value)


@cache
def _environment_redactor() -> Redactor:
    return Redactor(os.environ)


class _Secrets:
    """The secrets of one moment, in every form that is looked for."""

    def __init__(self, values: Mapping[str, str]) -> None:
        labels = {name: name if _SAFE_NAME.fullmatch(name) else "secret" for name in values}
        marks = [
            f"[redacted:{label}]" for label in dict.fromkeys((*labels.values(), "key", "secret", "nested"))
        ]
        self.values = values
        # Texts that were looked through and hold nothing: the same prompts, schemas and listings pass again and again.
        # It goes with these secrets, so that no text is taken for clean that a new secret is in.
        self.clean: dict[str, None] = {}
        self._kept = 0
        self.mark = re.compile("|".join(re.escape(mark) for mark in marks))
        self._spellings = Spellings(
            decoder
            for decoder in DECODERS
            if not decoder.needs or any(decoder.needs in value for value in values.values())
        )
        self.needles: dict[str, str] = {}
        for name, value in values.items():
            for form in self._forms(value):
                # A value that is part of a mark would be found in every mark, without end.
                if len(form) >= SHORTEST and not any(form in mark for mark in marks):
                    self.needles.setdefault(form, labels[name])

    def found_in(self, text: str) -> list[SecretSpan]:
        """Return the secrets in a text as it stands and as it reads once it is decoded; they may overlap."""
        found = self._read(text, ()) if _matches(self._hint, text) else []
        way: list[Callable[[], DecodedText]] = []
        for decoded, read in self._spellings.layers(text):
            way.append(read)
            if not _matches(self._hint, decoded):
                continue
            readings = [step() for step in way]
            for span in self._read(decoded, readings[-1].seams):
                start, end = span.start, span.end
                for reading in reversed(readings):
                    start, end = reading.source(start, end)
                found.append(SecretSpan(start, end, span.name))
        return found

    def _read(self, text: str, seams: Collection[int]) -> list[SecretSpan]:
        needles, shapes = self._present(text) if len(text) >= LONG else (self.needles, SHAPES)
        found = [
            SecretSpan(start, end, self.needles[needle])
            for needle in needles
            for start, end in _occurrences(text, needle)
        ]
        keys = key_spans(text, [(span.start, span.end) for span in found], seams, shapes)
        return [*found, *(SecretSpan(start, end, "key") for start, end in keys)]

    def _present(self, text: str) -> tuple[Iterable[str], Sequence[KeyShape]]:
        """Return the needles and shapes that can be in a text, after one pass; all where that cannot be told."""
        needles, shapes = list(self.needles), SHAPES
        try:
            found = self._hint_set.Match(text)
        except UnicodeEncodeError:  # lone surrogates, which RE2 cannot read
            found = None
        if not found:  # it is only called where a hint matched, so the set ran out of memory
            return needles, shapes
        there = set(found)
        return (
            [each for at, each in enumerate(needles) if at in there or not _literal(each)],
            [each for at, each in enumerate(shapes, len(needles)) if at in there],
        )

    @cached_property
    def _hint_set(self) -> Any:
        """The hints of the needles and then of the shapes, by number; a needle without a hint has a number too."""
        import re2

        hints = re2.Set.SearchSet(_options())
        for needle in self.needles:
            hints.Add(re2.escape(_literal(needle)) or _NEVER)
        for shape in SHAPES:
            hints.Add(shape.hint)
        hints.Compile()
        return hints

    def _forms(self, value: str) -> Iterator[str]:
        """Return the texts that reveal a value: itself, as it reads once decoded, its lines, base64 at any offset."""
        yield value
        yield from (decoded for decoded, _ in self._spellings.layers(value))
        yield value.replace(" ", "+")  # of a form in a URL
        if not value.isascii():
            yield from (unicodedata.normalize(form, value) for form in ("NFC", "NFD"))
        if value.startswith("-----BEGIN"):
            lines = (line.strip() for line in value.splitlines())
            yield from (line for line in lines if len(line) >= 2 * SHORTEST and "-----" not in line)
        raw = value.encode("utf-8", "surrogateescape")
        for offset in range(3):
            # Only the characters that the value alone decides; its neighbours decide the rest.
            encoded = base64.b64encode(b"\0" * offset + raw).decode()
            certain = encoded[(offset * 8 + 5) // 6 : (offset + len(raw)) * 8 // 6]
            yield certain
            yield certain.replace("+", "-").replace("/", "_")

    def remember(self, text: str) -> None:
        """Keep a clean text, within bounds; when they are reached, begin again."""
        if len(text) > LONGEST_KEPT:
            return
        if self._kept + len(text) > MOST_KEPT or len(self.clean) >= MOST_TEXTS:
            self.clean, self._kept = {}, 0
        self.clean[text] = None
        self._kept += len(text)

    def may_be_in(self, text: str | bytes) -> bool:
        """Return False for a text that certainly holds no secret, after one linear pass."""
        return _matches(self._first_hint, text)

    @cached_property
    def _first_hint(self) -> Any:
        """What is in every text that holds a secret, or an escape."""
        return _compiled((*self._hints, self._spellings.hint))

    @cached_property
    def _hint(self) -> Any:
        """What is in every text that spells a secret out."""
        return _compiled(self._hints)

    @property
    def _hints(self) -> tuple[str, ...]:
        import re2

        known = [re2.escape(literal) for needle in self.needles if (literal := _literal(needle))]
        return (*known, *(shape.hint for shape in SHAPES))


def _literal(needle: str) -> str:
    """Return the part of a needle that RE2 can look for; "" where none is long enough."""
    # One character of a text that is read with "surrogateescape" cannot be looked for: RE2 says so then.
    literal = max(_SURROGATE.split(needle), key=len)[:HINT]
    return literal if len(literal) >= _SHORTEST_HINT else ""


def _compiled(hints: Iterable[str]) -> Any:
    import re2

    return re2.compile("|".join(hints), _options())


def _options() -> Any:
    import re2

    options = re2.Options()
    options.max_mem = 64 << 20
    return options


def _matches(hint: Any, text: str | bytes) -> bool:
    try:
        return hint.search(text) is not None
    except UnicodeEncodeError:  # lone surrogates, which RE2 cannot read
        return True


def _outside(marks: list[tuple[int, int]], spans: list[SecretSpan]) -> list[SecretSpan]:
    """Return the spans that lie in none of the marks, which follow each other."""
    starts = [start for start, _ in marks]
    return [
        span for span in spans if (at := bisect_right(starts, span.start) - 1) < 0 or span.end > marks[at][1]
    ]


def _covered(secret: str, name: str) -> str:
    """Return a mark where it fits, and asterisks; structure that the span reaches over stays."""
    mark = f"[redacted:{name}]"

    def cover(piece: str) -> str:
        return mark + "*" * (_bytes(piece) - len(mark)) if len(mark) <= len(piece) else "*" * _bytes(piece)

    pieces = _STRUCTURE.split(secret)
    return "".join(piece if at % 2 else cover(piece) for at, piece in enumerate(pieces))


def _bytes(text: str) -> int:
    """Return the number of bytes as UTF-8; of text read with "surrogateescape", of the bytes that it was read from."""
    try:
        return len(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return len(text.encode("utf-8", "surrogatepass"))


def _occurrences(text: str, needle: str) -> Iterator[tuple[int, int]]:
    """Yield where a needle stands, from start to end; those that overlap are one (a secret may repeat itself)."""
    size = len(needle)
    start = text.find(needle)
    while start >= 0:
        last = start
        while (following := text.find(needle, last + 1, last + 2 * size - 1)) >= 0:
            last = following
        yield start, last + size
        start = text.find(needle, last + size)


def _joined(spans: list[SecretSpan]) -> tuple[SecretSpan, ...]:
    joined: list[SecretSpan] = []
    # Of two that start together the longer names the whole; a variable's name tells more than "key".
    for span in sorted(spans, key=lambda span: (span.start, -span.end, span.name == "key")):
        if joined and span.start < joined[-1].end:
            last = joined[-1]
            name = span.name if last.name == "key" else last.name
            joined[-1] = SecretSpan(last.start, max(last.end, span.end), name)
        else:
            joined.append(span)
    return tuple(joined)
