"""Calling a function that the prompt names, or that it plainly describes."""

from __future__ import annotations

import json
import re

from reyn_jupyter.models.offline.choose import name_coverage, ranked
from reyn_jupyter.models.offline.desk import Declined, Desk
from reyn_jupyter.models.offline.fill import fill
from reyn_jupyter.models.offline.prompt import Prompt
from reyn_jupyter.models.offline.question import asks, units
from reyn_jupyter.models.offline.render import block, code, plain, table, value
from reyn_jupyter.models.offline.transcript import Known, Result
from reyn_jupyter.models.offline.words import parts

_CALL = re.compile(
    r"\A(?:(?:please|can you|could you|now|and)\s+)*(?:call|run|execute|invoke|use|apply)\s+(?:the\s+)?"
    r"(?:function\s+|action\s+|tool\s+)?[\"'`]?([^\W\d][\w.-]{0,100})"
)
_EXPLAIN = re.compile(
    r"\A(?:what does ([^\W\d][\w.]{0,100}) (?:do|take|return|compute|mean)\b"
    r"|how (?:do i|do you|can i|to) (?:use|call|run) ([^\W\d][\w.]{0,100})|(?:explain|help) ([^\W\d][\w.]{0,100}))",
    re.IGNORECASE,
)
# Kinds of action that act on the workspace, the catalog or the world; they have routines of their own or none.
_OTHERS = (
    "file",
    "table",
    "variable",
    "memory",
    "source",
    "operation",
    "mcp",
    "exec",
    "web",
    "peer",
    "corpus",
)
SURE = 0.5  # of the name's words that a description must say before it is called


def callables(desk: Desk) -> tuple[str, ...]:
    """The categories whose entries are called with arguments of their own: functions, tools, skills."""
    return tuple(name for name in desk.categories if not set(parts(name)) & set(_OTHERS))


def attempt_named(desk: Desk, prompt: Prompt) -> str | None:
    """Call the function that the prompt names; None when it names none."""
    match = _CALL.match(prompt.text)
    asked = match.group(1).rstrip(".-") if match else None
    if asked is None and (not prompt.identifiers or asks(units(prompt))):
        return None
    names = [*([asked] if asked else []), *prompt.identifiers]
    listed = desk.about(callables(desk), " ".join(names)) if callables(desk) else []
    for name in names:
        for action in listed:
            if name.lower() in (action.entry.lower(), action.name.lower()):
                return call(desk, action, prompt, name)
    if match is not None and asked is not None and _surely(match.group().lower(), asked):
        near = ", ".join(code(action.entry) for action in listed[:5]) or "none"
        raise Declined(f"no function on offer is called {code(asked)}. There are: {near}.")
    return None


def _surely(said: str, name: str) -> bool:
    """Whether a prompt is surely about a function: `run the numbers` may be about anything."""
    return "_" in name or re.search(r"\b(?:call|invoke|execute|function)\b", said) is not None


def attempt_explain(desk: Desk, prompt: Prompt) -> str | None:
    """`what does X do?`, `how do I call X?`: the action's description and what it takes; None for other prompts."""
    match = _EXPLAIN.match(prompt.text)
    name = next((group for group in match.groups() if group), None) if match else None
    if name is None or not callables(desk):
        return None
    for action in desk.listing(callables(desk)):
        if name.lower() in (action.entry.lower(), action.name.lower()):
            known = desk.schema(action)
            taken = ", ".join(
                f"{code(key)} ({shape.get('type', 'any')}{'' if key in known.required else ', optional'})"
                for key, shape in known.parameters.items()
            )
            return f"{code(known.entry)}: {plain(known.description)}\n\nIt takes {taken or 'nothing'}."
    return None


def attempt_described(desk: Desk, prompt: Prompt) -> str | None:
    """Call the function that the prompt describes, when its name is said for the most part and its arguments too."""
    if not callables(desk):
        return None
    found = desk.about(callables(desk), prompt.text)
    for _, action in ranked((one for one in found if one.category in callables(desk)), prompt.text)[:3]:
        known = desk.schema(action)
        coverage = name_coverage(known, prompt.text)
        exact = known.entry.lower() in prompt.words
        if coverage < SURE and not exact:
            continue
        filled = fill(known, prompt, _places(prompt, known.entry))
        if not filled.missing and (filled.arguments or exact):
            return call(desk, known, prompt, known.entry)
    return None


def _places(prompt: Prompt, name: str) -> set[int]:
    return {index for index, token in enumerate(prompt.tokens) if token.lower == name.lower()}


def call(desk: Desk, action: Known, prompt: Prompt, name: str) -> str:
    """Invoke a function with what the prompt gives; declines when something required is missing."""
    known = desk.schema(action)
    filled = fill(known, prompt, _places(prompt, name))
    if filled.missing:
        needs = ", ".join(
            f"{code(key)} ({known.parameters[key].get('type', 'any')})" for key in filled.missing
        )
        raise Declined(
            f"{code(known.entry)} needs {needs}. Say it like `call {known.entry} with {filled.missing[0]}=…`."
        )
    result = desk.invoke(known, filled.arguments)
    said = ", ".join(
        f"{key}={json.dumps(given, ensure_ascii=False)}" for key, given in filled.arguments.items()
    )
    if result.error is not None:
        raise Declined(f"{code(f'{known.entry}({said})')} failed: {result.error}")
    return f"{code(f'{known.entry}({said})')} gives {told(_opened(desk, result))}"


def _opened(desk: Desk, result: Result) -> Result:
    """What is stored behind a summary, by its kind."""
    if "json_array |" in result.text[:100]:
        return desk.opened(result, "slice:0..50")
    return desk.whole(result) if "json_object |" in result.text[:100] else desk.opened(result, "lines:1-100")


def told(result: Result) -> str:
    """What a function gave: a short value in the sentence, records as a table, the rest in a block."""
    if result.rows:
        more = f"\n\n… {result.left}" if result.left else ""
        return f"\n\n{table(result.rows)}{more}"
    given = result.json
    if given is None or isinstance(given, (dict, list)):
        short = (
            given is None and len(result.text) <= 200 and "\n" not in result.text and "`" not in result.text
        )
        return f"{code(result.text)}." if short and result.text else f"\n\n{block(result.body)}"
    return f"**{value(given)}**." if not isinstance(given, str) else f"{code(given)}."
