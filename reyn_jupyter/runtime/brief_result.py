"""Results with a text of their own for whoever reads them in a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reyn_jupyter.catalog.size_budget import encoded_size
from reyn_jupyter.outputs.content import Stored, Structured
from reyn_jupyter.runtime.services import ToolContext


def in_brief(value: Mapping[str, Any], brief: str, context: ToolContext) -> object:
    """Return a result as it is where it is short, else stored, with a text that stands for it in the conversation.

    Args:
        value: JSON.
        brief: what a model reads of it, when it does not look closer.
        context: of the call.
    """
    if encoded_size(value) <= context.services.settings().outputs.inline_bytes:
        return value
    return Stored(brief, Structured(value))
