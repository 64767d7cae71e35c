"""Where work is done that can be sent away: in this process, in processes beside it, on other machines."""

from __future__ import annotations
