"""The shapes of well-known keys.

Invariant: nothing is taken for a key because it looks random: hashes and identifiers stay as they are. The prefixes
are those that the providers publish for secret scanning. Each shape has a hint, a part of it in the syntax of RE2: one
linear pass with all hints decides whether a text is looked at any closer.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

LONGEST_BLOCK = 60_000  # characters of a private key's block
_OVERLAP = 24  # characters of a key that the beginning of the next one may have been taken for
_SWEEPS = 3


class KeyShape(NamedTuple):
    """A kind of key.

    Attributes:
        needles: substrings, one of which is in every text that holds such a key.
        pattern: the key; group 1, if there is one, is the secret part.
        hint: a regular expression without look-around that is found wherever `pattern` is.
        apart: whether letters and digits before it make it part of a word: `task-…` is no `sk-…`.
        closed: whether those behind it do, too.
    """

    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    hint: str
    apart: bool = False
    closed: bool = False


def _shape(
    pattern: str, *needles: str, hint: str = "", flags: int = 0, apart: bool = False, closed: bool = False
) -> KeyShape:
    compiled = re.compile(pattern, re.ASCII | flags)
    found = hint or "|".join(re.escape(needle) for needle in needles)
    return KeyShape(needles, compiled, found, apart, closed)


_PRIVATE_KEY = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"

SHAPES: tuple[KeyShape, ...] = (
    # A bare sk- key is one run without hyphens; words joined by hyphens (CSS classes) are not.
    _shape(
        r"sk-(?:(?:ant|proj|or|svcacct|admin|lf)-[A-Za-z0-9_-]{16,}|[A-Za-z0-9]{20,})",
        "sk-",
        hint=r"sk-[A-Za-z0-9_-]{16}",
        apart=True,
    ),
    _shape(
        r"(?:[srp]k|whsec)_(?:live_|test_)?[A-Za-z0-9]{20,}",
        *("sk_", "rk_", "pk_", "whsec_"),
        hint="(?:[srp]k|whsec)_(?:live_|test_)?[A-Za-z0-9]{20}",
        apart=True,
    ),
    _shape(r"gh[pousr]_[A-Za-z0-9]{30,}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _shape(r"github_pat_[A-Za-z0-9_]{22,}", "github_pat_"),
    _shape(
        r"gl(?:pat|dt|rt|cbt|ptt|ft|agent|oas|soat)-[A-Za-z0-9_.-]{20,}",
        *("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glagent-", "gloas-", "glsoat-"),
    ),
    _shape(r"(?:A[KS]IA[A-Z0-9]{16})+", "AKIA", "ASIA", apart=True, closed=True),
    _shape(r"AIza[A-Za-z0-9_-]{35}", "AIza"),
    _shape(r"ya29\.[A-Za-z0-9_-]{20,}", "ya29."),
    _shape(r"GOCSPX-[A-Za-z0-9_-]{24,}", "GOCSPX-"),
    _shape(r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}", "xox", hint="xox[abeoprs](?:\\.xox[bp])?-"),
    _shape(r"xapp-[A-Za-z0-9-]{20,}", "xapp-"),
    _shape(r"hf_[A-Za-z0-9]{30,}", "hf_", hint="hf_[A-Za-z0-9]{30}", apart=True),
    _shape(r"npm_[A-Za-z0-9]{30,}", "npm_", hint="npm_[A-Za-z0-9]{30}"),
    _shape(r"pypi-[A-Za-z0-9_-]{50,}", "pypi-", apart=True),
    _shape(r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}", "SG.", hint=r"SG\.[A-Za-z0-9_-]{16}", apart=True),
    _shape(r"(?:gsk|r8|ntn)_[A-Za-z0-9]{30,}", "gsk_", "r8_", "ntn_", apart=True),
    _shape(r"do[opr]_v1_[A-Za-z0-9]{30,}", "doo_v1_", "dop_v1_", "dor_v1_"),
    _shape(r"(?:xai|pplx|tvly|nvapi)-[A-Za-z0-9_-]{20,}", "xai-", "pplx-", "tvly-", "nvapi-", apart=True),
    _shape(r"dckr_[op]at_[A-Za-z0-9_-]{20,}", "dckr_pat_", "dckr_oat_"),
    _shape(r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}", "shpat_", "shpca_", "shppa_", "shpss_"),
    _shape(r"dapi[a-f0-9]{32}(?:-[0-9])?", "dapi", hint="dapi[a-f0-9]{32}"),
    _shape(
        r"hv[bsr]\.[A-Za-z0-9_-]{20,}", "hvs.", "hvb.", "hvr.", hint=r"hv[bsr]\.[A-Za-z0-9_-]{20}", apart=True
    ),
    _shape(r"AGE-SECRET-KEY-1[0-9A-Z]{50,}", "AGE-SECRET-KEY-1"),
    _shape(r"AT(?:ATT|CTT)3[A-Za-z0-9_=-]{50,}", "ATATT3", "ATCTT3"),
    _shape(r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}", "lin_api_", "lin_oauth_"),
    _shape(r"gl(?:sa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|c_[A-Za-z0-9+/]{32,}={0,2})", "glsa_", "glc_"),
    _shape(r"sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{20,}", "sbp_", "sb_secret_"),
    _shape(r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}", "PMAK-"),
    _shape(r"pul-[a-f0-9]{40}", "pul-", hint="pul-[a-f0-9]{40}"),
    _shape(r"tskey-[a-z]{3,12}-[A-Za-z0-9-]{20,}", "tskey-"),
    _shape(r"NRAK-[A-Z0-9]{27}", "NRAK-"),
    _shape(r"figd_[A-Za-z0-9_-]{38,}", "figd_"),
    _shape(r"sntry[su]_[A-Za-z0-9+/=_]{60,}", "sntrys_", "sntryu_"),
    _shape(r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,}", "pscale_"),
    _shape(r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,}", "sq0atp-", "sq0csp-", "sq0idp-"),
    _shape(r"rubygems_[a-f0-9]{48}", "rubygems_"),
    _shape(
        r"dp\.(?:audit|ct|pt|sa|scim|st)\.[A-Za-z0-9._-]{40,}",
        "dp.",
        hint=r"dp\.[a-z]{2,5}\.[A-Za-z0-9]",
        apart=True,
    ),
    _shape(r"SK[a-f0-9]{32}", "SK", hint="SK[a-f0-9]{32}", apart=True, closed=True),
    _shape(
        r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,33}",
        ":AA",
        hint="[0-9]{8}:AA[A-Za-z0-9_-]{32}",
        apart=True,
        closed=True,
    ),
    # One beginning a word: of `eyJeyJeyJ…`, each three characters would be one else, and the time quadratic.
    _shape(
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
        "eyJ",
        hint=r"\.eyJ[A-Za-z0-9_-]{8}",
    ),
    # The body ends at the next run of five hyphens, so many openings without an end stay linear.
    _shape(
        rf"-----BEGIN {_PRIVATE_KEY}(?:[^-]|-(?!----)){{0,{LONGEST_BLOCK}}}(?:-----END {_PRIVATE_KEY})?",
        "PRIVATE KEY",
    ),
    _shape(
        r"Private-Lines: [0-9]{1,4}\r?\n((?:[A-Za-z0-9+/=]{1,120}(?:\r?\n|\Z)){1,400})", "Private-Lines: "
    ),
    _shape(
        r"(?:bearer|basic)\s{1,8}((?=[A-Za-z_./+~=-]{0,400}[0-9])[A-Za-z0-9._~+/-]{16,}={0,2})",
        *("bearer", "Bearer", "BEARER", "basic", "Basic", "BASIC"),
        hint=r"(?:[Bb]earer|BEARER|[Bb]asic|BASIC)\s+[A-Za-z0-9._~+/-]{16}",
        flags=re.IGNORECASE,
        apart=True,
    ),
    # The password of a URL: up to the last "@" before a space, but not what begins like a port.
    _shape(
        r"://[^\s/:@\[\]'\"]{0,100}:((?!\d{1,5}[/?#,)])[^\s\[\]'\"<>`]{3,200}|[^\s/@\[\]'\"]{3,200})"
        r"@[A-Za-z0-9.\[-]",
        "://",
        hint=r"://[^\s/:@]*:[^\s]+@",
    ),
    # A URL whose user is a key.
    _shape(
        r"://((?=[A-Za-z_.~-]{0,200}[0-9])[A-Za-z0-9_.~-]{20,250})@[A-Za-z0-9.\[-]",
        "://",
        hint="://[A-Za-z0-9_.~-]{20,}@",
    ),
    _shape(r"hooks\.slack\.com/[a-z]{5,12}/([A-Za-z0-9/_+-]{20,})", "hooks.slack.com/"),
    _shape(
        r"discord(?:app)?\.com/api/(?:v[0-9]{1,3}/)?webhooks/[0-9]{10,25}/([A-Za-z0-9_-]{40,})",
        "/webhooks/",
        hint="/webhooks/[0-9]{10}",
    ),
    _shape(r"webhook\.office\.com/webhookb2/([A-Za-z0-9@/_-]{40,})", "webhook.office.com/"),
    _shape(r"(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,}={0,2})", "AccountKey=", "SharedAccessKey="),
    # Signed addresses of Azure, AWS and Google.
    _shape(r"[?&;]sig=([A-Za-z0-9%+/_-]{30,}={0,2})", "sig=", hint="[?&;]sig=[A-Za-z0-9%+/_-]{30}"),
    _shape(r"X-(?:Amz|Goog)-Signature=([A-Fa-f0-9]{64,})", "-Signature=", hint="X-(?:Amz|Goog)-Signature="),
    _shape(r"X-Amz-Security-Token=([A-Za-z0-9%+/=_-]{40,})", "X-Amz-Security-Token="),
)

# What a provider quotes of a key that it refused: its beginning, or the key with its middle starred out.
PARTIAL_KEY = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|pplx|nvapi|AIza|ghp|Bearer|Basic)[-_ ]?[A-Za-z0-9_\-*.=+/]{8,}"
    r"|\b\w{3,12}\*{3,}\w{0,8}"
)


class _Candidate(NamedTuple):
    begin: int  # of the match
    start: int  # of its secret part
    end: int
    apart: bool
    closed: bool


def key_spans(
    text: str,
    taken: Sequence[tuple[int, int]] = (),
    seams: Collection[int] = (),
    shapes: Sequence[KeyShape] = SHAPES,
) -> list[tuple[int, int]]:
    """Return the spans of `text` that have the shape of a key; they may overlap.

    Args:
        text: what is looked through.
        taken: other secrets in it. Beside one of them, and beside another key, a key is part of no word.
        seams: places at which an escape ended, where a key may begin after a letter too.
        shapes: those that are looked for.
    """
    pending = sorted(_candidates(text, shapes))
    known = sorted(taken)
    found: list[tuple[int, int]] = []
    for _ in range(_SWEEPS):
        fresh, pending = _sweep(text, pending, known, seams)
        found += fresh
        if not fresh or not pending:
            break
        known = sorted([*known, *fresh])
    return found


def _candidates(text: str, shapes: Sequence[KeyShape]) -> Iterator[_Candidate]:
    for shape in shapes:
        if not any(needle in text for needle in shape.needles):
            continue
        group = 1 if shape.pattern.groups else 0
        match = shape.pattern.search(text)
        while match is not None:
            yield _Candidate(match.start(), *match.span(group), shape.apart, shape.closed)
            # The next key may begin in the last characters of this one.
            match = shape.pattern.search(text, max(match.start() + 1, match.end() - _OVERLAP))


def _sweep(
    text: str, candidates: list[_Candidate], known: list[tuple[int, int]], seams: Collection[int]
) -> tuple[list[tuple[int, int]], list[_Candidate]]:
    """Return the candidates that are keys, and those that are parts of words, from left to right."""
    starts = [start for start, _ in known]
    keys: list[tuple[int, int]] = []
    rest: list[_Candidate] = []
    reach = -1
    at = 0
    for candidate in candidates:
        while at < len(known) and known[at][0] <= candidate.begin:
            reach = max(reach, known[at][1])
            at += 1
        begin, end = candidate.begin, candidate.end
        begins = (
            not (candidate.apart and begin and _in_word(text[begin - 1])) or begin <= reach or begin in seams
        )
        ends = not (candidate.closed and end < len(text) and _in_word(text[end])) or _has(starts, end)
        if begins and ends:
            keys.append((candidate.start, end))
            reach = max(reach, end)
        else:
            rest.append(candidate)
    return keys, rest


def _in_word(character: str) -> bool:
    return character.isascii() and character.isalnum()


def _has(ordered: list[int], number: int) -> bool:
    at = bisect_left(ordered, number)
    return at < len(ordered) and ordered[at] == number


def contains_key_shape(text: str) -> bool:
    """Return whether anything in `text` has the shape of a well-known key, for what is about to be kept (a cassette).

    >>> contains_key_shape("AKIA" + "ABCDEFGHIJKLMNOP"), contains_key_shape("the task-list is empty")
    (True, False)
    """
    return bool(key_spans(text))
