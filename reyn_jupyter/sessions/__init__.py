"""One workspace's session: put together in `assembly`, awaited in `async_session`, for ordinary code in `session`."""

from __future__ import annotations
