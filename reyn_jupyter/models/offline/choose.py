"""Which of the listed actions does a job: by the words of its name and description, and by its schema.

No action name is known beforehand. A job is a few words and the parameters that it needs; the best listed action
is the one whose name says the word, whose schema takes the parameters, and which demands nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reyn_jupyter.models.offline.transcript import Known
from reyn_jupyter.models.offline.words import alike, content, parts


def for_job(actions: Iterable[Known], words: Sequence[str], takes: Sequence[str] = ()) -> Known | None:
    """The action for a job, None when no listed one does it.

    Args:
        actions: what listings showed.
        words: what the action is called, best word first ("read", "open").
        takes: parameters that its schema must have.
    """
    best: tuple[float, Known] | None = None
    for action in actions:
        score = _fitness(action, words, takes)
        if score > 0 and (best is None or score > best[0]):
            best = (score, action)
    return best[1] if best else None


def _fitness(action: Known, words: Sequence[str], takes: Sequence[str]) -> float:
    if action.schema is not None and not set(takes) <= set(action.parameters):
        return 0.0
    if action.schema is not None and not set(action.required) <= {*takes, *_COMMON}:
        return 0.0
    name = parts(action.entry)
    description = content(action.description)
    score = 0.0
    for rank, word in enumerate(words):
        weight = 1.0 / (1 + rank)
        if word in name:
            score += 3 * weight
        elif word in description:
            score += weight
    # A name that says only the word is the plain action; a longer name is a special case of it.
    return score / (1 + 0.1 * len(name))


_COMMON = (
    "path",
    "pattern",
    "content",
    "slug",
    "name",
    "description",
    "type",
    "body",
    "layer",
    "sql",
    "sources",
)


def ranked(actions: Iterable[Known], text: str) -> list[tuple[float, Known]]:
    """Actions by how well their words cover those of a text, best first; those without a common word left out.

    The score is 0–1: the part of the text's words that the name, then the description and parameters, account for.
    """
    wanted = content(text)
    scored = []
    for action in actions:
        name = parts(action.entry)
        rest = (*content(action.description), *(part for key in action.parameters for part in parts(key)))
        hits = sum(
            1.0
            if any(alike(want, part) for part in name)
            else 0.4
            if any(alike(want, part) for part in rest)
            else 0.0
            for want in wanted
        )
        if hits:
            scored.append((hits / max(1, len(wanted)), action))
    return sorted(scored, key=lambda pair: (-pair[0], pair[1].name))


def name_coverage(action: Known, text: str) -> float:
    """How much of an action's name the text says, 0–1."""
    name = [part for part in parts(action.entry) if len(part) > 1]
    said = parts(text)
    return sum(any(alike(part, word) for word in said) for part in name) / len(name) if name else 0.0
