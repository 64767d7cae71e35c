"""The tables of a study's file, version by version.

Invariant: a migration that was released never changes; a new shape of the file is a new entry at the end of the
migrations of `FORMAT`.
"""

from __future__ import annotations

from reyn_jupyter.support.sqlite import FileFormat

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
# SHA-256 over all of the row and its events (see `store_rows.digest_of`).
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
