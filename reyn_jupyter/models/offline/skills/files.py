"""Reading the workspace: list a folder, find files by name, read one, count what was found.

Searching the text of files: what to look for, where, and how often it was found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.models.offline.answers import ROWS, block, code
from reyn_jupyter.models.offline.context import Declined, PlanningContext, for_job
from reyn_jupyter.models.offline.lexicon import stem
from reyn_jupyter.models.offline.prompt_tokens import Prompt, Token
from reyn_jupyter.models.offline.transcript import KnownAction, ToolOutput

# What people call a kind of file → the pattern of its names.
KINDS = {
    "csv": "*.csv", "tsv": "*.tsv", "yaml": "*.y*ml", "yml": "*.y*ml", "json": "*.json", "jsonl": "*.jsonl",
    "python": "*.py", "py": "*.py", "markdown": "*.md", "md": "*.md", "text": "*.txt", "txt": "*.txt",
    "notebook": "*.ipynb", "ipynb": "*.ipynb", "parquet": "*.parquet", "log": "*.log", "excel": "*.xls*",
    "xlsx": "*.xlsx", "toml": "*.toml", "sql": "*.sql", "html": "*.html", "pdf": "*.pdf", "image": "*.png",
    "png": "*.png",
}  # fmt: skip
_VERBS = "read|open|cat|show|print|display|view|head|tail|less|type|see|look"
_READ = re.compile(
    rf"\A(?:(?:please|can you|could you|now|and|let's|just)\s+)*(?:{_VERBS})\b"
    r"|\b(?:contents? of|inside|text of|lines?|what(?:'s| is) in|what does .{1,80}\b(?:say|contain))\b"
    r"|\bsay\b.{0,40}\bin\b"
)
_LIST = re.compile(
    r"\A(?:ls|dir|tree)\b"
    r"|\b(?:list|show|what|which|any|all|see)\b.{0,40}\b(?:files?|folders?|director(?:y|ies))\b"
    r"|\bwhat(?:'s| is) in (?:the |this |my )?(?:folder|directory|workspace|project|current)\b"
    r"|\b(?:how many|number of|count)\b.{0,40}\bfiles?\b"
)
# Questions about what can be done, not about what lies in the workspace.
ABLE = re.compile(
    r"\bwhat (?:else )?(?:can|could) (?:you|i|it|this)\b|\bwhat are you able\b|\Ahelp\b|\bwhat actions\b"
    r"|\blist (?:all |the |your )*actions\b|\b(?:capabilities|abilities)\b"
)
_NO_FOLDERS = {"this", "the", "my", "a", "workspace", "project", "folder", "directory", "here", "it", "current", "all",
               "there", "total", "files", "repository", "repo", "root", "our", "which", "what"}  # fmt: skip


def actions(context: PlanningContext) -> list[KnownAction]:
    """The file actions on offer; declines when there are none."""
    category = context.category("file")
    if category is None:
        raise Declined("no file actions are on offer here.")
    return context.listing((category,))


def job(context: PlanningContext, words: Sequence[str], takes: Sequence[str]) -> KnownAction:
    """The file action for a job; declines when none does it."""
    action = for_job(actions(context), words, takes)
    if action is None:
        raise Declined(f"no action on offer can {words[0]} files.")
    return action


def check_result(result: ToolOutput, doing: str) -> ToolOutput:
    """The result; declines with its own words when it is an error."""
    if result.error is not None:
        near = f" Did you mean {code(result.suggestions[0])}?" if result.suggestions else ""
        raise Declined(f"{doing} failed: {result.error}{near}")
    return result


def paths_in(value: Any) -> list[str]:
    """The paths in a listing's JSON, whatever its exact shape."""
    if isinstance(value, dict):
        value = next((item for item in value.values() if isinstance(item, list)), [])
    if not isinstance(value, list):
        return []
    found = []
    for item in value:
        name = item.get("path") or item.get("name") if isinstance(item, dict) else item
        if isinstance(name, str):
            folder = isinstance(item, dict) and str(item.get("type") or item.get("kind")).startswith(
                ("dir", "folder")
            )
            found.append(name.rstrip("/") + "/" if folder else name)
    return found


def total_in(value: Any, paths: Sequence[str]) -> int:
    total = value.get("total") if isinstance(value, dict) else None
    return total if isinstance(total, int) and not isinstance(total, bool) else len(paths)


def _found(
    context: PlanningContext, action: KnownAction, arguments: dict[str, Any], doing: str
) -> tuple[list[str], int]:
    result = check_result(context.invoke(action, arguments), doing)
    if result.blob is not None:
        result = context.whole(result)
        if result.json is None:
            raise Declined(f"{doing} found too much to show. Give a narrower pattern or folder.")
    paths = paths_in(result.json) if result.json is not None else result.text.split()
    return paths, total_in(result.json, paths)


def paths_like(context: PlanningContext, pattern: str) -> list[str]:
    """The files whose paths match a pattern; none where nothing can find files."""
    category = context.category("file")
    action = for_job(context.listing((category,)), ("glob", "find"), ("pattern",)) if category else None
    return _found(context, action, {"pattern": pattern}, "finding files")[0] if action else []


def attempt_list(context: PlanningContext, prompt: Prompt) -> str | None:
    """List a folder, or find files of a kind or a name; None when the prompt asks for neither."""
    if ABLE.search(prompt.lower[:400]):
        return None
    stars = [path for path in prompt.paths if "*" in path]
    if not stars and not _LIST.search(prompt.lower[:400]) and not _kind_search(prompt):
        return None
    pattern = stars[0] if stars else _pattern(prompt)
    counting = re.search(r"\b(?:how many|number of|count)\b", prompt.lower[:400]) is not None
    if pattern is not None:
        action = job(context, ("glob", "find"), ("pattern",))
        arguments = {"pattern": pattern} | ({"path": folder} if (folder := _folder(prompt)) else {})
        paths, total = _found(context, action, arguments, "finding files")
        named = f"match {code(pattern)}"
    else:
        action = job(context, ("list",), ("path",))
        folder = _folder(prompt) or "."
        paths, total = _found(context, action, {"path": folder}, f"listing {code(folder)}")
        named = "are in the workspace's folder" if folder == "." else f"are in {code(folder)}"
    if counting:
        files_only = [path for path in paths if not path.endswith("/")]
        return f"{total if total != len(paths) else len(files_only)} files {named}."
    if not paths:
        return f"No files {named}."
    lines = [f"- {code(path)}" for path in paths[:ROWS]]
    more = f"\n\n… {total} in all" if total > ROWS else ""
    return f"These {named}:\n\n" + "\n".join(lines) + more


def _kind_search(prompt: Prompt) -> bool:
    """`find all .csv files` (the dot makes `.csv` no word), `show the python files`."""
    return (
        prompt.has("files", "file")
        and re.match(r"(?:find|get|give|locate|show|list)\b", prompt.lower) is not None
    )


def _pattern(prompt: Prompt) -> str | None:
    words = prompt.words
    for index, word in enumerate(words):
        follows = words[index + 1] if index + 1 < len(words) else ""
        if stem(word) in KINDS and (follows in ("files", "file", "notebooks") or word == "notebooks"):
            return KINDS[stem(word)]
    named = re.search(r"\b(?:named|called|with the name|name)\s+[\"'`]?([\w.*-]{1,80})", prompt.text)
    if named:
        return named.group(1) if "." in named.group(1) or "*" in named.group(1) else f"*{named.group(1)}*"
    ending = re.search(r"\bending (?:in|with)\s+[\"'`]?(\.?\w{1,10})", prompt.text)
    return f"*{ending.group(1)}" if ending else None


def _folder(prompt: Prompt) -> str | None:
    """The folder that the prompt names: a path, or the word after `in`, `ls` or before `folder`."""
    plain = [path for path in prompt.paths if "*" not in path]
    if plain:
        return plain[0].rstrip("/") or "."
    for pattern in (
        r"\A(?:ls|dir|tree)\s+(?:-\w+\s+)?([\w.-]{1,80})",
        r"\b(?:in|inside|under|of|from)\s+(?:the\s+|my\s+)?[\"'`]?([\w.-]{1,80})",
        r"\b([\w-]{1,80})\s+(?:folder|directory)\b",
    ):
        match = re.search(pattern, prompt.text)
        if match and match.group(1).lower() not in _NO_FOLDERS:
            return match.group(1)
    return None


def attempt_read(context: PlanningContext, prompt: Prompt) -> str | None:
    """Read a file that the prompt names; None when it names none or does not ask to read."""
    paths = [path for path in prompt.paths if "*" not in path and not path.endswith("/")]
    if not paths or not _READ.search(prompt.lower[:400]):
        return None
    return _read(context, paths[0], _span(prompt))


def _read(context: PlanningContext, path: str, span: dict[str, int]) -> str:
    action = job(context, ("read", "open"), ("path",))
    span = span if set(span) <= set(action.parameters) else {}
    result = context.invoke(action, {"path": path, **span})
    again = _same_file(path, result.suggestions) if result.error is not None else None
    if again is not None:
        path, result = again, context.invoke(action, {"path": again, **span})
    result = context.opened(check_result(result, f"reading {code(path)}"), "lines:1-200")
    if not result.text.strip():
        return f"{code(path)} is empty."
    more = f"\n\n… {result.left}" if result.left else ""
    return f"{code(path)}:\n\n{block(result.body)}{more}"


def _span(prompt: Prompt) -> dict[str, int]:
    first = re.search(r"\b(?:first|top|head)\s+(\d{1,6})\s+lines?\b", prompt.lower)
    if first:
        return {"offset": 1, "limit": max(1, int(first.group(1)))}
    between = re.search(r"\blines?\s+(\d{1,9})\s*(?:-|–|to|and|through)\s*(\d{1,9})\b", prompt.lower)
    if between:
        low, high = sorted((max(1, int(between.group(1))), max(1, int(between.group(2)))))
        return {"offset": low, "limit": high - low + 1}
    single = re.search(r"\bline\s+(\d{1,9})\b", prompt.lower)
    return {"offset": max(1, int(single.group(1))), "limit": 1} if single else {}


def _same_file(path: str, suggestions: Sequence[str]) -> str | None:
    """A suggestion that differs only in folder or ending, so that it is surely the file that was meant."""
    base = path.rsplit("/", 1)[-1].split(".", 1)[0].lower()
    for suggestion in suggestions[:1]:
        if suggestion.rsplit("/", 1)[-1].split(".", 1)[0].lower() == base:
            return suggestion
    return None


_COUNT = re.compile(r"\A(?:.{0,30}\b)?(?:how many|how often|number of|count)\b")
# Words after which the text that is looked for stands.
_OPENERS = re.compile(
    r"\b(?:search(?:ing)?(?:\s+the\s+\w+)?\s+for|look(?:ing)?\s+for|mention(?:s|ed|ing)?(?:\s+of)?|occurrences?\s+of"
    r"|talk(?:s|ing)?\s+about|(?:contain|contains|containing|has|have|having|with|say|says|including)\s+"
    r"(?:the\s+)?(?:word|words|text|string|phrase|term)s?|contain(?:s|ing)?|refer(?:s)?\s+to"
    r"|find\s+(?:every|all|any|each)(?:\s+the)?(?:\s+(?:mentions?|uses?|occurrences?)\s+of)?|where\s+is|where\s+does"
    r"|where\s+do|search(?=\s+\S+\s+in\s)|find\s+where|find|grep(?:\s+for)?|times\s+(?:does|is)"
    r"|(?:the\s+)?(?:word|phrase|string|term))\s+"
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
class FileSearch:
    """A search in files: a plain text or a pattern, where, and whether letter case counts."""

    pattern: str
    path: str | None
    case_sensitive: bool
    escaped: bool = True

    @property
    def expression(self) -> str:
        return _SPECIAL.sub(r"\\\1", self.pattern) if self.escaped else self.pattern


def attempt(context: PlanningContext, prompt: Prompt) -> str | None:
    """Search files for a text; None when the prompt does not ask for that."""
    search = find_search(prompt)
    if search is None:
        return None
    action = job(context, ("grep", "search"), ("pattern",))
    arguments: dict[str, object] = {"pattern": search.expression}
    if search.path:
        arguments["path"] = search.path
    if "case_sensitive" in action.parameters:
        arguments["case_sensitive"] = search.case_sensitive
    result = context.invoke(action, arguments)
    if result.error is not None and search.path and "/" not in search.path and "." not in search.path:
        # The word after "in" was no folder; the whole workspace is what is left.
        arguments.pop("path")
        result = context.invoke(action, arguments)
    return _told(context, prompt, search, check_result(result, "the search"))


def _told(context: PlanningContext, prompt: Prompt, search: FileSearch, result: ToolOutput) -> str:
    counting = _COUNT.search(prompt.lower[:200]) is not None
    where = f" in {code(search.path)}" if search.path else ""
    opened = context.opened(result, "lines:1-100")
    lines = [line for line in opened.body.split("\n") if line.strip() and not line.startswith("──")]
    if not lines:
        return f"No line{where} matches {code(search.pattern)}."
    total = result.total if result.blob is not None and result.total is not None else len(lines)
    if counting and "\n── the first" not in opened.body:
        return f"{total} lines{where} match {code(search.pattern)}."
    more = f"\n\n… {opened.left}" if opened.left else ""
    return f"{code(search.pattern)}{where}:\n\n{block(opened.body)}{more}"


def find_search(prompt: Prompt) -> FileSearch | None:
    """Return what a prompt wants to find in files, None when it wants something else."""
    text = prompt.text[:600]
    if re.match(r"\s*grep\b", text):
        return _grep(prompt)
    openers = list(_OPENERS.finditer(text.lower()))
    if len(openers) > 1 and openers[0].group().startswith("where do"):
        openers.pop(0)  # "where do the notes mention …"
    opener = openers[0] if openers else None
    if opener is None or not _about_files(prompt, opener):
        return None
    quoted = next((token for token in prompt.tokens if token.kind == "quoted"), None)
    rest = text[opener.end() :]
    pattern = quoted.text if quoted else _plain(rest)
    if not pattern or len(pattern) > 200:
        return None
    return FileSearch(pattern, _scope(prompt, text, quoted), pattern != pattern.lower())


def _about_files(prompt: Prompt, opener: re.Match[str]) -> bool:
    """Return whether an opener is about the text of files, not about rows, files of a kind, or the world."""
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


def _grep(prompt: Prompt) -> FileSearch | None:
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
    return FileSearch(pattern, path or None, not ignore, escaped=tokens[0].kind == "quoted")
