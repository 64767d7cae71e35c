"""`%reyn help [VERB]`: the verbs, or one of them with its options and examples."""

from __future__ import annotations

from typing import Annotated

from reyn_jupyter.notebook import verbs
from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.options import Options, Positional, choices, fields_by_word, usage
from reyn_jupyter.notebook.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Card
from reyn_jupyter.support.text import did_you_mean, nearest_names


class HelpOptions(Options):
    verb: Annotated[str | None, Positional()] = None


def run(context: Context, options: HelpOptions) -> Card:
    if options.verb is not None:
        return help_card(options.verb)
    lines = tuple(
        f"{name:<11} {verb.summary}" for name in verbs.names() if (verb := verbs.find(name)) is not None
    )
    ways = (
        "%reyn VERB …          a verb",
        "%%reyn [options]      a question, in the lines below it",
        "x = %reyn list file   keeps the object; so does %reyn list file -o x",
    )
    return Card(
        "help", "%reyn", (), (("Ways in", ways), ("Verbs", lines)), ("%reyn help ask", "%reyn doctor")
    )


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
    meant = did_you_mean([f"%reyn {verb}" for verb in nearest_names(name, verbs.names(), 1)])
    hint = meant or '%reyn help lists the verbs; %reyn ask "…" asks a question.'
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
