"""Searching the text of files: what to look for, where, and how often it was found."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reyn_jupyter.models.offline.desk import Desk
from reyn_jupyter.models.offline.files import checked, job
from reyn_jupyter.models.offline.prompt import Prompt, Token
from reyn_jupyter.models.offline.render import block, code
from reyn_jupyter.models.offline.transcript import Result

_COUNT = re.compile(r"\A(?:.{0,30}\b)?(?:how many|how often|number of|count)\b")
# Words after which the text that is looked for stands.
_OPENERS = re.compile(
    r"\b(?:search(?:ing)?(?:\s+the\s+\w+)?\s+for|look(?:ing)?\s+for|mention(?:s|ed|ing)?(?:\s+of)?|occurrences?\s+of"
    r"|talk(?:s|ing)?\s+about|(?:contain|contains|containing|has|have|having|with|say|says|including)\s+"
    r"(?:the\s+)?(?:word|words|text|string|phrase|term)s?|contain(?:s|ing)?|refer(?:s)?\s+to"
    r"|find\s+(?:every|all|any|each)(?:\s+the)?(?:\s+(?:mentions?|uses?|occurrences?)\s+of)?|where\s+is|where\s+does"
    r"|where\s+do|find\s+where|find|grep(?:\s+for)?|times\s+(?:does|is)|(?:the\s+)?(?:word|phrase|string|term))\s+"
)
_TAIL = re.compile(
    r"\s+(?:(?:is|are|was|gets?)\s+)?(?:defined|used|mentioned|found|appear(?:s|ing)?|occurs?|written|declared|set|called"
    r"|in it)\b|\s+in\s+(?:it|them)\b"
)
_SCOPE = re.compile(r"\s+(?:in|inside|within|across|under|from)\s+(?:all\s+)?(?:the\s+|my\s+|our\s+)?")
_EVERYWHERE = {"workspace", "project", "files", "file", "folder", "repository", "repo", "code", "everything", "here",
               "directory", "it", "all", "any", "this", "text", "source", "sources"}  # fmt: skip
_SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$])")


@dataclass(frozen=True)
class Search:
    """What to look for: a plain text or a pattern, where, and whether letter case counts."""

    pattern: str
    path: str | None
    case_sensitive: bool
    escaped: bool = True

    @property
    def expression(self) -> str:
        return _SPECIAL.sub(r"\\\1", self.pattern) if self.escaped else self.pattern


def attempt(desk: Desk, prompt: Prompt) -> str | None:
    """Search files for a text; None when the prompt does not ask for that."""
    search = wanted(prompt)
    if search is None:
        return None
    action = job(desk, ("grep", "search"), ("pattern",))
    arguments: dict[str, object] = {"pattern": search.expression}
    if search.path:
        arguments["path"] = search.path
    if "case_sensitive" in action.parameters:
        arguments["case_sensitive"] = search.case_sensitive
    result = desk.invoke(action, arguments)
    if result.error is not None and search.path and "/" not in search.path and "." not in search.path:
        # The word after "in" was no folder; the whole workspace is what is left.
        arguments.pop("path")
        result = desk.invoke(action, arguments)
    return _told(desk, prompt, search, checked(result, "the search"))


def _told(desk: Desk, prompt: Prompt, search: Search, result: Result) -> str:
    counting = _COUNT.search(prompt.lower[:200]) is not None
    where = f" in {code(search.path)}" if search.path else ""
    opened = desk.opened(result, "lines:1-100")
    lines = [line for line in opened.body.split("\n") if line.strip() and not line.startswith("──")]
    if not lines:
        return f"No line{where} matches {code(search.pattern)}."
    total = result.total if result.blob is not None and result.total is not None else len(lines)
    if counting and "\n── the first" not in opened.body:
        return f"{total} lines{where} match {code(search.pattern)}."
    more = f"\n\n… {opened.left}" if opened.left else ""
    return f"{code(search.pattern)}{where}:\n\n{block(opened.body)}{more}"


def wanted(prompt: Prompt) -> Search | None:
    """What a prompt wants to find in files, None when it wants something else."""
    text = prompt.text[:600]
    if re.match(r"\s*grep\b", text):
        return _grep(prompt)
    opener = next((match for match in _OPENERS.finditer(text.lower())), None)
    if opener is None or not _about_files(prompt, opener):
        return None
    quoted = next((token for token in prompt.tokens if token.kind == "quoted"), None)
    rest = text[opener.end() :]
    pattern = quoted.text if quoted else _plain(rest)
    if not pattern or len(pattern) > 200:
        return None
    return Search(pattern, _scope(prompt, text, quoted), pattern != pattern.lower())


def _about_files(prompt: Prompt, opener: re.Match[str]) -> bool:
    """Whether an opener is about the text of files, not about rows, files of a kind, or the world."""
    word = opener.group().strip()
    if any(path.lower().endswith((".csv", ".parquet", ".tsv")) for path in prompt.paths):
        return False
    if word == "where is" or word.startswith(("where do", "find where", "times")):
        return (
            _TAIL.search(prompt.lower) is not None or re.search(r"\bmention|\btalk", prompt.lower) is not None
        )
    if word.startswith("find"):
        following = prompt.lower[opener.end() : opener.end() + 60]
        return not re.search(r"\bfiles?\b|\Athe\b|\Aout\b|\*", following)
    if word in ("word", "the word", "phrase", "string", "term", "the string", "the phrase", "the term"):
        return bool(prompt.quoted)
    return True


def _plain(rest: str) -> str:
    """The looked-for words, up to where it says where to look."""
    for stop in (_SCOPE, _TAIL, re.compile(r"[?!.,;]*\s*\Z")):
        match = stop.search(rest)
        if match:
            rest = rest[: match.start()]
    rest = re.sub(r"\A(?:the\s+)?(?:word|text|string|phrase|term)s?\s+", "", rest.strip())
    return rest.strip().rstrip("?!.,;").removeprefix("the ").strip()


def _scope(prompt: Prompt, text: str, quoted: Token | None) -> str | None:
    if prompt.paths:
        return prompt.paths[0].rstrip("/") or None
    matches = list(_SCOPE.finditer(text))
    for match in reversed(matches):
        if quoted is not None and quoted.start <= match.start() < quoted.end:
            continue
        word = re.match(r"[\w.-]{1,80}", text[match.end() :])
        if word and word.group().lower().rstrip("?.") not in _EVERYWHERE:
            return word.group().rstrip("?.")
    subject = re.search(
        r"\b(?:which|what|do|does|the)\s+(\w{3,40})\s+(?:mention|talk|contain|say|refer)", text.lower()
    )
    return subject.group(1) if subject and subject.group(1) not in _EVERYWHERE | {"files", "lines"} else None


def _grep(prompt: Prompt) -> Search | None:
    """`grep [-i] PATTERN [PATH]`, as in a shell."""
    tokens = list(prompt.tokens[1:])
    ignore = False
    while len(tokens) >= 2 and tokens[0].text == "-":
        ignore = ignore or "i" in tokens[1].text
        tokens = tokens[2:]
    tokens = tokens[1:] if tokens and tokens[0].lower == "for" else tokens
    if not tokens:
        return None
    paths = [token for token in tokens[1:] if token.kind == "path"]
    if paths:
        last: Token | None = paths[0]
    else:
        last = tokens[-1] if len(tokens) > 1 and tokens[-1].kind == "word" else None
    pattern = (
        tokens[0].text if last is not None or len(tokens) == 1 else prompt.text[tokens[0].start :].strip()
    )
    path = last.text.rstrip("/") if last is not None and last.text.lower() not in _EVERYWHERE else None
    return Search(pattern, path or None, not ignore, escaped=tokens[0].kind == "quoted")
