"""Passages of indexed documents: what a corpus says about something.

Invariant: passages are quoted with their places, and never claimed to answer the question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from reyn_jupyter.models.offline.answers import block, code, plain
from reyn_jupyter.models.offline.context import Declined, PlanningContext
from reyn_jupyter.models.offline.lexicon import content_stems
from reyn_jupyter.models.offline.prompt_tokens import Prompt
from reyn_jupyter.models.offline.transcript import KnownAction, ToolOutput

_POLITE = r"\A(?:(?:please|can you|could you|and|now)\s+)*"
_CORPUS = (
    r"(?:the |my |our )?(?P<name>[a-z0-9][a-z0-9_-]{0,63})(?:\s+(?:corpus|documents?|docs|files|pages))?"
)
_ABOUT = r"(?P<about>.+)"
_FORMS = (
    rf"what (?:do|does|did) {_CORPUS} (?:say|tell(?: us| me)?|write|state) (?:about|on|of)\s+{_ABOUT}",
    rf"search (?:in |through )?{_CORPUS} for\s+{_ABOUT}",
    rf"(?:look up|find|search)\s+(?:passages (?:about|on) )?(?P<about>.+?) in {_CORPUS}[.?!]*\Z",
    rf"(?:according to|from|in) {_CORPUS}\s*[:,]\s*{_ABOUT}",
)
_PATTERNS = tuple(re.compile(_POLITE + form, re.IGNORECASE | re.DOTALL) for form in _FORMS)
_ANY = frozenset({"documents", "document", "docs", "corpus", "corpora"})
NEAREST_PASSAGES = "Nearest to that in "  # how such an answer begins, which is none to the question
HITS = 2  # passages that are quoted


def attempt(context: PlanningContext, prompt: Prompt) -> str | None:
    """Quote what a corpus has on something; None when the prompt names none."""
    if "rag_corpus" not in context.categories:
        return None
    for pattern in _PATTERNS:
        match = pattern.match(prompt.text.strip())
        if match is not None and (corpus := _corpus(context, match["name"].lower())) is not None:
            return _passages(context, corpus, match["about"].strip().strip("\"'"))
    return None


def _corpus(context: PlanningContext, name: str) -> KnownAction | None:
    corpora = [action for action in context.listing(("rag_corpus",)) if action.category == "rag_corpus"]
    named = [action for action in corpora if action.entry.lower() == name]
    return next(iter(named or (corpora if name in _ANY and len(corpora) == 1 else [])), None)


def _passages(context: PlanningContext, corpus: KnownAction, about: str) -> str:
    if not content_stems(about):
        raise Declined(f"say what {code(corpus.entry)} is to be searched for.")
    result = context.invoke(corpus, {"query": about, "top_k": HITS})
    if result.error is not None:
        raise Declined(f"searching {code(corpus.entry)} failed: {result.error}")
    quotes = [_quote(hit) for hit in _hits(context, result)]
    if not quotes:
        raise Declined(f"nothing in {code(corpus.entry)} is near that.")
    return f"{NEAREST_PASSAGES}{code(corpus.entry)}, whether it answers it or not:\n\n" + "\n\n".join(quotes)


def _hits(context: PlanningContext, result: ToolOutput) -> Iterator[Mapping[str, Any]]:
    """Yield the hits of a recall, one by one where they are stored."""
    if result.blob is None:
        found = result.json.get("hits") if isinstance(result.json, Mapping) else None
        yield from (hit for hit in found or () if isinstance(hit, Mapping))
        return
    for at in range(HITS):
        hit = context.opened(result, f"path:/hits/{at}").json
        if not isinstance(hit, Mapping) or "text" not in hit:
            return
        yield hit


def _quote(hit: Mapping[str, Any]) -> str:
    place = next((f", {kind} {hit[kind]}" for kind in ("page", "slide", "cell", "row") if kind in hit), "")
    if "line" in hit:
        place = f", lines {hit['line']} to {hit.get('to', hit['line'])}"
    heading = hit.get("heading")
    under = plain(" › ".join(map(str, heading))) if isinstance(heading, list) and heading else ""
    return f"{code(str(hit.get('path')))}{place}{f' · {under}' if under else ''}\n\n{block(str(hit['text']))}"
