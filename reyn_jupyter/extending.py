"""Everything that a category of another package is written with, under one name.

    from reyn_jupyter.extending import Category, Effect, Operation, Purity, Tool, ToolContext

Each name is described where it is defined; the manual's page `extending` shows them in use.
"""

from __future__ import annotations

from reyn_jupyter.backends.files.file_changes import PlannedChange
from reyn_jupyter.catalog.action import (
    CalledAction,
    Category,
    Effect,
    EffectKind,
    Entry,
    Operation,
    PartialPreview,
    Purity,
    Resources,
    Tool,
)
from reyn_jupyter.catalog.arguments.reference_places import admit_references
from reyn_jupyter.catalog.call_limits import CallLimits
from reyn_jupyter.guard.diff import whole_diff
from reyn_jupyter.outputs.parts.content_parts import ContentPart, ContentParts
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.services import Services, ToolContext
from reyn_jupyter.support.programs.owned_program import OwnedProgram, OwnedPrograms
from reyn_jupyter.support.secret import Secret

__all__ = [
    "ActionError",
    "CallLimits",
    "CalledAction",
    "Category",
    "ContentPart",
    "ContentParts",
    "Effect",
    "EffectKind",
    "Entry",
    "Operation",
    "OwnedProgram",
    "OwnedPrograms",
    "PartialPreview",
    "PlannedChange",
    "Purity",
    "Resources",
    "Secret",
    "Services",
    "Tool",
    "ToolContext",
    "admit_references",
    "whole_diff",
]
