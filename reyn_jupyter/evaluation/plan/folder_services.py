"""Services over one folder, enough to make the categories of a catalog and to run them.

Invariant: they reach no notebook: there are no variables, no functions, and no thread of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from reyn_jupyter.config import Settings
from reyn_jupyter.guard.workspace import Workspace
from reyn_jupyter.runtime.access.session_access import NoAccess, SecretAccess
from reyn_jupyter.runtime.access.session_tasks import SessionTasks
from reyn_jupyter.runtime.services import Services, Spawn
from reyn_jupyter.support.programs.child_process import ChildProcesses
from reyn_jupyter.support.programs.owned_program import OwnedPrograms
from reyn_jupyter.support.secrets import Redactor

if TYPE_CHECKING:
    from reyn_jupyter.outputs.blobs.in_memory_store import MemoryBlobStore
    from reyn_jupyter.search.action_index import ActionEmbeddingIndex

T = TypeVar("T")
_NOTHING = NoAccess("a trial has its own model alone, and no history")


def _nobody_looks(category: str) -> None:
    """Hear that the entries of a category moved, where no front end and no request waits for them."""


def services_in(
    workspace: Workspace,
    settings: Callable[[], Settings] = Settings,
    redactor: Redactor | None = None,
    blobs: MemoryBlobStore | None = None,
    search: ActionEmbeddingIndex | None = None,
    children: ChildProcesses | None = None,
    spawn: Spawn | None = None,
    programs: OwnedPrograms | None = None,
    secrets: SecretAccess | None = None,
    own_folder: Path | None = None,
    changed: Callable[[str], None] = _nobody_looks,
) -> Services:
    """Services over one folder, without a notebook: no variables, no functions, no thread of its own."""
    return Services(
        root=workspace.root,
        workspace=workspace,
        namespace=dict,
        functions=dict,
        settings=settings,
        blobs=blobs,
        redactor=redactor or Redactor({}),
        main_thread=_here,
        search=search,
        children=children or ChildProcesses(),
        spawn=spawn or SessionTasks().spawn,
        programs=programs or OwnedPrograms(),
        secrets=secrets or _NOTHING,
        models=_NOTHING,
        embedder=_NOTHING,
        runs=_NOTHING,
        trust=_NOTHING,
        own_folder=own_folder,
        changed=changed,
    )


async def _here(function: Callable[[], T], /) -> T:
    return function()
