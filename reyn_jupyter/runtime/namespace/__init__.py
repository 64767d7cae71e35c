"""The namespace of the notebook: functions that are actions, and variables that an agent may see."""

from __future__ import annotations
