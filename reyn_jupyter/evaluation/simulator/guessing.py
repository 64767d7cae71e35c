"""The names that a model makes up when it has not looked: what it recalls of such tools from training.

Invariant: a pure function of the person's text and the categories that the prompt names; no catalog is known here, so
a name that is right is right by luck.
"""

from __future__ import annotations

from functools import lru_cache

from reyn_jupyter.evaluation.simulator.fitting import asks_for_a_change, category, said
from reyn_jupyter.evaluation.simulator.vocabulary import VERBS


@lru_cache(4096)
def concept(text: str, categories: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    """The category and the verb that a text calls to mind.

    >>> concept("Read notes.md", (("file", "Read and write files."),))
    ('file', 'read')
    """
    kind = category(text, categories) or "tool"
    words = said(text)
    if asks_for_a_change(text):
        return kind, "edit"
    for verb, called in VERBS:
        if words & called:
            return kind, verb
    return kind, min(words, default="run")
