"""Changing files: replace a text in one, or write one anew. Both ask the action that does exactly that."""

from __future__ import annotations

from dataclasses import dataclass

from reyn_jupyter.models.offline.answers import code
from reyn_jupyter.models.offline.context import PlanningContext
from reyn_jupyter.models.offline.prompt_tokens import Prompt, Token
from reyn_jupyter.models.offline.skills.files import check_result, job

_REPLACE = ("replace", "change", "substitute", "swap", "rename", "correct", "turn")
_WRITE = ("write", "save", "put", "create", "store")
_LEADING = ("in", "inside", "the", "file", "of", "within", "to", "into", "as")
_EVERYWHERE = frozenset(["every", "all", "each", "everywhere", "occurrences"])
_POLITE = {"please", "can", "could", "you", "now", "and", "then", "also", "just"}


@dataclass(frozen=True)
class Replacement:
    """A text to put in place of another in one file."""

    path: str
    old: str
    new: str


def attempt(context: PlanningContext, prompt: Prompt) -> str | None:
    """Edit or write a file; None when the prompt asks for neither in a form that is understood."""
    replacement = edit(prompt)
    if replacement is not None:
        return _edit(context, replacement)
    written = write(prompt)
    return _write(context, *written) if written is not None else None


def _edit(context: PlanningContext, wanted: Replacement) -> str:
    action = job(context, ("edit", "replace"), ("path", "old_string", "new_string"))
    arguments = {"path": wanted.path, "old_string": wanted.old, "new_string": wanted.new}
    check_result(context.invoke(action, arguments), f"editing {code(wanted.path)}")
    return f"Replaced {code(wanted.old)} with {code(wanted.new)} in {code(wanted.path)}."


def _write(context: PlanningContext, path: str, content: str) -> str:
    action = job(context, ("write", "create"), ("path", "content"))
    text = content if content.endswith("\n") else content + "\n"
    check_result(context.invoke(action, {"path": path, "content": text}), f"writing {code(path)}")
    return f"Wrote {code(content)} to {code(path)}."


def _verb(prompt: Prompt, verbs: tuple[str, ...], leading: int) -> int | None:
    """The place of a verb among the first words."""
    for index, token in enumerate(prompt.tokens[:leading]):
        if token.kind == "word" and token.lower in verbs:
            return index
    return None


def edit(prompt: Prompt) -> Replacement | None:
    """`replace A with B in F`, `change A to B in F`, `in F replace A by B`."""
    verb = _verb(prompt, _REPLACE, 8)
    if verb is None or not prompt.paths:
        return None
    tokens = prompt.tokens
    path = next(index for index, token in enumerate(tokens) if token.kind == "path")
    separators = ("with", "by", "to", "into", "for")
    separator = next(
        (
            i
            for i in range(verb + 2, len(tokens))
            if tokens[i].kind == "word" and tokens[i].lower in separators
        ),
        None,
    )
    if separator is None or verb < path < separator:
        return None
    stop = _before_path(tokens, path) if path > separator else len(tokens)
    return _replacement(prompt, tokens[path].text, (verb + 1, separator), (separator + 1, stop))


def _replacement(prompt: Prompt, path: str, old: tuple[int, int], new: tuple[int, int]) -> Replacement | None:
    first = old[0]
    while first < old[1] and prompt.tokens[first].lower in ("the", "word", "text", "string"):
        first += 1
    was, becomes = _piece(prompt, first, old[1]), _piece(prompt, *new)
    if any(token.kind == "word" and token.lower in _EVERYWHERE for token in prompt.tokens):
        return None  # one place is changed
    return Replacement(path, was, becomes) if was and becomes is not None else None


def _piece(prompt: Prompt, start: int, stop: int) -> str:
    """The text of some tokens: what stands in quotes, else as it was typed."""
    tokens = prompt.tokens[start:stop]
    quoted = [token for token in tokens if token.kind == "quoted"]
    if quoted:
        return quoted[0].text
    return prompt.text[tokens[0].start : tokens[-1].end].strip().rstrip(",") if tokens else ""


def _before_path(tokens: tuple[Token, ...], path: int) -> int:
    """Return where the words that lead to a path begin: `in the file F`."""
    index = path
    while index > 0 and tokens[index - 1].lower in _LEADING:
        index -= 1
    return index


def write(prompt: Prompt) -> tuple[str, str] | None:
    """`write TEXT to F`, `save TEXT as F`, `create F with TEXT`: (path, content)."""
    verb = _verb(prompt, _WRITE, 4)
    if verb is None or not prompt.paths:
        return None
    if any(token.kind == "word" and token.lower not in _POLITE for token in prompt.tokens[:verb]):
        return None
    tokens = prompt.tokens
    path = next(index for index, token in enumerate(tokens) if token.kind == "path")
    if not any(token.kind == "quoted" for token in tokens):
        return None
    return tokens[path].text, _piece(prompt, verb + 1, len(tokens))
