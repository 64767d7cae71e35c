"""Completion in every front end, from the kernel: verbs, options, categories, actions, arguments, runs, blobs.

It works for ``%reyn``, ``x = %reyn`` and ``%%reyn`` (its line, and ``@action`` inside its body). It only reads: no
action is run, and an error in it completes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reyn_jupyter.notebook.magic_line.verb import Suggestion, Verb

LINE = re.compile(r"^\s*(?:[A-Za-z_][\w.]*\s*=\s*)?%reyn(?P<rest>\s.*)?$", re.DOTALL)
CELL = re.compile(r"^\s*%%reyn(?P<rest>[ \t][^\n]*)?$")
MENTION = re.compile(r"(?<![\w@])@([\w.]*)$")
MOST = 500  # completions at once; a longer fragment narrows them down

Found = tuple[str, list["Suggestion"]]


def matcher() -> Any:
    """Return a context matcher for `Completer.custom_matchers`."""
    from IPython.core.completer import SimpleCompletion, context_matcher

    def reyn(context: Any) -> dict[str, Any]:
        try:
            found = complete(context.full_text, context.cursor_line, context.cursor_position)
        except Exception:  # noqa: BLE001 - a broken workspace must not break typing
            found = None
        if found is None:
            return {"completions": [], "suppress": False}
        fragment, offered = found
        # The type is what JupyterLab and a terminal show beside a completion.
        completions = [SimpleCompletion(text=each.text, type=each.meaning or "reyn") for each in offered]
        return {"completions": completions, "matched_fragment": fragment, "suppress": True}

    return context_matcher(identifier="reyn_jupyter")(reyn)


def complete(text: str, line: int, column: int) -> Found | None:
    """Return what may stand at a place.

    Args:
        text: the whole cell; `line` (0-based) and `column` say where the cursor is.

    Returns:
        The fragment that a completion replaces and the completions; None where `%reyn` has no say.
    """
    lines = text.split("\n")
    current = lines[line][:column] if line < len(lines) else ""
    cell = text.lstrip().startswith("%%reyn")
    if cell and not CELL.match(current):
        return _mentioned(current)
    match = CELL.match(current) if cell else LINE.match(current)
    if match is None or match.group("rest") is None:
        return None
    return _words(match.group("rest"), cell)


def _mentioned(current: str) -> Found | None:
    mention = MENTION.search(current)
    if mention is None:
        return None
    from reyn_jupyter.notebook.magic_line.completers import described_actions

    names = _starting(described_actions(_session()), mention.group(1))
    return mention.group(0), [replace(name, text=f"@{name.text}") for name in names]


def _words(rest: str, cell: bool) -> Found:
    from reyn_jupyter.notebook import verbs
    from reyn_jupyter.notebook.magic_line.options import fields_by_word

    parts = rest.split()
    fragment = "" if not rest or rest[-1:].isspace() else parts.pop()
    asks = cell and (parts[0] if parts else fragment).startswith("-")
    if not parts and not asks:
        return fragment, _starting(_described_verbs(fragment), fragment)
    verb = verbs.find("ask" if asks else parts[0])
    if verb is None:
        return fragment, []
    options = fields_by_word(verb.options)
    previous = parts[-1] if parts else ""
    loose = _loose(verb.options, parts[1:])
    if previous in options and _takes_value(verb.options, options[previous]):
        return fragment, _starting(_values(verb, options[previous], loose, fragment), fragment)
    word, equals, value = fragment.partition("=")
    if equals and word in options:
        given = _values(verb, options[word], loose, value)
        return fragment, _starting(_with_prefix(f"{word}=", given), fragment)
    if fragment.startswith("-"):
        return fragment, _starting([word for word in options if word.startswith("--")], fragment)
    if verb.completes is None:
        return fragment, []
    return fragment, _starting(verb.completes(_session(), loose, fragment), fragment)


def _loose(model: Any, words: list[str]) -> list[str]:
    """Return the positional ones among the words before the cursor."""
    from reyn_jupyter.notebook.magic_line.options import fields_by_word

    options = fields_by_word(model)
    loose = []
    value_due = False
    for word in words:
        if word in options:
            value_due = _takes_value(model, options[word])
        elif value_due:
            value_due = False
        elif not word.startswith("--"):
            loose.append(word)
    return loose


def _takes_value(model: Any, field: str) -> bool:
    return model.model_fields[field].annotation is not bool


def _described_verbs(fragment: str) -> list[Suggestion]:
    """Return the verbs that begin so with their summaries; others are not imported for it."""
    from reyn_jupyter.notebook import verbs
    from reyn_jupyter.notebook.magic_line.verb import Suggestion

    found = {name: verbs.find(name) for name in verbs.names() if name.startswith(fragment)}
    return [Suggestion(name, verb.summary if verb else "") for name, verb in found.items()]


def _with_prefix(prefix: str, given: Iterable[str | Suggestion]) -> list[Suggestion]:
    return [replace(each, text=f"{prefix}{each.text}") for each in map(_suggestion, given)]


def _suggestion(given: str | Suggestion) -> Suggestion:
    from reyn_jupyter.notebook.magic_line.verb import Suggestion

    return Suggestion(given) if isinstance(given, str) else given


def _values(verb: Verb, field: str, loose: list[str], value: str) -> Sequence[str | Suggestion]:
    """Return what an option may take; of several with commas between them the last is completed."""
    from reyn_jupyter.notebook.magic_line import completers as shared
    from reyn_jupyter.notebook.magic_line.options import choices

    if field in verb.values:
        before = value[: value.rfind(",") + 1]
        return _with_prefix(before, verb.values[field](_session(), loose, value))
    if field == "model":
        return shared.models(_session(), value)
    if field == "vars":
        before = value[: value.rfind(",") + 1]
        return [f"{before}{name}" for name in shared.variables(_session())]
    return list(choices(verb.options.model_fields[field]))


def _starting(words: Iterable[str | Suggestion], fragment: str) -> list[Suggestion]:
    """Return those that begin so, each once."""
    found: dict[str, Suggestion] = {}
    for word in map(_suggestion, words):
        if word.text.startswith(fragment):
            found.setdefault(word.text, word)
    return list(found.values())[:MOST]


def _session() -> Any:
    from reyn_jupyter.sessions.current import session

    return session()
