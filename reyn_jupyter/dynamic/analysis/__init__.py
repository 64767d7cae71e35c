"""What the code of a tool does, read before it runs: findings with their severity, scores, and how well it is made."""

from __future__ import annotations
