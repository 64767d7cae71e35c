"""The sentences that hold a weak model to the catalog, and where they stand.

Enumerating what a mandate covers is followed far more often than a generic phrase, and saying it three times more
often than once (Universal Action Catalog, "Mechanical mandate": 25–55 % against 0–10 %; about 36 % to 75–85 %).
No sentence here holds an action's name unless names are shown, which only an evaluation asks for.
"""

from __future__ import annotations

from reyn_jupyter.router.request.router_options import RouterOptions

LIST_FIRST = {
    "explicit": (
        "MANDATORY: your first tool call MUST be list_actions, before reading, writing, or editing anything, "
        "before querying, searching, remembering or calling anything."
    ),
    "generic": "MANDATORY: your first tool call MUST be list_actions, before any other tool.",
}
LIST_FIRST_REMINDER = {
    "explicit": (
        "Remember: list_actions comes first. Reading, writing, editing, querying: none of it before list_actions."
    ),
    "generic": "Remember: list_actions comes first, before any other tool.",
}
EDIT = {
    ("must", "hidden"): (
        "To change part of an existing file you MUST use the action that edits in place, NOT the one that writes "
        "whole files."
    ),
    ("reasoned", "hidden"): (
        "For a change to part of a file, prefer the action that edits in place, since it leaves the rest untouched."
    ),
    ("must", "shown"): "Edits MUST use file__edit, NOT file__write.",
    (
        "reasoned",
        "shown",
    ): "For a change to part of a file, prefer file__edit, since it leaves the rest untouched.",
}
PLACES = ("behaviour", "identity", "categories")


def sentences(options: RouterOptions, place: str) -> list[str]:
    """Return the mandate sentences for one place of the system prompt.

    The first placement is in Behaviour, the second under Identity, the third closes the categories; more than three
    repeat in Behaviour. Each says the same sentence; with `reinforce_with: reminder` all but the first of Behaviour
    say a shorter one, without MUST. The edit rule stands once, in Behaviour.
    """
    lines: list[str] = []
    if options.lists_first:
        times = max(0, (options.reinforcement - PLACES.index(place) + 2) // 3)
        again = LIST_FIRST if options.reinforce_with == "mandate" else LIST_FIRST_REMINDER
        lines += [again[options.mandate]] * times
        if place == "behaviour":
            lines[0] = LIST_FIRST[options.mandate]
    if place == "behaviour" and options.edit_rule != "none":
        lines.append(EDIT[options.edit_rule, options.names])
    return lines
