"""What a request asks for: its clauses with their verbs, addresses and files.

Invariant: Every part of a request that says something is in one intent, or it is context, which is reported. If it is
not certain whether words ask for something of their own, they do: a gap too many is seen, a request that was dropped is
not. Addresses, quoted text, and names of files are never cut.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from reyn_jupyter.workflows.planning.request_parts import MASK, FindFile, RequestPart, find_parts, mask
from reyn_jupyter.workflows.planning.rules import ANY_VERB, OTHER_VERB, PlanRules, built_in_rules
from reyn_jupyter.workflows.workflow_error import WorkflowError

LONGEST_REQUEST = 200_000  # characters
MOST_INTENTS = 200

_STRONG_WORDS = (
    r"and\s+then|then|and\s+after\s+that|after\s+that|afterwards|finally|"
    r"а\s+затем|и\s+затем|затем|а\s+потом|и\s+потом|потом|после\s+этого|после\s+чего|наконец"
)
_SEPARATOR = re.compile(
    rf"(?P<strong>[\n\r]+|;|[.!?…]+(?=\s|$)|(?:^|(?<=[\s,.;]))(?:{_STRONG_WORDS})(?=[\s,:]))"
    r"|(?P<weak>,|(?<=\s)(?:and|plus|as\s+well\s+as|и|а\s+также|а)(?=\s)|(?<=\s)(?:&|\+|->|→|=>)(?=\s))",
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
# Only about people: "It must have subtitles" and "The file is in data" say something of the task.
_STATEMENT = re.compile(
    r"(?:i|we|he|she)(?:['’](?:m|s|re|ve)|\s+(?:am|is|are|was|were|have|has|had|"
    r"did|don['’]t|can['’]t|cannot|tried|like|love))(?:\s|$)|(?:я|мы|у\s+меня|у\s+нас)\s",
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
WORD = re.compile(r"[^\W_](?:[\w'’-]*[^\W_])?")
_CYRILLIC = re.compile(r"[а-яё]", re.IGNORECASE)
_LEADS_TO_VERB = frozenset({"to", "and", "please", "then", "you"})


@dataclass(frozen=True)
class RequestIntent:
    """One thing that is asked for: a clause of the request.

    Attributes:
        text: The clause as it was written.
        start: Where it begins in the request.
        end: Where it ends in the request.
        verb: The word that says what to do, or "" if there is none.
        verb_class: The class of the verb, see `PlanRules.verb_class`, or None without a verb.
        parts: What it names.
        said_from: Where it begins to say something in the request, after "could you please".
    """

    text: str
    start: int
    end: int
    verb: str = ""
    verb_class: str | None = None
    parts: tuple[RequestPart, ...] = ()
    said_from: int = 0

    @property
    def files(self) -> tuple[RequestPart, ...]:
        """The files that it names."""
        return tuple(each for each in self.parts if each.kind == "file")


@dataclass(frozen=True)
class NormalizedRequest:
    """A request with what was found in it.

    Attributes:
        text: The request without spaces around it.
        parts: What it names: addresses, files, and quoted text, in their order.
        intents: What is asked for, in its order; at least one.
        context: Sentences that ask for nothing.
        masked: The text with `MASK` in place of every character of a part.
    """

    text: str
    parts: tuple[RequestPart, ...]
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


def normalize_request(
    text: str, rules: PlanRules | None = None, find_file: FindFile | None = None
) -> NormalizedRequest:
    """Return a request in its parts.

    Args:
        text: In English or Russian. In another language, each sentence is one intent.
        rules: Whose verbs begin intents. Defaults to the built-in ones.
        find_file: See `find_parts`.

    Raises:
        WorkflowError: "validation": The text is empty, or longer than 200,000 characters.

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
    parts = find_parts(clean, find_file, lambda word: _may_precede(word, rules))
    masked = mask(clean, parts)
    clauses, context = _clauses(clean, masked, rules)
    intents = tuple(_intent(clean, start, end, masked, rules, parts) for start, end in clauses)
    return NormalizedRequest(clean, parts, intents, tuple(context), masked)


def content_words(masked: str, rules: PlanRules) -> list[str]:
    """Return the words of a masked text that say something by themselves."""
    words = WORD.findall(masked)
    return [each for each in words if any(map(str.isalpha, each)) and not rules.is_idle(each)]


def _may_precede(word: str, rules: PlanRules) -> bool:
    """Return whether a word in front of a name is certainly not part of it."""
    return rules.verb_class(word) is not None or rules.is_idle(word)


def _clauses(text: str, masked: str, rules: PlanRules) -> tuple[list[tuple[int, int]], list[str]]:
    """Return where the clauses stand, and the sentences that ask for nothing."""
    clauses: list[tuple[int, int]] = []
    has_verb: list[bool] = []
    statements: list[tuple[int, int]] = []
    strong = True
    for start, end, is_strong in _pieces(masked):
        strong = strong or is_strong
        piece = masked[start:end]
        says = MASK in piece or bool(content_words(piece, rules))
        verb = bool(_verb(piece, rules)[0])
        if not says and not verb and (strong or not clauses):
            continue  # "Hi", "please"
        if strong and not verb and MASK not in piece and _STATEMENT.match(piece):
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
    first = WORD.search(piece)
    return MASK in piece or first is None or rules.is_idle(first.group())


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
    text: str, start: int, end: int, masked: str, rules: PlanRules, parts: tuple[RequestPart, ...]
) -> RequestIntent:
    piece = masked[start:end]
    verb, kind = _verb(piece, rules)
    own = tuple(each for each in parts if start <= each.start < end)
    return RequestIntent(text[start:end], start, end, verb, kind, own, start + _opening(piece))


def _opening(piece: str) -> int:
    """Return where a masked piece begins to say something, after "could you please"."""
    at = 0
    while opening := _OPENING.match(piece, at):
        at = opening.end()
    return at


def _verb(piece: str, rules: PlanRules) -> tuple[str, str | None]:
    """Return the word of a masked piece that says what to do, and its class; "" and None where there is none."""
    rest = piece[_opening(piece) :]
    words = [each.group() for each in WORD.finditer(rest[:2_000])]
    if not words or rest.startswith(MASK):
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
