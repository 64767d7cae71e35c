"""Makes the file of vectors that the package carries: ``python -m tests.search.embedders.built_in_vectors``."""

from __future__ import annotations

import tempfile

import numpy as np

from reyn_jupyter.search.action_records import Record
from reyn_jupyter.search.embedders.built_in_vectors import FILE, digest_text
from reyn_jupyter.search.embedders.packaged import KEY, PackagedMiniLM, weights_folder
from reyn_jupyter.search.embedding_texts import texts_of
from reyn_jupyter.sessions.session import Session


def built_in_texts() -> list[str]:
    """Return what a new session embeds of its actions."""
    with tempfile.TemporaryDirectory() as folder:
        session = Session(folder, store=None, namespace={})
        actions = session.catalog.actions
        session.close()
    records = (
        Record(each.name.text, each.name.text, each.description, each.input_schema) for each in actions
    )
    return list(dict.fromkeys(text for record in records for text in texts_of(record)))


def main() -> None:
    folder = weights_folder()
    if folder is None:
        raise SystemExit("the packaged weights are not installed: make setup")
    texts = built_in_texts()
    digests = np.array([np.frombuffer(digest_text(text), np.uint8) for text in texts])
    np.savez(FILE, key=KEY, digests=digests, vectors=PackagedMiniLM(folder).embed(texts).astype(np.float16))


if __name__ == "__main__":
    main()
