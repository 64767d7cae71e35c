"""Choose the texts of a record that are embedded, and join their vectors into one.

Invariant: a weighted sum of the views is itself one vector, so a record costs one row however many views it has.
The views and weights were chosen on the tuning halves (`python -m tests.benchmarks.retrieval --tune`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.search.ranking.tokens import words
from reyn_jupyter.search.ranking.vocabulary import LONGEST_EMBEDDED
from reyn_jupyter.support.encoding import clean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reyn_jupyter.search.action_records import Record

WEIGHTS = (0.5, 1.0, 0.3)  # name as words, description, names of parameters
VIEWS = "name .5, description 1, parameters .3"  # with what else decides a stored vector: change it, and all are stale


def texts_of(record: Record) -> tuple[str, ...]:
    """Return the texts that are embedded for a record: one to three, the name as words first.

    >>> from reyn_jupyter.search.action_records import Record
    >>> texts_of(Record("1", "readFile", "Read a file.", {"properties": {"path": {}}}))
    ('read file', 'Read a file.', 'path')
    """
    name = " ".join(words(record.name[:LONGEST_EMBEDDED])) or record.name
    properties = record.parameters.get("properties")
    named = properties if isinstance(properties, Mapping) else ()
    parameters = ", ".join(
        " ".join(words(str(each)[:LONGEST_EMBEDDED])) for each in islice(named, LONGEST_EMBEDDED)
    )
    texts = (record.description.strip(), parameters)
    return tuple(clean(text[:LONGEST_EMBEDDED]) for text in (name, *texts) if text)


def join_vectors(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the one vector of a record, shape (d,), of length 1, from those of its 1 to 3 texts, shape (k, d)."""
    total = np.asarray(WEIGHTS[: len(vectors)], np.float32) @ vectors
    return np.asarray(total / max(float(np.linalg.norm(total)), 1e-12), np.float32)
