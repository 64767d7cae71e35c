"""What a session gives its categories beside files and actions, see `runtime.access.session_access`."""

from __future__ import annotations
