"""Reading the workspace: list a folder, find files by name, read one, count what was found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from reyn_jupyter.models.offline.choose import for_job
from reyn_jupyter.models.offline.desk import Declined, Desk
from reyn_jupyter.models.offline.prompt import Prompt
from reyn_jupyter.models.offline.render import ROWS, block, code
from reyn_jupyter.models.offline.transcript import Known, Result
from reyn_jupyter.models.offline.words import content, stem

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
_LOOSELY = re.compile(
    r"\A(?:(?:please|can you|could you|now)\s+)*(?:read|open|cat|what(?:'s| is) in(?:side)?|list|show me|show)\s+"
    r"(?:the\s+|my\s+)?"
)
_COMMON = {"note", "notes", "document", "text", "folder", "directory", "content", "contents", "inside"}
# Questions about what can be done, not about what lies in the workspace.
ABLE = re.compile(
    r"\bwhat (?:else )?(?:can|could) (?:you|i|it|this)\b|\bwhat are you able\b|\Ahelp\b|\bwhat actions\b"
    r"|\blist (?:all |the |your )*actions\b|\b(?:capabilities|abilities)\b"
)
_NO_FOLDERS = {"this", "the", "my", "a", "workspace", "project", "folder", "directory", "here", "it", "current", "all",
               "there", "total", "files", "repository", "repo", "root", "our", "which", "what"}  # fmt: skip


def actions(desk: Desk) -> list[Known]:
    """The file actions on offer; declines when there are none."""
    category = desk.category("file")
    if category is None:
        raise Declined("no file actions are on offer here.")
    return desk.listing((category,))


def job(desk: Desk, words: Sequence[str], takes: Sequence[str]) -> Known:
    """The file action for a job; declines when none does it."""
    action = for_job(actions(desk), words, takes)
    if action is None:
        raise Declined(f"no action on offer can {words[0]} files.")
    return action


def checked(result: Result, doing: str) -> Result:
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


def _found(desk: Desk, action: Known, arguments: dict[str, Any], doing: str) -> tuple[list[str], int]:
    result = checked(desk.invoke(action, arguments), doing)
    if result.blob is not None:
        result = desk.whole(result)
        if result.json is None:
            raise Declined(f"{doing} found too much to show. Give a narrower pattern or folder.")
    paths = paths_in(result.json) if result.json is not None else result.text.split()
    return paths, total_in(result.json, paths)


def paths_like(desk: Desk, pattern: str) -> list[str]:
    """The files whose paths match a pattern; none where nothing can find files."""
    category = desk.category("file")
    action = for_job(desk.listing((category,)), ("glob", "find"), ("pattern",)) if category else None
    return _found(desk, action, {"pattern": pattern}, "finding files")[0] if action else []


def attempt_list(desk: Desk, prompt: Prompt) -> str | None:
    """List a folder, or find files of a kind or a name; None when the prompt asks for neither."""
    if ABLE.search(prompt.lower[:400]):
        return None
    stars = [path for path in prompt.paths if "*" in path]
    if not stars and not _LIST.search(prompt.lower[:400]) and not _kind_search(prompt):
        return None
    pattern = stars[0] if stars else _pattern(prompt)
    counting = re.search(r"\b(?:how many|number of|count)\b", prompt.lower[:400]) is not None
    if pattern is not None:
        action = job(desk, ("glob", "find"), ("pattern",))
        arguments = {"pattern": pattern} | ({"path": folder} if (folder := _folder(prompt)) else {})
        paths, total = _found(desk, action, arguments, "finding files")
        named = f"match {code(pattern)}"
    else:
        action = job(desk, ("list",), ("path",))
        folder = _folder(prompt) or "."
        paths, total = _found(desk, action, {"path": folder}, f"listing {code(folder)}")
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


def attempt_read_named(desk: Desk, prompt: Prompt) -> str | None:
    """`read the staffing notes`, `what's in src?`: a file or folder by a word of its name; None when it is no such."""
    match = _LOOSELY.match(prompt.lower)
    if match is None or prompt.paths:
        return None
    words = [word for word in content(prompt.text[match.end() :][:200]) if word not in _COMMON]
    for word in words[:2]:
        found = [path for path in paths_like(desk, f"*{word}*") if not path.endswith("/")]
        if len(found) == 1:
            return _read(desk, found[0], {})
    if len(words) == 1 and match.group().startswith(("what", "list", "show")):
        action = job(desk, ("list",), ("path",))
        result = desk.invoke(action, {"path": words[0]})
        if result.error is None:
            return "\n".join(
                [f"In {code(words[0])}:\n", *(f"- {code(path)}" for path in paths_in(result.json)[:ROWS])]
            )
    return None


def attempt_read(desk: Desk, prompt: Prompt) -> str | None:
    """Read a file that the prompt names; None when it names none or does not ask to read."""
    paths = [path for path in prompt.paths if "*" not in path and not path.endswith("/")]
    if not paths or not _READ.search(prompt.lower[:400]):
        return None
    return _read(desk, paths[0], _span(prompt))


def _read(desk: Desk, path: str, span: dict[str, int]) -> str:
    action = job(desk, ("read", "open"), ("path",))
    span = span if set(span) <= set(action.parameters) else {}
    result = desk.invoke(action, {"path": path, **span})
    again = _same_file(path, result.suggestions) if result.error is not None else None
    if again is not None:
        path, result = again, desk.invoke(action, {"path": again, **span})
    result = desk.opened(checked(result, f"reading {code(path)}"), "lines:1-200")
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
