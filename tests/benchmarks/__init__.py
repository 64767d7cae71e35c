"""Speed figures, each printed beside a peer or a limit in the same run."""

from __future__ import annotations
