"""The stored blob that a person names: by its id, by a part of it, or as the last one."""

from __future__ import annotations

from reyn_jupyter.outputs.blob import Blob, open_blob
from reyn_jupyter.outputs.blobs.ids import InvalidBlobIdError
from reyn_jupyter.outputs.blobs.random_access import is_local
from reyn_jupyter.outputs.content import BlobNotFoundError
from reyn_jupyter.sessions.assembly import Parts

SHORTEST = 4  # characters of a part of an id


class BlobNotNamedError(BlobNotFoundError):
    """No blob, or more than one, is meant."""

    def __init__(self, message: str, wanted: str, hint: str = "%reyn blobs lists what is stored.") -> None:
        super().__init__(wanted)
        self.args = (message,)
        self.hint = hint


def blob_named(parts: Parts, wanted: str) -> Blob:
    """Return the blob of an id or of a unique part of one, the newest for "last". Raises BlobNotFoundError."""
    store = parts.services.blobs
    said = str(wanted)[:60]
    if store is None or not is_local(store):
        raise BlobNotNamedError("this session has no store that could be looked through", said, "")
    part = str(wanted).strip().removeprefix("[").removesuffix("]").removeprefix("blob:").removeprefix("@")
    try:
        return open_blob(store, part)
    except (InvalidBlobIdError, BlobNotFoundError):
        infos = store.list()
    if part == "last" and infos:
        return Blob(infos[-1], store)
    found = [info for info in infos if len(part) >= SHORTEST and part.lower() in info.id]
    if len(found) == 1:
        return Blob(found[0], store)
    if found:
        raise BlobNotNamedError(f"{said!r} is in the ids of {len(found)} blobs; give more of it", said)
    last = ", ".join(f"…{info.id[-12:]}" for info in infos[-3:])
    there = f"the last ones: {last}" if last else "there is none yet"
    raise BlobNotNamedError(f"no blob has {said!r} in its id; {there}", said)
