"""Takes secrets out of text where it leaves the kernel: to a model, a run file, a cassette, a saved display.

Invariant: ``text(text(x)) == text(x)``, and no value of an environment variable that is named like a secret
is in what comes out, in its plain, repr, JSON, base64 or URL form. A text without a secret comes back as the very
same object after one linear pass (about 2 µs for 500 bytes, 2 ms for a megabyte), since every text of a
turn passes here. Nothing is redacted by entropy: that would eat hashes.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

from reyn_jupyter.guard.key_shapes import SHAPES, contains_key_shape, key_spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Redactor", "Span", "contains_key_shape"]

SHORTEST = 8  # characters; anything shorter would eat ordinary words
DEEPEST = 200  # levels of JSON; what lies deeper is replaced as a whole
LONGEST_KEPT = 16 << 10  # characters of a clean text that is remembered
MOST_KEPT = 4 << 20  # characters of all of them
MOST_TEXTS = 20_000
HINT = 32  # characters of a secret that the first pass looks for
_SECRET_NAME = re.compile(
    r"TOKEN(?!IZ)|SECRET|PASSW(?:OR)?D|PASSPHRASE|CREDENTIAL|PRIVATE|KEYS?(?![A-Z])|_(?:PWD|PAT|PASS|DSN|AUTH)$",
    re.IGNORECASE,
)
_STRUCTURE = re.compile(r"""(\\u[0-9a-fA-F]{4}|\\.|[\s"{}\[\],:])""", re.DOTALL)  # of JSON and of lines
_SAFE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True)
class Span:
    """A secret in a text: text[start:end], and what it is ("key", or the variable's name)."""

    start: int
    end: int
    name: str


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
        self._named: dict[str, bool] = {}
        self._secrets = _Secrets({})
        self.refresh()

    def refresh(self) -> None:
        """Read the environment again; cheap when no secret changed. Call it at the start of a run."""
        values: dict[str, str] = {}
        for name in self._environ:
            named = self._named.get(name)
            if named is None:
                named = self._named[name] = _SECRET_NAME.search(name) is not None
            if named and len(value := self._environ.get(name, "").strip()) >= SHORTEST:
                values[name] = value
        if values != self._secrets.values:
            self._secrets = _Secrets(values)

    def text(self, text: str) -> str:
        """The text with every secret replaced by ``[redacted:NAME]`` or ``[redacted:key]``."""
        if text in self._secrets.clean:
            return text
        # A mark ends the word before it, and what stands there may only now be seen to be a key: look again.
        while spans := self.spans(text):
            pieces: list[str] = []
            position = 0
            for span in spans:
                pieces += (text[position : span.start], f"[redacted:{span.name}]")
                position = span.end
            pieces.append(text[position:])
            text = "".join(pieces)
        return text

    def masked(self, text: str) -> str:
        """The text with every secret covered by as many bytes of UTF-8, so that offsets and lines stay true.

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
        """A JSON value with its strings redacted, keys included; the same object when nothing was found."""
        return self._value(value, 0)

    def redacts(self, text: str) -> bool:
        """Whether anything in `text` would be redacted."""
        return bool(self.spans(text))

    def marked(self, text: str) -> bool:
        """Whether `text` holds a mark that a redaction left (an edit that quotes one can match no file)."""
        return "[redacted:" in text and self._secrets.mark.search(text) is not None

    def spans(self, text: str) -> tuple[Span, ...]:
        """The secrets in `text`, in order, overlapping ones joined."""
        secrets = self._secrets
        if text in secrets.clean:
            return ()
        if not secrets.may_be_in(text):
            secrets.remember(text)
            return ()
        found = [Span(start, end, "key") for start, end in key_spans(text)]
        for needle, name in secrets.needles.items():
            found += (Span(at, at + len(needle), name) for at in _occurrences(text, needle))
        if "[redacted:" in text:
            marks = [match.span() for match in secrets.mark.finditer(text)]
            found = [span for span in found if not any(a <= span.start and span.end <= b for a, b in marks)]
        return _joined(found)

    def _value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return self._mapping(value, depth)
        if not isinstance(value, list | tuple):
            return value
        if depth >= DEEPEST:
            return "[redacted:nested]"
        changed: list[Any] | None = None
        for place, item in enumerate(value):
            made = self._value(item, depth + 1)
            if made is not item:
                changed = list(value) if changed is None else changed
                changed[place] = made
        if changed is None:
            return value
        return changed if isinstance(value, list) else tuple(changed)

    def _mapping(self, value: dict[Any, Any], depth: int) -> Any:
        if depth >= DEEPEST:
            return "[redacted:nested]"
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
        self.needles: dict[str, str] = {}
        for name, value in values.items():
            for form in _forms(value):
                # A value that is part of a mark would be found in every mark, without end.
                if not any(form in mark for mark in marks):
                    self.needles.setdefault(form, labels[name])

    def remember(self, text: str) -> None:
        """Keep a clean text, within bounds; when they are reached, begin again."""
        if len(text) > LONGEST_KEPT:
            return
        if self._kept + len(text) > MOST_KEPT or len(self.clean) >= MOST_TEXTS:
            self.clean, self._kept = {}, 0
        self.clean[text] = None
        self._kept += len(text)

    def may_be_in(self, text: str) -> bool:
        """Whether `text` deserves a closer look; one linear pass."""
        try:
            return self._hint.search(text) is not None
        except UnicodeEncodeError:  # lone surrogates, which RE2 cannot read
            return True

    @cached_property
    def _hint(self) -> Any:
        import re2

        options = re2.Options()
        options.max_mem = 64 << 20
        literals = [re2.escape(needle[:HINT]) for needle in self.needles]
        return re2.compile("|".join([*literals, *(shape.hint for shape in SHAPES)]), options)


def _covered(secret: str, name: str) -> str:
    """A mark where it fits, and asterisks; where the span reaches over structure, that stays."""
    mark = f"[redacted:{name}]"

    def cover(piece: str) -> str:
        return mark + "*" * (_bytes(piece) - len(mark)) if len(mark) <= len(piece) else "*" * _bytes(piece)

    pieces = _STRUCTURE.split(secret)
    return "".join(piece if at % 2 else cover(piece) for at, piece in enumerate(pieces))


def _bytes(text: str) -> int:
    """Bytes of UTF-8; of text that was read with "surrogateescape", those that it was read from."""
    try:
        return len(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return len(text.encode("utf-8", "surrogatepass"))


def _occurrences(text: str, needle: str) -> Iterator[int]:
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + 1)


def _joined(spans: list[Span]) -> tuple[Span, ...]:
    joined: list[Span] = []
    # Of two that start together the longer names the whole; a variable's name tells more than "key".
    for span in sorted(spans, key=lambda span: (span.start, -span.end, span.name == "key")):
        if joined and span.start < joined[-1].end:
            last = joined[-1]
            name = span.name if last.name == "key" else last.name
            joined[-1] = Span(last.start, max(last.end, span.end), name)
        else:
            joined.append(span)
    return tuple(joined)


def _forms(value: str) -> Iterator[str]:
    """The texts that give a value away: itself, each line of a key block, repr, JSON, URL, base64 at any offset."""
    yield value
    yield repr(value)[1:-1]
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    if value.startswith("-----BEGIN"):
        lines = (line.strip() for line in value.splitlines())
        yield from (line for line in lines if len(line) >= 2 * SHORTEST and "-----" not in line)
    raw = value.encode("utf-8", "surrogateescape")
    for quoted in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield quoted
        yield re.sub(r"%[0-9A-F]{2}", lambda match: match[0].lower(), quoted)
    for offset in range(3):
        # Only the characters that the value alone decides; its neighbours decide the rest.
        encoded = base64.b64encode(b"\0" * offset + raw).decode()
        certain = encoded[(offset * 8 + 5) // 6 : (offset + len(raw)) * 8 // 6]
        yield certain
        yield certain.replace("+", "-").replace("/", "_")
