from __future__ import annotations

from hypothesis import settings

# How long an example takes depends on what else the machine does; speed is measured by the benchmarks.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
