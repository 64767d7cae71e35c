"""Remembering what the person says, and finding it again."""

from __future__ import annotations

import re

from reyn_jupyter.models.offline.answers import block, code
from reyn_jupyter.models.offline.context import Declined, PlanningContext, for_job
from reyn_jupyter.models.offline.lexicon import alike, content_stems, parts
from reyn_jupyter.models.offline.prompt_tokens import Prompt
from reyn_jupyter.models.offline.transcript import KnownAction

_REMEMBER = re.compile(
    r"\A(?:(?:please|can you|could you|also|and)\s+)*"
    r"(?:remember|memori[sz]e|make a note|take a note|note(?: down)?|keep in mind|don't forget|do not forget)\b"
    r"(?:\s+for later)?[\s,:]*(?:that\b|to\b|this\b)?[\s:]*"
)
_RECALL = re.compile(
    r"\A(?:(?:please|can you|could you)\s+)*(?:recall\b|what (?:do|did|can) you (?:still )?(?:remember|recall|know)\b"
    r"|do you (?:still )?(?:remember|recall)\b|what (?:did|have) i (?:tell|told|asked?|say|said)\b"
    r"|(?:list|show)(?: me)? (?:all )?(?:my |your |the )?memor(?:y|ies)\b"
    r"|what(?:'s| is| are) (?:in )?(?:my|your) memor)"
)
_FRAME = {"recall", "remember", "tell", "told", "know", "memory", "memories", "say", "said", "last", "still", "list",
          "show", "asked", "ask"}  # fmt: skip
_LONGEST_SLUG = 60


def attempt_remember(context: PlanningContext, prompt: Prompt) -> str | None:
    """Keep what the person says; None when they do not ask for that."""
    match = _REMEMBER.match(prompt.lower)
    if match is None or prompt.text.rstrip().endswith("?"):
        return None
    body = prompt.text[match.end() :].strip().strip("\"'")
    if not content_stems(body):
        return None
    category = context.category("memory_operation")
    action = (
        for_job(
            context.listing((category,)),
            ("remember", "shared", "save"),
            ("slug", "name", "description", "body"),
        )
        if category
        else None
    )
    if action is None:
        raise Declined("no action that remembers something is on offer here.")
    arguments = {key: text for key, text in _entry(body, action).items() if key in action.parameters}
    result = context.invoke(action, arguments)
    if result.error is not None:
        raise Declined(f"remembering failed: {result.error}")
    return f"Remembered as {code(str(arguments.get('slug')))}: {body}"


def _entry(body: str, action: KnownAction) -> dict[str, str]:
    words = [word for word in content_stems(body) if word.isascii()][:5] or ["note"]
    slug = "-".join(words)[:_LONGEST_SLUG].strip("-_") or "note"
    line = " ".join(body.split())
    kinds = action.parameters.get("type", {}).get("enum")
    kind = _kind(body)
    if isinstance(kinds, list) and kinds and kind not in kinds:
        kind = str(kinds[0])
    return {
        "slug": slug.lower(),
        "name": " ".join(words).capitalize(),
        "description": line[:200],
        "type": kind,
        "body": body,
    }


def _kind(body: str) -> str:
    low = body.lower()
    if re.search(r"\b(?:i|my|me)\b", low):
        return "user"
    if re.search(r"\b(?:always|never|please|avoid|prefer)\b", low):
        return "feedback"
    return "reference" if re.search(r"https?://|\bis (?:at|in|under)\b", low) else "project"


def attempt_recall(context: PlanningContext, prompt: Prompt) -> str | None:
    """Find what was remembered; None when the person does not ask for that."""
    if _RECALL.match(prompt.lower) is None:
        return None
    category = context.category("memory_entry")
    entries = context.listing((category,)) if category else []
    entries = [action for action in entries if action.category == category]
    if not entries:
        raise Declined("nothing has been remembered here.")
    about = [word for word in content_stems(prompt.text) if word not in _FRAME]
    if not about:
        lines = [f"- {code(action.entry)}: {action.description}" for action in entries[:50]]
        return "Remembered:\n\n" + "\n".join(lines)
    scored = [(_hits(about, action), action) for action in entries]
    best, chosen = max(scored, key=lambda pair: (pair[0], pair[1].entry))
    if best < 0.5:
        names = ", ".join(code(action.entry) for action in entries[:10])
        raise Declined(f"no memory is about “{' '.join(about)}”. There are: {names}.")
    result = context.invoke(chosen, {})
    if result.error is not None:
        raise Declined(f"reading the memory {code(chosen.entry)} failed: {result.error}")
    return f"From memory ({code(chosen.entry)}):\n\n{block(context.opened(result, 'lines:1-200').body)}"


def _hits(about: list[str], action: KnownAction) -> float:
    offered = (*parts(action.entry), *content_stems(action.description))
    return sum(any(alike(word, part) for part in offered) for word in about) / len(about)
