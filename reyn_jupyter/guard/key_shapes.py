"""The shapes of well-known keys and tokens.

Invariant: nothing is taken for a key because it looks random: hashes and identifiers stay as they are. The
prefixes are those that the providers publish for secret scanning. Each shape has a hint, a part of it in
the syntax of RE2: one linear pass with all hints decides whether a text is looked at any closer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Shape(NamedTuple):
    """A kind of key.

    Attributes:
        needles: substrings, one of which is in every text that holds such a key.
        pattern: the key; group 1, if there is one, is the secret part.
        hint: a regular expression without look-around that is found wherever `pattern` is.
    """

    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    hint: str


def _shape(pattern: str, *needles: str, hint: str = "", flags: int = 0) -> Shape:
    compiled = re.compile(pattern, re.ASCII | flags)
    return Shape(needles, compiled, hint or "|".join(re.escape(needle) for needle in needles))


_START = r"(?<![A-Za-z0-9_-])"  # not in the middle of a word: `task-…` is no `sk-…`
_PRIVATE_KEY = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"

SHAPES: tuple[Shape, ...] = (
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


def key_spans(text: str) -> Iterator[tuple[int, int]]:
    """The spans of `text` that have the shape of a key, kind by kind."""
    for shape in SHAPES:
        if any(needle in text for needle in shape.needles):
            group = 1 if shape.pattern.groups else 0
            for match in shape.pattern.finditer(text):
                yield match.span(group)


def contains_key_shape(text: str) -> bool:
    """Whether anything in `text` has the shape of a well-known key, for what is about to be kept (a cassette).

    >>> contains_key_shape("AKIA" + "ABCDEFGHIJKLMNOP"), contains_key_shape("the task-list is empty")
    (True, False)
    """
    return next(key_spans(text), None) is not None
