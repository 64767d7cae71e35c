"""`%reyn embeddings status`: whether actions can be searched by meaning."""

from __future__ import annotations

from typing import Annotated, Literal

from reyn_jupyter.notebook.options import Options, Positional
from reyn_jupyter.notebook.verb import Context, Verb
from reyn_jupyter.runtime.results import Card


class EmbeddingsOptions(Options):
    what: Annotated[Literal["status"], Positional("status")] = "status"


def run(context: Context, options: EmbeddingsOptions) -> Card:
    chosen = context.session.parts.settings.action_retrieval.embedding_class
    facts = (
        ("class", chosen or "null (opted out)"),
        ("index", "none: search by meaning comes with a later version"),
        ("to turn it on", "nothing to install or to configure helps in this version"),
        ("search now", "%reyn search ranks by words; models use list_actions"),
    )
    return Card("embeddings", "Search by meaning", facts, (), ('%reyn search "group rows"',))


VERB = Verb(
    "embeddings",
    "whether actions can be searched by meaning",
    run,
    EmbeddingsOptions,
    ("%reyn embeddings status",),
)
