"""Write a file as a whole: it is new and complete, or what was there stays.

Invariant: the file that is written meanwhile is a new one of a name that nobody can foresee. A cloned folder can hold a
link of any name that can be foreseen.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacement(path: Path) -> Iterator[Path]:
    """Yield a new empty file beside `path`; at the end it takes the place of that, or of a link of that name.

    Raises:
        OSError: no file can be made there, or it cannot take that place.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp(), "a.txt")
    >>> with replacement(target) as part:
    ...     _ = part.write_text("whole")
    >>> target.read_text(), len(list(target.parent.iterdir()))
    ('whole', 1)
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    part.touch(exist_ok=False)
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
