"""The corpora of one workspace, by name.

Invariant: a name is one folder on every file system: lower case, no dot, no slash. One object stands for a corpus for
as long as the store does, so that what one call loaded the next one finds.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Hashable
from contextlib import suppress
from pathlib import Path

from reyn_jupyter.corpora.corpus import Corpus
from reyn_jupyter.corpora.corpus_file import NAME, CorpusError
from reyn_jupyter.support.files.plain_files import PlainFolder
from reyn_jupyter.support.text import did_you_mean, nearest_names

NAME_PATTERN = "^[a-z0-9]+(?:[_-][a-z0-9]+)*$"
NAME_LENGTH = 64
_NAME = re.compile(NAME_PATTERN)
_NAMED = 20  # corpora in a hint


class CorpusStore:
    """The corpora under `.reyn/state/corpora` of a workspace.

    Args:
        root: the workspace's folder, no link in its path.

    Example:
        >>> store = CorpusStore(Path("."))                     # doctest: +SKIP
        >>> store.names()                                      # doctest: +SKIP
        ['meetings']
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = PlainFolder(root, ".reyn", "state", "corpora")
        self._corpora: dict[str, Corpus] = {}
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """Return the names of the corpora that there are."""
        return [name for name in self._folders() if self._holds(name)]

    def revision(self) -> Hashable:
        """Return a value that moves whenever a corpus appears, changes or goes: two stats a corpus."""
        stamps = []
        for name in self._folders():
            for end in ("", "-wal"):
                with suppress(OSError):
                    status = os.lstat(self._folder.path / name / f"{NAME}{end}")
                    stamps.append((name, end, status.st_mtime_ns, status.st_size))
        return tuple(stamps)

    def get(self, name: str) -> Corpus:
        """Return a corpus that there is.

        Raises:
            CorpusError: there is none of this name, with the nearest ones; or it cannot be used.
        """
        corpus = self.of(name)
        if not corpus.exists:
            raise CorpusError(f"There is no corpus {name!r}.", self._known(name))
        return corpus

    def of(self, name: str) -> Corpus:
        """Return a corpus that there is or will be. Raises CorpusError for what is no name, or cannot be used."""
        if len(name) > NAME_LENGTH or not _NAME.fullmatch(name):
            raise CorpusError(
                f"{name[:80]!r} is no name of a corpus.",
                f"A name has 1 to {NAME_LENGTH} characters: lower-case letters and digits, with single - or _ between "
                "them, e.g. tax-law.",
            )
        with self._lock:
            corpus = self._corpora.get(name)
            if corpus is None:
                corpus = self._corpora[name] = Corpus(self._root, name)
        corpus.check()
        return corpus

    def drop(self, name: str) -> None:
        """Remove a corpus, one that cannot be read too. Raises CorpusError."""
        self.get(name).drop()
        with self._lock:
            self._corpora.pop(name, None)

    def _folders(self) -> list[str]:
        names = self._folder.entries()[1]
        return [name for name in names if len(name) <= NAME_LENGTH and _NAME.fullmatch(name)]

    def _holds(self, name: str) -> bool:
        return PlainFolder(self._root, ".reyn", "state", "corpora", name).is_regular(NAME)

    def _known(self, name: str) -> str:
        names = self.names()
        if not names:
            return "Nothing is indexed yet."
        near = nearest_names(name, names)
        if near:
            return did_you_mean(near)
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return f"There are: {', '.join(names[:_NAMED])}{more}."
