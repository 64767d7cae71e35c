"""`%reyn corpora [index NAME PATHS… | drop NAME | NAME [QUERY]]`: indexed documents, and what a question finds."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reyn_jupyter.notebook.displays.updating_display import InPlace
from reyn_jupyter.notebook.errors import ReynError, ReynInterrupt
from reyn_jupyter.notebook.magic_line.options import Option, Options, Rest
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.runtime.pump import Interrupted
from reyn_jupyter.runtime.record.events import ActionProgressed
from reyn_jupyter.sessions.overviews.corpora_overview import CorpusActionError
from reyn_jupyter.sessions.result_objects import Card, Table
from reyn_jupyter.sessions.session import Session
from reyn_jupyter.support.reyn_line import quote_word

KEPT = "What was indexed is kept; %reyn corpora index {name} goes on from there."


class CorporaOptions(Options):
    words: Annotated[tuple[str, ...], Rest("index|drop|NAME …")] = ()
    top_k: Annotated[int, Option(takes="N"), Field(ge=1, le=50, description="passages at most")] = 5
    about: Annotated[
        str | None,
        Option(takes="TEXT"),
        Field(description="index: what the corpus holds, for whoever looks for it"),
    ] = None


def run(context: Context, options: CorporaOptions) -> Table | Card:
    try:
        return _run(context, options)
    except CorpusActionError as error:
        raise ReynError(error.message, error.hint) from None


def _run(context: Context, options: CorporaOptions) -> Table | Card:
    session, words = context.session, list(options.words)
    if not words:
        return session.corpora
    first, *rest = words
    if first == "index":
        if not rest:
            raise ReynError("Index what, under which name?", "%reyn corpora index meetings notes/meetings")
        return _index(context, rest[0], rest[1:], options.about)
    if first == "drop":
        if len(rest) != 1:
            raise ReynError("Drop which corpus?", "%reyn corpora drop meetings")
        return session.drop_corpus(rest[0])
    return session.recall(" ".join(rest), [first], options.top_k) if rest else session.corpus_passages(first)


def _index(context: Context, name: str, words: list[str], about: str | None) -> Card:
    paths = [word for word in words if not word.startswith("@")]
    frames = [word[1:] for word in words if word.startswith("@")]
    place = InPlace(context.shell)

    def hear(event: object) -> None:
        if isinstance(event, ActionProgressed):
            place.show(Card("corpora", f"Indexing {name}", (("progress", event.text),)), event.text)

    try:
        return place.last(
            context.session.index_corpus(
                name, paths if words else None, frames=frames or None, about=about, on_event=hear
            )
        )
    except Interrupted as interrupted:
        raise ReynInterrupt(interrupted.why or "Interrupted.", KEPT.format(name=quote_word(name))) from None
    finally:
        place.end()


def _complete(session: Session, before: list[str], word: str) -> list[str]:
    if not before:
        return ["index", "drop", *(str(row["corpus"]) for row in session.corpora.rows)]
    if len(before) == 1 and before[0] in ("index", "drop"):
        return [str(row["corpus"]) for row in session.corpora.rows]
    return []


VERB = Verb(
    "corpora",
    "indexed documents: list, index, drop; the passages that answer a question",
    run,
    CorporaOptions,
    (
        "%reyn corpora",
        "%reyn corpora index manual docs README.md",
        "%reyn corpora index faq @tickets",
        '%reyn corpora manual "how are refunds handled?"',
        "%reyn corpora manual",
        "%reyn corpora drop manual",
    ),
    completes=_complete,
    group="look",
)
