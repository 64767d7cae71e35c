"""What is on offer, and the answer to whatever the grammar does not understand."""

from __future__ import annotations

import re

from reyn_jupyter.models.offline.choose import ranked
from reyn_jupyter.models.offline.desk import Desk
from reyn_jupyter.models.offline.files import ABLE
from reyn_jupyter.models.offline.prompt import Prompt
from reyn_jupyter.models.offline.render import ROWS, code, plain
from reyn_jupyter.models.offline.transcript import Known
from reyn_jupyter.models.offline.words import content, parts, stem

NEAREST = 3
_OFFER = re.compile(
    r"\A(?:(?:please|can you|could you|so)\s+)*(?:list|show|what|which|how many|help|name|count)\b"
    r"|\Ahelp\b|\babilities\b"
)
_DRASTIC = {
    "delete",
    "drop",
    "forget",
    "remove",
    "write",
    "edit",
    "install",
    "run",
}  # never suggested unasked
_NOUNS = {"dataframe": "variable", "frame": "variable", "object": "variable", "tool": "", "action": "",
          "function": "function", "memory": "memory_entry", "folder": "file", "skill": "skill"}  # fmt: skip


def attempt_offer(desk: Desk, prompt: Prompt) -> str | None:
    """List what is on offer, of one kind or of all; None when the person does not ask for that."""
    low = prompt.lower[:300]
    able = ABLE.search(low) is not None
    if not able and (not _OFFER.match(low) or len(prompt.words) > 12):
        return None
    categories = [found for word in prompt.words if (found := _category(desk, word))]
    if not categories and not able:
        return None
    listed = desk.listing(categories[:2])
    if re.search(r"\b(?:how many|count|number of)\b", low):
        return f"{len(listed)} {'actions' if not categories else _noun(prompt, desk)} are on offer."
    if not listed:
        return "Nothing of that kind is on offer."
    lines = [f"- {code(action.name)}: {plain(action.description)}" for action in listed[:ROWS]]
    more = f"\n\n… and {len(listed) - ROWS} more" if len(listed) > ROWS else ""
    return "On offer:\n\n" + "\n".join(lines) + more


def _noun(prompt: Prompt, desk: Desk) -> str:
    """The word of the prompt that named a category."""
    return next((word for word in prompt.words if _category(desk, word)), "actions")


def _category(desk: Desk, word: str) -> str | None:
    single = stem(word)
    if single in desk.categories:
        return single
    meant = _NOUNS.get(single)
    if meant:
        return desk.category(meant)
    return next((name for name in desk.categories if parts(name) == (single,)), None)


def outside(desk: Desk, prompt: Prompt) -> str:
    """Say that the grammar does not cover a prompt, and show the nearest actions with ready lines."""
    listed = desk.search(prompt.text[:200]) or desk.listing(())
    near = [action for _, action in ranked(listed, prompt.text[:400])[:NEAREST]]
    mild = sorted(
        listed, key=lambda action: (bool(set(parts(action.entry)) & _DRASTIC), len(action.required))
    )
    near += [action for action in mild if action not in near][: NEAREST - len(near)]
    return nearest(near)


def nearest(actions: list[Known]) -> str:
    """The actions with ready lines to call them by hand."""
    if not actions:
        return ""
    lines = "\n".join(_invoke_line(action) for action in actions)
    return f"The nearest actions, to call by hand:\n\n```\n{lines}\n```"


def _invoke_line(action: Known) -> str:
    name = action.name if re.fullmatch(r"[\w.-]+", action.name) else f'"{action.name}"'
    keys = action.required or tuple(action.parameters)[:1]
    given = " ".join(f"{key}={'0' if _numeric(action, key) else '…'}" for key in keys)
    return f"%reyn invoke {name} {given}".rstrip()


def _numeric(action: Known, key: str) -> bool:
    return action.parameters.get(key, {}).get("type") in ("number", "integer")


def empty(prompt: Prompt) -> bool:
    """Whether a prompt says nothing at all."""
    return not prompt.tokens or not (content(prompt.text) or prompt.tokens)
