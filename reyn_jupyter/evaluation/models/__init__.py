"""Models that a study brings along: baselines, the simulator, and a fake provider over HTTP."""

from __future__ import annotations
