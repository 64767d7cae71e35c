"""What a request asks for: its clauses with their verbs, addresses and files.

Invariant: every part of a request that says something is in one intent, or it is context, which is told; nothing is
left out. Where it is not sure whether words ask for something of their own, they do: a gap too many is seen, a wish
that was dropped is not. Addresses, quoted text and names of files are never cut.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from reyn_jupyter.workflows.planning.rules import ANY_VERB, OTHER_VERB, PlanRules, built_in_rules
from reyn_jupyter.workflows.workflow_error import WorkflowError

LONGEST_REQUEST = 200_000  # characters
MOST_INTENTS = 200
_ENDINGS = (
    "webm|mp4|mkv|mov|avi|mp3|wav|ogg|flac|m4a|aac|gif|png|jpe?g|webp|svg|tiff?|bmp|heic|pdf|docx?|xlsx?|pptx?|odt|ods|"
    "txt|md|rst|html?|css|csv|tsv|json|jsonl|ya?ml|toml|xml|parquet|arrow|sql|sqlite|db|zip|tar|tgz|gz|bz2|xz|7z|rar|"
    "py|ipynb|js|ts|sh|r|java|c|cpp|h|go|rs|log|ini|cfg|srt|vtt|epub|tex|bib"
)
_URL = re.compile(r"https?://[^\s<>\"«»“”]+", re.IGNORECASE)
_TRAILING = ".,;:!?)]}'’…"
_QUOTED = re.compile(r'"[^"\n]{1,500}"|«[^»\n]{1,500}»|“[^”\n]{1,500}”|`[^`\n]{1,500}`')
_FILE = re.compile(rf"(?<![\w./-])[\w./\\~-]*[\w)]\.(?:{_ENDINGS})(?![\w-])", re.IGNORECASE)
_MASK = "\ue000"

_STRONG_WORDS = (
    r"and\s+then|then|and\s+after\s+that|after\s+that|afterwards|finally|"
    r"а\s+затем|и\s+затем|затем|а\s+потом|и\s+потом|потом|после\s+этого|после\s+чего|наконец"
)
_SEPARATOR = re.compile(
    rf"(?P<strong>[\n\r]+|;|[.!?…]+(?=\s|$)|(?:^|(?<=[\s,.;]))(?:{_STRONG_WORDS})(?=[\s,:]))"
    r"|(?P<weak>,|(?<=\s)(?:and|plus|but|or|as\s+well\s+as|и|а\s+также|а|но|или)(?=\s)|(?<=\s)(?:&|\+|->|→|=>)(?=\s))",
    re.IGNORECASE,
)
_AFTER = re.compile(rf"(?<!\w)(?:{_STRONG_WORDS})(?!\w)|->|→|=>", re.IGNORECASE)
_MARKER = re.compile(r"(?:\s|\d{1,3}[.)](?=\s)|[-*•–—](?=\s))+")
_OPENING = re.compile(
    r"(?:please|kindly|also|just|now|firstly|first|secondly|second|next|finally|okay|ok|hi|hello|hey|dear|so|well|"
    r"(?:could|can|would|will)\s+you|you\s+(?:should|must|can|need\s+to)|(?:i|we)\s+(?:need|want|have|would\s+like)\s+(?:you\s+)?to|"
    r"i['’]d\s+like\s+(?:you\s+)?to|let['’]s|let\s+(?:us|me)|help\s+me(?:\s+to)?|go\s+ahead\s+and|make\s+sure\s+(?:to|you)|"
    r"don['’]t\s+forget\s+to|try\s+to|to|and|"
    r"пожалуйста|прошу|привет|здравствуйте|здравствуй|сначала|сперва|теперь|также|ещё|еще|тоже|просто|сразу|"
    r"(?:мне|нам)\s+(?:надо|нужно|хочется)|надо|нужно|необходимо|я\s+хочу|хочу|хотела?\s+бы|можешь(?:\s+ли)?|можете|можно|"
    r"давайте|давай|помогите|помоги|не\s+забудьте|не\s+забудь|чтобы(?:\s+(?:ты|вы))?|ты|вы|и|а)(?=[\s,:!])[\s,:!]*",
    re.IGNORECASE,
)
_STATEMENT = re.compile(
    r"(?:i|we|it|this|that|there|he|she|they|(?:my|our|the)\s+\w+)(?:['’](?:m|s|re|ve)|\s+(?:am|is|are|was|were|have|has|had|"
    r"did|don['’]t|can['’]t|cannot|tried|like|love))(?:\s|$)|(?:я|мы|у\s+меня|у\s+нас|это|там|вот|он|она|они)\s",
    re.IGNORECASE,
)
# "frobnicate the files": a word before a determiner is no noun.
_ACTS_ON = re.compile(
    r"[a-z][a-z-]+\s+(?:me|us|it|them|him|her|the|a|an|all|my|our|your|its|their|this|that|these|those|every|each|both|"
    r"everything|something)(?:\s|$)",
    re.IGNORECASE,
)
_NO_ACT = re.compile(
    r"from|with|for|in|into|on|onto|of|to|at|by|as|over|under|about|after|before|between|through|and|or|but|the"
    r"|a|an|all|both|every|each|where|when|which|who|whose|what|while|if|is|are|was|were|be|been|than|like|via"
    r"|per|not|no|that|this"
)
_RUSSIAN_ACT = re.compile(
    r"[а-яё]{2,}(?:[уаяе]й(?:те)?|[иь]те|(?:а|я|и|е|у|ы|о)ть(?:ся)?|ести|езти|ись)", re.IGNORECASE
)
_RUSSIAN_NOUNS = re.compile(
    r"память|печать|кровать|площадь|мать|сеть|нефть|плеть|нить|путь|суть|ртуть|часть|честь|есть|пусть|опять"
    r"|пять|девять|случай|чай|май|край|музей|трамвай|урожай|лишай|клей|хоккей|юбилей|дисплей|плей|вместе|сайте"
)
_WORD = re.compile(r"[^\W_](?:[\w'’-]*[^\W_])?")
_CYRILLIC = re.compile(r"[а-яё]", re.IGNORECASE)
_LEADS_TO_VERB = frozenset({"to", "and", "please", "then", "you"})


@dataclass(frozen=True)
class RequestPart:
    """Something that a request names: an address or a file.

    Attributes:
        text: without quotes and without the full stop of its sentence.
        start, end: where it stands in the request.
    """

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class RequestIntent:
    """One thing that is asked for: a clause of the request.

    Attributes:
        text: the clause as it was written.
        start, end: where it stands in the request.
        verb: the word that says what to do; "" where there is none.
        verb_class: of the verb, see `PlanRules.verb_class`; None without a verb.
        urls, files: what it names.
    """

    text: str
    start: int
    end: int
    verb: str = ""
    verb_class: str | None = None
    urls: tuple[RequestPart, ...] = ()
    files: tuple[RequestPart, ...] = ()


@dataclass(frozen=True)
class NormalizedRequest:
    """A request with what was found in it.

    Attributes:
        text: without spaces around it.
        urls, files: in the order in which they stand there.
        intents: what is asked for, in that order; at least one.
        context: sentences that ask for nothing.
        masked: the text with a mark for every character of an address, a file or a quotation.
    """

    text: str
    urls: tuple[RequestPart, ...]
    files: tuple[RequestPart, ...]
    intents: tuple[RequestIntent, ...]
    context: tuple[str, ...] = ()
    masked: str = ""

    def comes_after(self, at: int) -> bool:
        """Return whether an intent is said to come after the one before it: "then", "after that", an arrow.

        >>> request = normalize_request("unpack a.zip and print b.pdf, then email c.pdf")
        >>> [request.comes_after(at) for at in range(3)]
        [False, False, True]
        """
        if at == 0:
            return False
        between = self.masked[self.intents[at - 1].end : self.intents[at].start]
        return _AFTER.search(between) is not None


def normalize_request(text: str, rules: PlanRules | None = None) -> NormalizedRequest:
    """Return a request in its parts.

    Args:
        text: in English or Russian; what is asked for in another language is one intent a sentence.
        rules: whose verbs begin intents; the built-in ones where None.

    Raises:
        WorkflowError: "validation": it is empty, or longer than 200,000 characters.

    >>> [each.text for each in normalize_request("Download a.zip, unpack it and then email the result").intents]
    ['Download a.zip', 'unpack it', 'email the result']
    """
    rules = rules or built_in_rules()
    clean = text.strip()
    if not clean:
        raise WorkflowError("The request is empty.", "Say what is to be done.", "validation")
    if len(clean) > LONGEST_REQUEST:
        raise WorkflowError(
            f"The request has {len(clean):,} characters, and at most {LONGEST_REQUEST:,} are read.",
            "Put long text into a file, and name the file.",
            "validation",
        )
    urls = tuple(_part(each, each.group().rstrip(_TRAILING)) for each in _URL.finditer(clean))
    masked = _masked(clean, urls)
    quoted = [_part(each, each.group()) for each in _QUOTED.finditer(masked)]
    in_quotes = [
        RequestPart(clean[each.start + 1 : each.end - 1], each.start, each.end)
        for each in quoted
        if _FILE.fullmatch(clean[each.start + 1 : each.end - 1].replace(" ", "_"))
    ]
    masked = _masked(masked, quoted)
    files = tuple(
        sorted(
            [*in_quotes, *(_part(each, each.group()) for each in _FILE.finditer(masked))],
            key=lambda each: each.start,
        )
    )
    masked = _masked(masked, files)
    clauses, context = _clauses(clean, masked, rules)
    intents = tuple(_intent(clean, start, end, masked, rules, urls, files) for start, end in clauses)
    return NormalizedRequest(clean, urls, files, intents, tuple(context), masked)


def content_words(masked: str, rules: PlanRules) -> list[str]:
    """Return the words of a masked text that say something by themselves."""
    return [
        each
        for each in _WORD.findall(masked)
        if any(letter.isalpha() for letter in each) and not rules.is_idle(each)
    ]


def _part(match: re.Match[str], text: str) -> RequestPart:
    return RequestPart(text, match.start(), match.start() + len(text))


def _masked(text: str, parts: tuple[RequestPart, ...] | list[RequestPart]) -> str:
    pieces, at = [], 0
    for each in parts:
        pieces += [text[at : each.start], _MASK * (each.end - each.start)]
        at = each.end
    return "".join((*pieces, text[at:]))


def _clauses(text: str, masked: str, rules: PlanRules) -> tuple[list[tuple[int, int]], list[str]]:
    """Return where the clauses stand, and the sentences that ask for nothing."""
    clauses: list[tuple[int, int]] = []
    has_verb: list[bool] = []
    statements: list[tuple[int, int]] = []
    strong = True
    for start, end, is_strong in _pieces(masked):
        strong = strong or is_strong
        piece = masked[start:end]
        says = _MASK in piece or bool(content_words(piece, rules))
        verb = bool(_verb(piece, rules)[0])
        if not says and not verb and (strong or not clauses):
            continue  # "Hi", "please"
        if strong and not verb and _MASK not in piece and _STATEMENT.match(piece):
            statements.append((start, end))
        elif strong or not clauses:
            clauses.append((start, end))
            has_verb.append(verb)
        elif not verb or (not has_verb[-1] and _leads_in(masked[slice(*clauses[-1])], rules)):
            # "a.webm, b.webm": more of the same; "from a.zip, unpack it": what comes before its verb.
            clauses[-1] = (clauses[-1][0], end)
            has_verb[-1] = has_verb[-1] or verb
        else:
            clauses.append((start, end))
            has_verb.append(verb)
        strong = False
    if not clauses:
        clauses, statements = statements or [(0, len(text))], []
    if len(clauses) > MOST_INTENTS:
        raise WorkflowError(
            f"The request asks for {len(clauses):,} things, and at most {MOST_INTENTS} are planned.",
            "Ask for less at a time.",
            "validation",
        )
    return clauses, [text[start:end] for start, end in statements]


def _leads_in(piece: str, rules: PlanRules) -> bool:
    """Return whether a piece without a verb belongs to the next one: it names a file, or begins as "from" does."""
    first = _WORD.search(piece)
    return _MASK in piece or first is None or rules.is_idle(first.group())


def _pieces(masked: str) -> list[tuple[int, int, bool]]:
    """Return what stands between separators: start, end, and whether the separator before it ends a clause."""
    found, at, strong = [], 0, True
    for separator in (*_SEPARATOR.finditer(masked), None):
        end = len(masked) if separator is None else separator.start()
        piece = masked[at:end]
        marker = _MARKER.match(piece)
        start = at + (marker.end() if marker else 0)
        stripped = masked[start:end].rstrip()
        if stripped:
            found.append((start, start + len(stripped), strong))
            strong = False
        if separator is not None:
            strong = strong or separator.lastgroup == "strong"
            at = separator.end()
    return found


def _intent(
    text: str,
    start: int,
    end: int,
    masked: str,
    rules: PlanRules,
    urls: tuple[RequestPart, ...],
    files: tuple[RequestPart, ...],
) -> RequestIntent:
    verb, kind = _verb(masked[start:end], rules)
    return RequestIntent(
        text[start:end],
        start,
        end,
        verb,
        kind,
        tuple(each for each in urls if start <= each.start < end),
        tuple(each for each in files if start <= each.start < end),
    )


def _verb(piece: str, rules: PlanRules) -> tuple[str, str | None]:
    """Return the word of a masked piece that says what to do, and its class; "" and None where there is none."""
    at = 0
    while opening := _OPENING.match(piece, at):
        at = opening.end()
    rest = piece[at:]
    words = [each.group() for each in _WORD.finditer(rest[:2_000])]
    if not words or rest.startswith(_MASK):
        return _later_verb(words, "", rules)
    first = words[0]
    kind = rules.verb_class(first)
    if kind is not None:
        return first, kind
    folded = first.casefold().replace("ё", "е")
    if not _NO_ACT.fullmatch(folded) and not rules.is_idle(first) and _ACTS_ON.match(rest):
        return first, OTHER_VERB
    if (
        not _RUSSIAN_NOUNS.fullmatch(folded)
        and _RUSSIAN_ACT.fullmatch(folded)
        and not folded.endswith("ость")
    ):
        return first, OTHER_VERB
    return _later_verb(words[1:], first, rules)


def _later_verb(words: list[str], before: str, rules: PlanRules) -> tuple[str, str | None]:
    """Return a verb that is not the first word: "the video, to download", "видео скачай"."""
    for word in words:
        kind = rules.verb_class(word)
        if kind not in (None, ANY_VERB) and (_CYRILLIC.match(word) or before.casefold() in _LEADS_TO_VERB):
            return word, kind
        before = word
    return "", None
