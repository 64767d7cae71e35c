"""A call of one tool that a model is held to, by the form that its provider keeps to.

Invariant: a reply counts as forced only where the tool is in it; servers exist that leave out the form of a choice that
they cannot read, and answer. The forms are tried in a fixed order, each at most once a choice; the one that worked, or
that none did, is remembered for a model at its host.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from reyn_jupyter.catalog.arguments.preparation import prepare
from reyn_jupyter.models.base import Message, ModelError, Response, ToolCall, ToolSet
from reyn_jupyter.router.request.surface import Offer
from reyn_jupyter.runtime.record.events import ChoiceForm

Known = Literal["named", "alone", "schema", "free"]
FORMS: tuple[ChoiceForm, ...] = get_args(ChoiceForm)
_FORM_NUDGE = (
    "(Answer with one JSON object and nothing else: the arguments of {name}. What it does: {description}\n"
    "The object fits this JSON schema: {schema})"
)


@dataclass(frozen=True)
class Attempt:
    """What one request offers, and what it forces.

    Attributes:
        offer: the tools, with the codec of their names.
        choice: the request's `tool_choice`.
        form: how a call of `tool` is forced; None where the request forces none.
        parameters: what the request carries beside the model's own.
        nudge: a last message for this request alone.
        schema: of the tool's arguments, where an answer is read as its call.
    """

    offer: Offer
    choice: str = "auto"
    tool: str | None = None
    form: ChoiceForm | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    nudge: Message | None = None
    schema: Mapping[str, Any] = field(default_factory=dict)

    def is_refusal(self, error: ModelError) -> bool:
        """Return whether an error means that the provider does not take the form."""
        kinds = {"named": ("tool_choice",), "alone": ("tool_choice",)}
        return self.form is not None and error.kind in kinds.get(
            self.form, ("tool_choice", "bad_request", "unsupported")
        )

    def read(self, response: Response) -> Response:
        """Return a response in which an answer by the schema is the call that it stands for."""
        if self.form != "schema" or self.tool is None or response.tool_calls:
            return response
        try:
            given = json.loads(response.text)
        except (ValueError, RecursionError):
            return response
        if not isinstance(given, dict) or prepare(self.schema, given).invalid:
            return response
        call = ToolCall(f"call_{secrets.token_hex(8)}", self.tool, json.dumps(given, ensure_ascii=False))
        return replace(response, text="", tool_calls=(call,), finish_reason="tool_calls")


class ForcedChoice:
    """One choice that is forced, over as many requests as it takes.

    Args:
        tool: the function's name.
        known: what worked so far, by model; added to.
        model: the model and its host.
        first: the form to begin with, where it is known from elsewhere.

    Attributes:
        form: how the next request forces it.
        is_held: whether the model was seen to begin the call, and was cut off in it: then the provider keeps to the
            form, and the fault is the model's, or that of its output limit.

    Example:
        >>> choice = ForcedChoice("list_actions", {}, "openai/x at 127.0.0.1")
        >>> choice.form
        'named'
        >>> choice.missed(None)
        >>> choice.form
        'alone'
    """

    def __init__(self, tool: str, known: dict[str, Known], model: str, first: Known | None = None) -> None:
        self.tool = tool
        self._known, self._model = known, model
        self.form: Known = first or known.get(model, "named")
        self._cut = False  # whether a reply that was cut off is among those that missed
        self.is_held = False  # whether one of those was the beginning of the call

    def attempt(self, offer: Offer) -> Attempt:
        """Return the next request, over the tools that would be offered without the choice."""
        if self.form == "free":
            return Attempt(offer, tool=self.tool)
        if self.form == "named":
            return Attempt(offer, self.tool, self.tool, "named")
        function = _function(offer, self.tool)
        alone = replace(offer, tools=ToolSet(({"type": "function", "function": function},)))
        if self.form == "alone":
            return Attempt(alone, "required", self.tool, "alone")
        schema = function["parameters"]
        wanted = {"type": "json_schema", "json_schema": {"name": self.tool, "schema": schema}}
        said = _FORM_NUDGE.format(
            name=self.tool, description=function["description"], schema=json.dumps(schema, ensure_ascii=False)
        )
        none = replace(offer, tools=ToolSet())
        more = {"response_format": wanted}
        return Attempt(none, "auto", self.tool, "schema", more, Message("user", said), schema)

    def kept(self, response: Response) -> bool:
        """Note a response, and return whether the tool is in it, or was not forced."""
        if self.form == "free":
            return True
        if any(call.name == self.tool for call in response.tool_calls):
            self._known[self._model] = self.form
            return True
        self.missed(response)
        return False

    def missed(self, response: Response | None) -> None:
        """Go on to the next form; None where the provider refused this one."""
        if response is not None and response.finish_reason == "length":
            self._cut = True
            self.is_held = self.is_held or _begins_call(response.text, self.tool)
        later = FORMS[FORMS.index(self.form) + 1 :] if self.form != "free" else ()
        self.form = later[0] if later else "free"
        if self.form == "free" and not self._cut:
            self._known[self._model] = "free"


def _begins_call(text: str, tool: str) -> bool:
    """Return whether a text is the beginning of a call: the arguments alone, or what servers write around them.

    >>> _begins_call('<tool_call>\\n{"name": "list_actions", "arguments": {"category": ["file", "fi', "list_actions")
    True
    >>> _begins_call("I will call list_actions now.", "list_actions")
    False
    """
    start = text.lstrip()
    return start.startswith("{") or (start.startswith(("<", "[")) and tool in start[:200])


def _function(offer: Offer, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        each["function"] for each in offer.tools.specs if each["function"]["name"] == name
    )
    return found
