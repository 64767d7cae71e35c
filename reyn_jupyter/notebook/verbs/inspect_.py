"""`%reyn inspect ID [SELECTOR]`: a blob, or a part of it."""

from __future__ import annotations

from typing import Annotated

from reyn_jupyter.notebook.magic_line import completers
from reyn_jupyter.notebook.magic_line.options import Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.outputs.blobs.ids import is_blob_id
from reyn_jupyter.outputs.content import BlobNotFoundError
from reyn_jupyter.sessions.result_objects import Inspection

SELECTORS = ["lines:1-50", "slice:0..20", "key:", "path:/", "grep:", "bytes:0..8192"]


class InspectOptions(Options):
    blob: Annotated[str, Positional("ID")]
    selector: Annotated[str | None, Positional()] = None


def run(context: Context, options: InspectOptions) -> Inspection:
    session = context.session
    try:
        wanted = session.blob(options.blob).id
    except BlobNotFoundError:  # a blob of another kind of store is known by its whole id alone
        wanted = options.blob.removeprefix("[").removesuffix("]").removeprefix("blob:").removeprefix("@")
        if not is_blob_id(wanted):
            raise
    return session.inspect(wanted, options.selector)


VERB = Verb(
    "inspect",
    "a blob, or a part of it",
    run,
    InspectOptions,
    ("%reyn inspect last", "%reyn inspect ID lines:20-50", "%reyn inspect ID slice:0..20"),
    completes=lambda session, before, word: SELECTORS if before else completers.blobs(session, before, word),
    group="look",
)
