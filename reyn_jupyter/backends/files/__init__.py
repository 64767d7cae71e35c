"""Files of the workspace: read, searched, listed and changed so that it can be undone."""

from __future__ import annotations
