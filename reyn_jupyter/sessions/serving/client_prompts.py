"""The prompts that an MCP client offers its user.

Invariant: arguments are checked before a prompt is made; an error names the argument and what to give instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reyn_jupyter.support.text import did_you_mean, nearest, shorten

if TYPE_CHECKING:
    from mcp_types import GetPromptResult, Prompt

_LONGEST = 2_000  # characters of an argument


class InvalidPromptError(Exception):
    """A prompt does not exist, or an argument of it is wrong; the message says what to do."""


@dataclass(frozen=True)
class _Template:
    """One prompt: a sentence about it, its arguments (all required), and its text."""

    description: str
    arguments: Mapping[str, str]
    text: str


_TEMPLATES = {
    "do": _Template(
        "Do a task with the actions of the notebook's session.",
        {"task": "What to do, in a sentence."},
        "Do this with the actions of my notebook's session: {task}\n\nFind the action with search_actions, one "
        "capability at a time, and run it with invoke_action. If nothing fits, say so. If a call is denied, go on "
        "without it and say so.",
    ),
    "explore_variable": _Template(
        "Describe a variable of the notebook, and what could be asked of it.",
        {"name": "The variable's name."},
        "Describe the variable {name} of my notebook: call invoke_action with action_name variable__{name} and args "
        "{{}}. Say what it holds, what is unusual in it, and suggest three questions that it can answer.",
    ),
    "overview": _Template(
        "Say what the notebook's session holds and can do.",
        {},
        "Give me an overview of my notebook's session: list its resources and, with list_actions, its categories of "
        "actions. Say in a few sentences what data there is and what can be done with it.",
    ),
}


def listed_prompts() -> list[Prompt]:
    """Return what `prompts/list` gives."""
    from mcp_types import Prompt, PromptArgument

    return [
        Prompt(
            name=name,
            description=template.description,
            arguments=[
                PromptArgument(name=each, description=what, required=True)
                for each, what in template.arguments.items()
            ],
        )
        for name, template in _TEMPLATES.items()
    ]


def filled_prompt(name: str, arguments: Mapping[str, str], variables: Sequence[str]) -> GetPromptResult:
    """Return one prompt with its arguments filled in.

    Args:
        name: the prompt.
        arguments: the values of its arguments.
        variables: the names of the variables that a client may see.

    Raises:
        InvalidPromptError: the prompt does not exist, or an argument is missing, unknown, empty, or wrong.
    """
    from mcp_types import GetPromptResult, PromptMessage, TextContent

    template = _TEMPLATES.get(name)
    if template is None:
        raise InvalidPromptError(f"There is no prompt {shorten(name, 60)!r}: use {', '.join(_TEMPLATES)}.")
    if unknown := [each for each in arguments if each not in template.arguments]:
        names = ", ".join(template.arguments) or "none"
        raise InvalidPromptError(
            f"The prompt {name} has no argument {shorten(unknown[0], 60)!r}. Its arguments: {names}."
        )
    for each, what in template.arguments.items():
        value = arguments.get(each, "")
        if not value.strip():
            raise InvalidPromptError(f"The prompt {name} needs the argument {each}: {what}")
        if len(value) > _LONGEST:
            raise InvalidPromptError(
                f"The argument {each} has more than {_LONGEST:,} characters: shorten it."
            )
    if name == "explore_variable" and arguments["name"] not in variables:
        wanted = arguments["name"]
        near = nearest(wanted, variables)
        hint = did_you_mean([near]) if near else "The list of resources names the variables."
        raise InvalidPromptError(f"No variable {shorten(wanted, 60)!r} can be read here. {hint}")
    message = PromptMessage(role="user", content=TextContent(text=template.text.format(**arguments)))
    return GetPromptResult(description=template.description, messages=[message])
