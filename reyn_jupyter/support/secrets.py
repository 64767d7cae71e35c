"""Secrets: the shapes of well-known keys, and their removal from text that leaves the kernel.

Invariant: ``text(text(x)) == text(x)``, and no value of an environment variable that is named like a secret
is in what comes out (for a model, a run file, a cassette, a saved display), in its plain, repr, JSON, base64 or
URL form. A text without a secret comes back as the very same object after one linear pass (about 2 µs for 500
bytes, 2 ms for a megabyte), since every text of a turn passes here. Nothing is taken for a key because it
looks random: hashes and identifiers stay as they are. The prefixes are those that the providers publish for
secret scanning. Each shape has a hint, a part of it in the syntax of RE2: one linear pass with all hints decides
whether a text is looked at any closer.
"""

from __future__ import annotations

import base64
import json
import os
import re
import threading
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

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
_NESTED = "[redacted:nested]"
_STRUCTURE = re.compile(r"""(\\u[0-9a-fA-F]{4}|\\.|[\s"{}\[\],:])""", re.DOTALL)  # of JSON and of lines
_SAFE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class KeyShape(NamedTuple):
    """A kind of key.

    Attributes:
        needles: substrings, one of which is in every text that holds such a key.
        pattern: the key; group 1, if there is one, is the secret part.
        hint: a regular expression without look-around that is found wherever `pattern` is.
    """

    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    hint: str


def _shape(pattern: str, *needles: str, hint: str = "", flags: int = 0) -> KeyShape:
    compiled = re.compile(pattern, re.ASCII | flags)
    return KeyShape(needles, compiled, hint or "|".join(re.escape(needle) for needle in needles))


_START = r"(?<![A-Za-z0-9_-])"  # not in the middle of a word: `task-…` is no `sk-…`
_PRIVATE_KEY = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"

SHAPES: tuple[KeyShape, ...] = (
    # A bare sk- key is one run without hyphens; words joined by hyphens (CSS classes) are not.
    _shape(
        _START + r"sk-(?:(?:ant|proj|or|svcacct|admin|lf)-[A-Za-z0-9_-]{16,}|[A-Za-z0-9]{20,})",
        "sk-",
        hint=r"sk-[A-Za-z0-9_-]{16}",
    ),
    _shape(_START + r"(?:[srp]k|whsec)_(?:live_|test_)?[A-Za-z0-9]{20,}", "sk_", "rk_", "pk_", "whsec_"),
    _shape(_START + r"gh[pousr]_[A-Za-z0-9]{30,}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _shape(_START + r"github_pat_[A-Za-z0-9_]{22,}", "github_pat_"),
    _shape(
        _START + r"gl(?:pat|dt|rt|cbt|ptt)-[A-Za-z0-9_.-]{20,}",
        "glpat-",
        "gldt-",
        "glrt-",
        "glcbt-",
        "glptt-",
    ),
    _shape(r"(?<![A-Za-z0-9])A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])", "AKIA", "ASIA"),
    _shape(_START + r"AIza[A-Za-z0-9_-]{35}", "AIza"),
    _shape(_START + r"ya29\.[A-Za-z0-9_-]{20,}", "ya29."),
    _shape(_START + r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}", "xox"),
    _shape(_START + r"xapp-[A-Za-z0-9-]{20,}", "xapp-"),
    _shape(_START + r"hf_[A-Za-z0-9]{30,}", "hf_"),
    _shape(_START + r"npm_[A-Za-z0-9]{30,}", "npm_"),
    _shape(_START + r"pypi-[A-Za-z0-9_-]{50,}", "pypi-"),
    _shape(_START + r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}", "SG."),
    _shape(_START + r"(?:gsk|r8|dop_v1)_[A-Za-z0-9]{30,}", "gsk_", "r8_", "dop_v1_"),
    _shape(_START + r"(?:xai|pplx|tvly|nvapi)-[A-Za-z0-9_-]{20,}", "xai-", "pplx-", "tvly-", "nvapi-"),
    _shape(_START + r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}", "eyJ"),
    # The body ends at the next run of five hyphens, so many openings without an end stay linear.
    _shape(
        rf"-----BEGIN {_PRIVATE_KEY}(?:[^-]|-(?!----)){{0,20000}}(?:-----END {_PRIVATE_KEY})?",
        "PRIVATE KEY",
    ),
    _shape(
        r"\b(?:bearer|basic)\s{1,8}((?=[A-Za-z_./+~=-]{0,400}[0-9])[A-Za-z0-9._~+/-]{16,}={0,2})",
        *("bearer", "Bearer", "BEARER", "basic", "Basic", "BASIC"),
        hint=r"(?:[Bb]earer|BEARER|[Bb]asic|BASIC)\s+[A-Za-z0-9._~+/-]{16}",
        flags=re.IGNORECASE,
    ),
    # The password of a URL.
    _shape(
        r"://[^\s/:@\[\]'\"]{0,100}:([^\s/@\[\]'\"]{3,200})@[A-Za-z0-9.\[-]",
        "://",
        hint=r"://[^\s/:@]*:[^\s/@]+@",
    ),
)

# What a provider quotes of a key that it refused: its beginning, or the key with its middle starred out.
PARTIAL_KEY = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|pplx|nvapi|AIza|ghp|Bearer|Basic)[-_ ]?[A-Za-z0-9_\-*.=+/]{8,}"
    r"|\b\w{3,12}\*{3,}\w{0,8}"
)


def key_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of `text` that have the shape of a key, kind by kind."""
    for shape in SHAPES:
        if any(needle in text for needle in shape.needles):
            group = 1 if shape.pattern.groups else 0
            for match in shape.pattern.finditer(text):
                yield match.span(group)


def contains_key_shape(text: str) -> bool:
    """Return whether anything in `text` has the shape of a well-known key, for what is about to be kept (a cassette).

    >>> contains_key_shape("AKIA" + "ABCDEFGHIJKLMNOP"), contains_key_shape("the task-list is empty")
    (True, False)
    """
    return next(key_spans(text), None) is not None


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
        self._named: dict[str, bool] = {}
        self._held: dict[Any, Any] | None = None
        self._learnt: dict[str, str] = {}
        self._lock = threading.Lock()
        self._secrets = _Secrets({})
        self._version = 0
        self.refresh()

    def refresh(self) -> None:
        """Read the environment again; cheap when nothing in it changed. Call it at the start of a run."""
        # `os.environ` decodes each name and value it is asked for; what it holds can be compared as it is.
        held = getattr(self._environ, "_data", None)
        if held is not None:
            if held == self._held:
                return
            self._held = dict(held)
        values: dict[str, str] = {}
        for name in self._environ:
            named = self._named.get(name)
            if named is None:
                named = self._named[name] = _SECRET_NAME.search(name) is not None
            if named and len(value := self._environ.get(name, "").strip()) >= SHORTEST:
                values[name] = value
        for name, value in dict(self._learnt).items():
            values[name if values.get(name, value) == value else f"{name} of the session"] = value
        if values != self._secrets.values:
            self._secrets = _Secrets(values)
            self._version += 1

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
        found = [SecretSpan(start, end, "key") for start, end in key_spans(text)]
        for needle, name in secrets.needles.items():
            found += (SecretSpan(at, at + len(needle), name) for at in _occurrences(text, needle))
        if "[redacted:" in text:
            marks = [match.span() for match in secrets.mark.finditer(text)]
            found = [span for span in found if not any(a <= span.start and span.end <= b for a, b in marks)]
        return _joined(found)

    @property
    def version(self) -> int:
        """A number that differs once the secrets do."""
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
        marks: list[tuple[SecretSpan, str]] = []
        # A mark ends the word before it, and what stands there may only now be seen to be a key: look again.
        while spans := self.spans(text):
            pieces: list[str] = []
            position = length = 0
            moved: list[tuple[SecretSpan, str]] = []
            for span in spans:
                pieces += (text[position : span.start], f"[redacted:{span.name}]")
                start = length + len(pieces[-2])
                moved += _shifted(marks, position, span.start, length - position)
                length = start + len(pieces[-1])
                moved.append((SecretSpan(start, length, span.name), text[span.start : span.end]))
                position = span.end
            moved += _shifted(marks, position, len(text), length - position)
            text, marks = "".join([*pieces, text[position:]]), moved
        return text, marks

    def _value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return self._mapping(value, depth)
        if not isinstance(value, list | tuple):
            return value
        if depth >= DEEPEST:
            return _NESTED
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
    """Return a function that takes the secrets of the environment, as they are now, out of a text."""
    redactor = _environment_redactor()
    redactor.refresh()
    return redactor.text


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

    def may_be_in(self, text: str | bytes) -> bool:
        """Return False for a text that certainly holds no secret, after one linear pass."""
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


def _shifted(
    marks: list[tuple[SecretSpan, str]], start: int, end: int, by: int
) -> list[tuple[SecretSpan, str]]:
    """Return the marks that lie in text[start:end], moved by some characters."""
    return [
        (SecretSpan(mark.start + by, mark.end + by, mark.name), taken)
        for mark, taken in marks
        if start <= mark.start and mark.end <= end
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


def _occurrences(text: str, needle: str) -> Iterator[int]:
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + 1)


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


def _forms(value: str) -> Iterator[str]:
    """Return the texts that reveal a value: itself, each line of a key block, repr, JSON, URL, base64 at any offset."""
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
