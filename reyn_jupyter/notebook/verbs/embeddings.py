"""`%reyn embeddings [status|build|clear]`: the index by which actions are searched by meaning."""

from __future__ import annotations

from typing import Annotated, Literal

from reyn_jupyter.notebook.displays.updating_display import InPlace, progress_card
from reyn_jupyter.notebook.errors import ReynInterrupt
from reyn_jupyter.notebook.magic_line.options import Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.runtime.pump import Interrupted
from reyn_jupyter.search.index_state import BuildProgress
from reyn_jupyter.sessions.result_objects import Card

KEPT = "What was built is kept; %reyn embeddings build goes on from there."
_TITLE, _FIRST = "Building the index of actions", "looking through the catalog"


class EmbeddingsOptions(Options):
    what: Annotated[Literal["status", "build", "clear"], Positional("status|build|clear")] = "status"


def run(context: Context, options: EmbeddingsOptions) -> Card:
    session = context.session
    if options.what == "status":
        return session.embeddings
    if options.what == "clear":
        return session.clear_embeddings()
    place = InPlace(context.shell)
    place.show(Card("embeddings", _TITLE, (("progress", _FIRST),)), _FIRST)

    def hear(event: object) -> None:
        if isinstance(event, BuildProgress):
            place.show(progress_card(_TITLE, event), str(event))

    try:
        return place.last(session.build_embeddings(on_event=hear))
    except Interrupted as interrupted:
        place.last(session.embeddings)
        raise ReynInterrupt(interrupted.why or "Interrupted.", KEPT) from None
    except Exception:
        place.last(Card("embeddings", "The index was not built", (("why", "see the error below"),)))
        raise
    finally:
        place.end()


VERB = Verb(
    "embeddings",
    "search by meaning: its state; build or clear the index",
    run,
    EmbeddingsOptions,
    ("%reyn embeddings", "%reyn embeddings build", "%reyn embeddings clear"),
    completes=lambda session, before, word: [] if before else ["status", "build", "clear"],
)
