"""Identify a model, and find where it lies on this machine.

Invariant: vectors of one key come from one content. A model that was saved again, in its own folder too, has another
key; nothing is loaded or downloaded to tell. A plain name is never a path, so no folder of a workspace takes a model's
place. The packaged all-MiniLM-L6-v2 has one key, since no file of it may differ (see `packaged.verify_model`). In the
cache of Hugging Face the commit names the content. A folder has no such name: there it is the names, sizes and times of
its files, and samples of them all over, since time alone stands still where images are built reproducibly, and the two
ends of the weights where only layers were trained.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from reyn_jupyter.search.embedders.embedder import LOCAL, MINI
from reyn_jupyter.search.embedders.packaged import KEY, weights_folder
from reyn_jupyter.support.installed_places import untrusted_folder

UNKNOWN = "unknown"
_SHORT = MINI.removeprefix(LOCAL)
_COMMIT = re.compile("[0-9a-f]{40}")
_MARKS = ("modules.json", "config.json")  # a folder without either holds no model
_MOST = 500  # files of a model; a folder with more holds none
_SAMPLES, _SAMPLE = 64, 16_384  # of a file: 1 MiB in all; a smaller one is read whole


def is_mini(model: str) -> bool:
    """Return whether this is the model whose weights may be packaged."""
    return model in (MINI, _SHORT)


def hub_name(model: str) -> str:
    """Return a model's name at Hugging Face.

    >>> hub_name("all-mpnet-base-v2"), hub_name("sentence-transformers/BAAI/bge-small-en-v1.5")
    ('sentence-transformers/all-mpnet-base-v2', 'BAAI/bge-small-en-v1.5')
    """
    name = model.removeprefix(LOCAL)
    return name if "/" in name else f"{LOCAL}{name}"


def given_path(model: str) -> Path | None:
    """Return the absolute path that a model string names explicitly, or None for a name.

    A path is absolute or starts with `./` or `~`; anything else is a name, also if a folder is called like it.

    >>> given_path("sentence-transformers/all-mpnet-base-v2"), given_path("sentence-transformers//models/mine")
    (None, PosixPath('/models/mine'))
    """
    name = model.removeprefix(LOCAL)
    if not name.startswith(("/", "./", "~")):
        return None
    return Path(os.path.expanduser(name)).absolute()  # noqa: PTH111 - a user that does not exist is no error


def untrusted_model(model: str) -> str | None:
    """Return the untrusted folder that a model lies in, or None. Nothing is loaded from there."""
    folder = folder_of(model)
    return None if folder is None else untrusted_folder(folder)


def folder_of(model: str) -> Path | None:
    """Return a model's own folder, or that of its newest commit in the cache; None where there is none.

    Args:
        model: a name, or a path, each with `sentence-transformers/` before it or without.
    """
    given = given_path(model)
    if given is not None:
        return given if given.is_dir() else None
    from huggingface_hub import try_to_load_from_cache

    try:
        found = [try_to_load_from_cache(hub_name(model), mark) for mark in _MARKS]
    except (OSError, ValueError):  # no name that a model there could have
        return None
    return next((Path(each).parent.absolute() for each in found if isinstance(each, str)), None)


def is_on_this_machine(model: str) -> bool:
    """Return whether a model lies in its folder or in the cache, as far as that shows without loading it."""
    folder = folder_of(model)
    return (
        folder is not None and untrusted_folder(folder) is None and not key_of(model).endswith(f"@{UNKNOWN}")
    )


def key_of(model: str) -> str:
    """Return the key of a model's vectors. Takes some milliseconds at first, then a look at the folder.

    >>> key_of("all-MiniLM-L6-v2") == key_of("sentence-transformers/all-MiniLM-L6-v2")
    True
    """
    if is_mini(model) and weights_folder() is not None:
        return KEY
    folder = folder_of(model)
    if folder is None:
        return f"{model}@{UNKNOWN}"
    if folder.parent.name == "snapshots" and _COMMIT.fullmatch(folder.name):
        return f"{model}@{folder.name[:16]}"
    return f"{model}@{_content(folder)}"


def _content(folder: Path) -> str:
    if not any((folder / mark).is_file() for mark in _MARKS):
        return UNKNOWN
    files = []
    try:
        for file in islice(_files(folder), _MOST + 1):
            stat = file.stat()
            files.append((str(file), str(file.relative_to(folder)), stat.st_size, stat.st_mtime_ns))
        return _digest(tuple(sorted(files))) if len(files) <= _MOST else UNKNOWN
    except OSError:  # it is being saved just now
        return UNKNOWN


def _files(folder: Path) -> Iterator[Path]:
    """Yield the regular files of a model at every depth, but no hidden ones."""
    for place, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if name[0] != "."]
        yield from (file for name in names if name[0] != "." and (file := Path(place, name)).is_file())


@functools.lru_cache(maxsize=8)
def _digest(files: tuple[tuple[str, str, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for path, name, size, changed in files:
        digest.update(f"{name}\0{size}\0{changed}\0".encode("utf-8", "surrogateescape"))
        with Path(path).open("rb") as stream:
            if size <= _SAMPLES * _SAMPLE:
                digest.update(stream.read(size))
                continue
            for sample in range(_SAMPLES):
                stream.seek((size - _SAMPLE) * sample // (_SAMPLES - 1))
                digest.update(stream.read(_SAMPLE))
    return digest.hexdigest()[:16]
