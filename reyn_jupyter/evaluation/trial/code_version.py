"""The version of the code that trials are pooled by.

Invariant: it moves with whatever the outcome of a trial depends on. That is everything below this room, and of this
room the folders of what is tried, of the trial itself and of the models that a study brings along, with the actions
that catalogs are filled up with; what runs, stores,
grades and shows trials is left out.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from reyn_jupyter.support.versions import versions

_ABOVE = (
    "evaluation",
    "notebook",
    "docs",
    "labextension",
    "static",
)  # and this room, but for the folders below
_FOLDERS = ("evaluation/plan", "evaluation/trial", "evaluation/models")
_DISTRACTORS = "evaluation/suites/data/bfcl/actions.jsonl.gz"


@cache
def code_version() -> str:
    """Return the package's version, with a hash over the source of everything that a trial's outcome depends on."""
    package = Path(__file__).parents[2]
    rooms = sorted(each.name for each in package.iterdir() if each.is_dir() and each.name not in _ABOVE)
    digest = hashlib.sha256()
    for name in (*rooms, *_FOLDERS):
        for path in sorted((package / name).rglob("*.py")):
            digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    digest.update((package / _DISTRACTORS).read_bytes())
    return f"{versions()['reyn-jupyter']}+{digest.hexdigest()[:12]}"
