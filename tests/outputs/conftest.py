from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reyn_jupyter.outputs.blobs.file_store import FsBlobStore
from reyn_jupyter.outputs.blobs.in_memory_store import MemoryBlobStore

if TYPE_CHECKING:
    from pathlib import Path

    from reyn_jupyter.outputs.blobs.random_access import LocalBlobStore


@pytest.fixture(params=["files", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> LocalBlobStore:
    """Both stores: they have one face and must behave alike."""
    return FsBlobStore(tmp_path / "blobs") if request.param == "files" else MemoryBlobStore()


@pytest.fixture
def files(tmp_path: Path) -> FsBlobStore:
    return FsBlobStore(tmp_path / "blobs")
