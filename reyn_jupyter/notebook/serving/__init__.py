"""The requests of the live views to the kernel: one protocol, one handler, whoever carries the messages."""

from __future__ import annotations
