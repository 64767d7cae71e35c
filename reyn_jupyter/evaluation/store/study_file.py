"""Open a study's file, and bring it to the present format.

Invariants: a file of another program, of a newer version, with other tables, views or triggers, or that is no database
is refused before anything in it is touched; what an older version stored is read with the defaults of the fields that
were added since, and is never written anew. A file of ours is in write-ahead mode with `synchronous = NORMAL`: a
transaction that committed outlives a `kill -9`; after a power cut the last ones may be gone, whole ones each. A
migration that was released never changes; a new shape of the file is a new entry at the end of the migrations of
`FORMAT`.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from reyn_jupyter.evaluation.trial.code_version import code_version
from reyn_jupyter.support.files.sqlite import (
    FileFormat,
    ForeignFileError,
    NewerFileError,
    connect,
    has_layout,
    prepare,
    version_of,
)
from reyn_jupyter.support.user_errors import UserError

_ALTERED = (
    "{} says that it is a study, and has other tables, views or triggers than one. Nothing was changed; give another "
    "path."
)
_FOREIGN = "{} is a database of another program. Nothing was changed; give another path."
_MAGIC = b"SQLite format 3\x00"
_PATIENCE = 30.0  # seconds that a writer waits for another one


# Errors that reading a damaged or hostile row can raise.
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


class StoreError(UserError):
    """The study's file cannot serve. The message says why, and what to do."""


class DiskFullError(StoreError):
    """There is no room for another trial; everything that was stored before stays."""


def open_database(path: Path | None, *, read_only: bool = False) -> sqlite3.Connection:
    """Return a connection to a study's file, made when it is not there; None keeps it in memory.

    Raises:
        StoreError: the file is not a study's, is newer than this version, or cannot be opened.
    """
    if path is None:
        return _prepare(connect(None, _PATIENCE))
    if read_only and not path.is_file():
        raise StoreError(
            f"There is no study {path}; look at the path, or make one: Study({path.name!r}, suite=…)"
        )
    try:
        _refuse_foreign(path)
        return _read_only(path) if read_only else _prepare(connect(path, _PATIENCE), path)
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error.strerror or error}.") from error
    except sqlite3.DatabaseError as error:
        raise StoreError(f"{path} cannot be opened: {error}. {_advice(str(error))}") from error


def _refuse_foreign(path: Path) -> None:
    """Read the header as plain bytes, so that even opening leaves no mark. Raises StoreError."""
    if not path.parent.is_dir():
        raise StoreError(f"There is no folder {path.parent}; make it first.")
    if not path.exists():
        return
    if not path.is_file():
        raise StoreError(f"{path} is no file; give the study a path of its own.")
    with path.open("rb") as file:
        header = file.read(100)
    if not header:
        return
    if not header.startswith(_MAGIC):
        raise StoreError(f"{path} is no study: it is not a database. Nothing was changed; give another path.")
    owner = struct.unpack_from(">I", header, 68)[0] if len(header) == 100 else 0
    unfinished = (
        owner == 0 and path.with_name(f"{path.name}-journal").exists()
    )  # killed while it was being made
    if owner != FORMAT.program and not unfinished:
        raise StoreError(_FOREIGN.format(path))


def _prepare(db: sqlite3.Connection, path: Path | None = None) -> sqlite3.Connection:
    try:
        with _refused_as_store_error(path):
            if version_of(db, FORMAT) == FORMAT.version:
                _need_layout(db, path)
            prepare(db, FORMAT, _PATIENCE)
    except BaseException:
        db.close()
        raise
    return db


def _read_only(path: Path) -> sqlite3.Connection:
    """Return a connection that cannot write. Where the log beside the file cannot be made, the file is read as it
    stands."""
    writable = os.access(path.parent, os.W_OK) or path.with_name(f"{path.name}-shm").exists()
    mode = "mode=ro" if writable else "immutable=1"
    db = connect(path, _PATIENCE, query=mode)
    try:
        with _refused_as_store_error(path):
            version = version_of(db, FORMAT)
        if version < FORMAT.version:
            raise StoreError(
                f"{path} is of an older version; open it once with Study({path.name!r}, suite=…)."
            )
        _need_layout(db, path)
    except BaseException:
        db.close()
        raise
    return db


def _need_layout(db: sqlite3.Connection, path: Path | None) -> None:
    """Refuse a file in which reading never ends, or a write does more than it says. Raises StoreError."""
    if not has_layout(db, FORMAT):
        raise StoreError(_ALTERED.format(path))


@contextmanager
def _refused_as_store_error(path: Path | None) -> Iterator[None]:
    try:
        yield
    except ForeignFileError:
        raise StoreError(_FOREIGN.format(path)) from None
    except NewerFileError as error:
        raise StoreError(
            f"{path} was written by a newer reyn-jupyter (format {error.version}; this one reads "
            f"{FORMAT.version}). Nothing was changed; update reyn-jupyter to open it."
        ) from None


def other_version(path: Path | None, what: str, error: Exception, code: str) -> StoreError:
    """Return what to say of a row that is whole, and still does not fit what this version reads.

    Args:
        path: of the study.
        what: a scenario, a variant, a trial, by its name.
        error: why it does not fit.
        code: the version of the code of the file's last run.
    """
    said = getattr(error, "problems", None) or [str(error)]
    if isinstance(error, ValidationError):
        said = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
    return StoreError(
        f"{path or 'The study'}: {what} is not damaged, but of another version of reyn-jupyter ({said[0]:.200}). The "
        f"file was last written by {code}, and this is {code_version()}. Nothing was changed: open it with the "
        "version that wrote it, or with a newer one (pip install --upgrade reyn-jupyter)."
    )


def failure(error: sqlite3.Error, path: Path | None) -> StoreError:
    """Return what went wrong while a study's file was used, in plain words."""
    said = str(error).rstrip(".")
    where = path if path is not None else "The study in memory"
    if "full" in said or "disk I/O" in said:
        return DiskFullError(f"{where} could not be written: {said}. {_advice(said)}")
    return StoreError(f"{where}: {said}. {_advice(said)}")


def _advice(said: str) -> str:
    if "full" in said or "disk I/O" in said:
        return "Make room on the disk and run the study again: what is stored is not run again."
    if "readonly" in said:
        return "A study is written where file and folder can be, opened with its suite: Study(path, suite=…)."
    if "unable to open" in said:
        return (
            "Its folder must be one that can be written to; Study.open(path) reads a study where it cannot."
        )
    if "locked" in said:
        return "Another process writes to it; try again."
    if "malformed" in said or "not a database" in said:
        return "The file is damaged; restore it from a copy, or export what can be read."
    if "closed database" in said:
        return "The study was closed; open it again."
    return "Look at the file and its folder."


# One row an invocation of `study.run`, its provenance in `data`; `digest` is over that and the id.
_RUNS = """CREATE TABLE runs (
    id TEXT PRIMARY KEY, began REAL NOT NULL, ended REAL, data TEXT NOT NULL, digest BLOB NOT NULL)"""
# A scenario that was edited is another row under the same id; `run` is the last invocation that knew it.
_SCENARIOS = """CREATE TABLE scenarios (
    digest TEXT PRIMARY KEY, id TEXT NOT NULL, family TEXT NOT NULL, position INTEGER NOT NULL,
    run TEXT NOT NULL REFERENCES runs (id), data TEXT NOT NULL)"""
_VARIANTS = """CREATE TABLE variants (
    name TEXT PRIMARY KEY, behaviour TEXT NOT NULL, data TEXT NOT NULL)"""
# `behaviour` is the digest of the variant without its name: variants that behave alike share their trials.
# A trial that is made again (after an error, or on other ground) is another attempt; no row ever changes. `digest` is
# SHA-256 over all of the row and its events (see `rows.digest_of`).
_TRIALS = """CREATE TABLE trials (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, source TEXT NOT NULL, ground TEXT NOT NULL, attempt INTEGER NOT NULL,
    run TEXT NOT NULL REFERENCES runs (id), scenario TEXT NOT NULL REFERENCES scenarios (digest),
    behaviour TEXT NOT NULL, repeat INTEGER NOT NULL, code TEXT NOT NULL, outcome TEXT NOT NULL,
    calls INTEGER NOT NULL, tokens INTEGER NOT NULL, cost REAL, seconds REAL NOT NULL,
    events INTEGER NOT NULL, data TEXT NOT NULL, digest BLOB NOT NULL, UNIQUE (key, source, ground, attempt))"""
_EVENTS = """CREATE TABLE events (
    trial INTEGER NOT NULL REFERENCES trials (id), position INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (trial, position)) WITHOUT ROWID"""
# Each distinct body once, found by its SHA-256; events refer to it.
_MESSAGES = "CREATE TABLE messages (digest BLOB NOT NULL UNIQUE, body BLOB NOT NULL)"
_VERDICTS = """CREATE TABLE verdicts (
    trial INTEGER NOT NULL REFERENCES trials (id), "check" TEXT NOT NULL, version INTEGER NOT NULL, kind TEXT NOT NULL,
    value REAL, reason TEXT NOT NULL, evidence TEXT NOT NULL, PRIMARY KEY ("check", trial)) WITHOUT ROWID"""

FORMAT = FileFormat(
    0x52E7A1D1,
    ((_RUNS, _SCENARIOS, _VARIANTS, _TRIALS, _EVENTS, _MESSAGES, _VERDICTS),),
)
