"""Whether a person trusts the utilities of a workspace: each by itself, with all of its files, and what changed since.

Invariant: the record of trust is read once for a scan, so that a thousand utilities cost one look at it, and a change
of trust counts at the next scan. What is kept beside it, the files of what was trusted, only tells people what changed:
whether a utility is trusted is decided by the record of trust alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from reyn_jupyter.guard.state_folder import StateError
from reyn_jupyter.workflows.utilities.utility_files import changed_files, trust_content

if TYPE_CHECKING:
    from reyn_jupyter.guard.state_folder import StateFolder
    from reyn_jupyter.guard.trust import Trust
    from reyn_jupyter.workflows.utilities.manifest import Utility

FILE = "utilities.json"
_MOST_FILES = 200  # of a utility whose files are kept for what changed
_MOST_UTILITIES = 200


def trusted_utilities(hashes: Mapping[str, str]) -> Callable[[str, str], bool]:
    """Return whether the person trusts a utility, by its trust name and digest, as `read_registry` asks for it.

    Args:
        hashes: what the person trusts, by name, see `Trust.hashes`.
    """
    return lambda name, digest: bool(digest) and hashes.get(name) == digest


def trust_utility(trust: Trust, folder: StateFolder, utility: Utility) -> str:
    """Trust a utility of a workspace as it was found, and return its digest.

    Args:
        trust: the record.
        folder: of the workspace's state, which keeps what the files were.
        utility: as the registry, or the scaffolder, gave it.

    Raises:
        ValueError: it needs no trust.
        StateError: the trust cannot be kept.
    """
    if not utility.trust_name:
        raise ValueError(f"{utility.id} needs no trust: it is no utility of the workspace's.")
    digest = trust.trust(trust_content(utility.files), utility.trust_name)
    with suppress(StateError):  # then nobody is told what changed, and trust is as sound
        folder.change(FILE, lambda value: _with(value, utility))
    return digest


def changes_since_trust(folder: StateFolder, utility: Utility) -> tuple[str, ...]:
    """Return what changed in a utility since it was trusted; nothing where it never was, or it cannot be told.

    Example:
        >>> changes_since_trust(folder, utility)  # doctest: +SKIP
        ('tool.yaml has changed',)
    """
    try:
        kept = _kept(folder.read(FILE)).get(utility.trust_name)
    except ValueError:
        return ()
    return () if kept is None else changed_files(kept, utility.files)


def _kept(value: Any) -> dict[str, Mapping[str, str]]:
    kept = value.get("utilities") if isinstance(value, dict) else None
    return {
        name: files
        for name, files in (kept if isinstance(kept, dict) else {}).items()
        if isinstance(files, dict) and all(isinstance(each, str) for each in files.values())
    }


def _with(value: Any, utility: Utility) -> dict[str, Any]:
    kept = {name: files for name, files in _kept(value).items() if name != utility.trust_name}
    if len(utility.files) <= _MOST_FILES:
        kept[utility.trust_name] = dict(utility.files)
    return {"version": 1, "utilities": dict(list(kept.items())[-_MOST_UTILITIES:])}
