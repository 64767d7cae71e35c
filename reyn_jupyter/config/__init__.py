"""The configuration: typed `Settings`, and `load`, which merges the layers and keeps the origin of each value.

>>> effective = load("/nowhere")
>>> effective.with_value("router.limits.max_steps", "12").settings.router.limits.max_steps
12
"""

from __future__ import annotations

from reyn_jupyter.config.config_error import ConfigError
from reyn_jupyter.config.effective import Effective
from reyn_jupyter.config.key_table import KeyInfo, all_keys
from reyn_jupyter.config.layers import PROJECT_FILE, load, user_path
from reyn_jupyter.config.patterns import ActionPattern, PatternError
from reyn_jupyter.config.settings import (
    ActionRetrieval,
    Embedding,
    EmbeddingClass,
    Limits,
    ModelEntry,
    Models,
    Outputs,
    Permissions,
    Router,
    SandboxSettings,
    Settings,
)
from reyn_jupyter.config.trust_limits import HeldBack

__all__ = [
    "PROJECT_FILE",
    "ActionPattern",
    "ActionRetrieval",
    "ConfigError",
    "Effective",
    "Embedding",
    "EmbeddingClass",
    "HeldBack",
    "KeyInfo",
    "Limits",
    "ModelEntry",
    "Models",
    "Outputs",
    "PatternError",
    "Permissions",
    "Router",
    "SandboxSettings",
    "Settings",
    "all_keys",
    "load",
    "user_path",
]
