"""Removing blobs on the person's word.

Invariant: nothing goes unasked. Without a limit only the blobs of runs that are gone go, whatever else is given.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Sequence

from reyn_jupyter.outputs.blobs.manifest import BlobInfo, collectable
from reyn_jupyter.outputs.blobs.random_access import LocalBlobStore, is_local
from reyn_jupyter.sessions.assembly import Parts
from reyn_jupyter.sessions.result_objects import Card

_DAY = 86_400.0  # seconds
_MOMENT = 0.001  # seconds, so that the youngest is old enough


def collect(
    parts: Parts, max_age_days: float | None, max_bytes: int | None, keep: Collection[str] | None
) -> Card:
    """Remove blobs; see `Session.collect_blobs`. Raises ValueError."""
    _check(max_age_days, max_bytes, keep)
    store = parts.services.blobs
    if store is None:
        return Card("blobs", "This session keeps no blobs", (("removed", "nothing"),))
    if not is_local(store):
        return Card(
            "blobs", f"{type(store).__name__} cannot be collected from here", (("removed", "nothing"),)
        )
    # The runs after the blobs: one that begins in another kernel meanwhile has no blob among these.
    infos = store.list()
    unlimited = max_age_days is None and max_bytes is None
    kept = set(keep or ())
    if keep is None or unlimited:
        kept |= {*parts.runs.ids(), *parts.runs.inner_ids()}
    goners = collectable(
        infos,
        max_age=-math.inf if unlimited else None if max_age_days is None else max_age_days * _DAY,
        max_bytes=max_bytes,
        keep=lambda info: info.run in kept or info.id in kept or (info.run is None and unlimited),
    )
    removed = frozenset(_remove(store, infos, goners))
    gone = [info for info in infos if info.id in removed]
    left = [info for info in infos if info.id not in removed]
    facts = (("removed", _amount(gone)), ("kept", _amount(left)))
    data = {"blobs": [info.id for info in gone], "bytes": sum(info.size for info in gone)}
    title = "Blobs collected" if gone else "Nothing to collect"
    return Card("blobs", title, facts, (), ("%reyn blobs",), data)


def _remove(store: LocalBlobStore, infos: Iterable[BlobInfo], goners: Sequence[BlobInfo]) -> Sequence[str]:
    if not goners:
        return store.gc().removed
    # The store lists anew: as old as the youngest that goes, so that what came meanwhile stays.
    age = time.time() - max(info.created for info in goners) - _MOMENT
    chosen = {info.id for info in goners}
    return store.gc(max_age=age, keep={info.id for info in infos} - chosen).removed


def _check(max_age_days: object, max_bytes: object, keep: object) -> None:
    for name, value in (("max_age_days", max_age_days), ("max_bytes", max_bytes)):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (number and 0 <= value < math.inf):  # type: ignore[operator]
            raise ValueError(f"{name} is a number from 0 on, not {value!r}")
    if isinstance(keep, str):
        raise ValueError(f"keep is a list of run or blob ids; for one: keep=[{keep!r}]")


def _amount(infos: Sequence[BlobInfo]) -> str:
    blobs = "1 blob" if len(infos) == 1 else f"{len(infos):,} blobs"
    return f"{blobs}, {sum(info.size for info in infos):,} bytes"
