"""`%reyn embeddings status`: whether actions can be searched by meaning, and what that needs."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated, Literal

from reyn_jupyter.catalog.visibility import search_hint
from reyn_jupyter.notebook.options import Options, Positional
from reyn_jupyter.notebook.verb import Context, Verb
from reyn_jupyter.runtime.results import Card


class EmbeddingsOptions(Options):
    what: Annotated[Literal["status"], Positional("status")] = "status"


def run(context: Context, options: EmbeddingsOptions) -> Card:
    chosen = context.session.parts.settings.action_retrieval.embedding_class
    installed = find_spec("sentence_transformers") is not None
    hint = search_hint(0, chosen)
    facts = (
        ("class", chosen or "null (opted out)"),
        ("local backend", "installed" if installed else "not installed"),
        ("index", "none: search by meaning is not part of this version"),
        ("search now", "%reyn search ranks by words; models use list_actions"),
    )
    sections = (("Why search by meaning is off", (hint["reason"],)),) if hint else ()
    return Card("embeddings", "Search by meaning", facts, sections, ('%reyn search "group rows"',))


VERB = Verb(
    "embeddings",
    "whether actions can be searched by meaning",
    run,
    EmbeddingsOptions,
    ("%reyn embeddings status",),
)
