"""`%reyn approvals [drop|add PATTERN | clear | ANSWER ID]`: what was always allowed, and what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.options import Options, Positional
from reyn_jupyter.notebook.verb import Context, Verb
from reyn_jupyter.runtime.consent import CHOICES, DESK, UnknownQuestionError
from reyn_jupyter.sessions.result_objects import Table

ANSWERS = {each.verb: each.answer for each in CHOICES}
WORDS = ("list", "add", "drop", "clear", *ANSWERS)
if TYPE_CHECKING:
    Word = str
else:
    Word = Literal[WORDS]  # pydantic checks it; a type checker cannot read a tuple here


class ApprovalsOptions(Options):
    what: Annotated[Word, Positional("|".join(WORDS))] = "list"
    pattern: Annotated[str | None, Positional("PATTERN or ID")] = None


def run(context: Context, options: ApprovalsOptions) -> Table:
    if options.what in ANSWERS:
        _answer(options)
    elif options.what != "list":
        _change(context, options)
    return context.session.approvals


def _answer(options: ApprovalsOptions) -> None:
    if options.pattern is None:
        waiting = DESK.pending()
        example = waiting[0].id if waiting else "ID"
        raise ReynError(
            f"Answer {options.what} to which question?", f"%reyn approvals {options.what} {example}"
        )
    try:
        DESK.answer(options.pattern, ANSWERS[options.what])
    except UnknownQuestionError as error:
        said = str(error)
        raise ReynError(f"{said[:1].upper()}{said[1:]}.", "%reyn approvals lists what waits.") from None


def _change(context: Context, options: ApprovalsOptions) -> None:
    approvals = context.session.parts.approvals
    if options.what == "clear":
        approvals.clear()
        return
    if options.pattern is None:
        raise ReynError(
            f"{options.what.capitalize()} which pattern?",
            "For example: %reyn approvals drop 'file__write(data/**)'",
        )
    if options.what == "add":
        approvals.add(options.pattern)
    elif not approvals.remove(options.pattern):
        raise ReynError(f"{options.pattern!r} was not approved.", "%reyn approvals lists what is.")


VERB = Verb(
    "approvals",
    "what was always allowed, and what waits for your word",
    run,
    ApprovalsOptions,
    ("%reyn approvals", "%reyn approvals drop 'file__write(data/**)'", "%reyn approvals allow ID"),
    completes=lambda session, before, word: _complete(session.parts.approvals.list(), before),
)


def _complete(patterns: tuple[str, ...], before: list[str]) -> list[str]:
    if not before:
        return list(WORDS[1:])
    return [each.id for each in DESK.pending()] if before[0] in ANSWERS else list(patterns)
