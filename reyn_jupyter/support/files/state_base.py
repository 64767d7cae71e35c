"""The user's state folder of this package."""

from __future__ import annotations

import os
from pathlib import Path


def state_base() -> Path:
    """Return the user's state folder; the environment variable REYN_STATE_DIR names another one."""
    import platformdirs

    return Path(os.environ.get("REYN_STATE_DIR") or platformdirs.user_state_dir("reyn-jupyter"))
