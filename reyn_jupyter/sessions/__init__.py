"""One workspace's session: wired in `wiring`, awaited in `aio`, for ordinary code in `face`."""

from __future__ import annotations
