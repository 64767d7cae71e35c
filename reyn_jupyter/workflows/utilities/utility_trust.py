"""Whether the user trusts the utilities of a workspace: each by itself, with all of its files.

Invariant: the record of trust is read once for a scan, so that a thousand utilities cost one look at it, and a change
of trust counts at the next scan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from reyn_jupyter.workflows.utilities.utility_files import trust_content

if TYPE_CHECKING:
    from reyn_jupyter.guard.trust import Trust
    from reyn_jupyter.workflows.utilities.manifest import Utility


def trusted_utilities(hashes: Mapping[str, str]) -> Callable[[str, str], bool]:
    """Return whether the person trusts a utility, by its trust name and digest, as `read_registry` asks for it.

    Args:
        hashes: what the person trusts, by name, see `Trust.hashes`.
    """
    return lambda name, digest: bool(digest) and hashes.get(name) == digest


def trust_utility(trust: Trust, utility: Utility) -> str:
    """Trust a utility of a workspace as it was found, and return its digest.

    Args:
        trust: the record.
        utility: as the registry, or the scaffolder, gave it.

    Raises:
        ValueError: it needs no trust.
        StateError: the trust cannot be kept.
    """
    if not utility.trust_name:
        raise ValueError(f"{utility.id} needs no trust: it is no utility of the workspace's.")
    return trust.trust(trust_content(utility.files), utility.trust_name)
