"""What the live views ask the kernel for: one protocol, one handler, whoever carries the messages."""

from __future__ import annotations
