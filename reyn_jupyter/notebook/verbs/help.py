"""`%reyn help [VERB]`: the verbs, or one of them with its options and examples."""

from __future__ import annotations

from typing import Annotated

from reyn_jupyter.notebook import verbs
from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line.options import Options, Positional, choices, fields_by_word, usage
from reyn_jupyter.notebook.magic_line.verb import Context, Verb, VerbGroup
from reyn_jupyter.sessions.result_objects import Card
from reyn_jupyter.support.text import did_you_mean


class HelpOptions(Options):
    verb: Annotated[str | None, Positional()] = None


def run(context: Context, options: HelpOptions) -> Card:
    if options.verb is not None:
        return help_card(options.verb)
    found = [verb for name in verbs.names() if (verb := verbs.find(name)) is not None]
    sections = tuple((title, _lines(names, group, found)) for group, (title, names) in GROUPS.items())
    ways = (
        "%%reyn, and the question in the lines below it",
        "x = %reyn list file keeps what a verb returns",
        "%reyn help VERB explains one",
    )
    return Card("help", "%reyn", (), (("Ways in", ways), *sections), ("%reyn help ask", "%reyn doctor"))


def _lines(names: tuple[str, ...], group: VerbGroup, found: list[Verb]) -> tuple[str, ...]:
    """Return a line for each verb that is needed often, and one that names the others of its group."""
    members = {verb.name: verb for verb in found if verb.group == group}
    lines = [f"{name:<10} {members[name].summary}" for name in names if name in members]
    others = [name for name in members if name not in names]
    return (*lines, f"also: {', '.join(others)}") if others else tuple(lines)


GROUPS: dict[VerbGroup, tuple[str, tuple[str, ...]]] = {
    "ask": ("Ask", ("ask", "dispatch", "history", "undo")),
    "look": ("Look at what there is and what was done", ("search", "list", "view", "trace", "inspect")),
    "change": ("Do it yourself", ("invoke", "script", "export")),
    "measure": ("Measure a model", ("eval", "replay", "diff")),
    "set up": ("Set up", ("status", "doctor", "models", "config", "approvals")),
}
"""What one wants to do: its heading, and the verbs that stand on lines of their own, in their order."""


def help_card(name: str) -> Card:
    """Return the help card of one verb. Raises ReynError with the nearest one."""
    verb = verbs.find(name)
    if verb is None:
        raise unknown_verb(name)
    words: dict[str, list[str]] = {}
    for word, field in fields_by_word(verb.options).items():
        words.setdefault(field, []).append(word)
    lines = []
    for field, spelled in words.items():
        info = verb.options.model_fields[field]
        allowed = choices(info)
        meaning = info.description or COMMON.get(field, "")
        values = f" ({', '.join(allowed)})" if allowed else ""
        lines.append(f"{', '.join(sorted(spelled)):<20} {meaning}{values}")
    text = ' "…"' if verb.literal else ""
    sections = (("Usage", (usage(name, verb.options) + text,)), ("Options", tuple(lines)))
    return Card("help", f"%reyn {name}: {verb.summary}", (), sections, verb.examples)


def unknown_verb(name: str) -> ReynError:
    near = verbs.meant(name)
    hint = (
        did_you_mean([f"%reyn {near}"])
        if near
        else '%reyn help lists the verbs; %reyn ask "…" asks a question.'
    )
    return ReynError(f"There is no verb {name!r}.", hint)


COMMON = {
    "output": "keep the result under this name",
    "debug": "show whole tracebacks",
    "help": "this text",
}

VERB = Verb(
    "help",
    "the verbs, or one of them",
    run,
    HelpOptions,
    ("%reyn help", "%reyn help ask"),
    completes=lambda session, before, word: list(verbs.names()),
)
