"""Whether a task calls for a tool: what was repeated, what failed, what the task is of.

Invariant: it is decided from what it is given alone, in the order of the specification, and the four ways that it can
end (a tool, because of calls or words; an improvement; carry on) are told apart in the result. Source: dynamic tool
generation, API reference (tool_reflection).
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from reyn_jupyter.catalog.names import SEPARATOR, WRAPPERS
from reyn_jupyter.dynamic.definition import check_name
from reyn_jupyter.dynamic.task_words import error_in, is_general, steps_in, subject_of
from reyn_jupyter.dynamic.tool_error import DynamicToolError
from reyn_jupyter.dynamic.tool_parameters import read_parameters
from reyn_jupyter.support.text import enumerate_words, shorten

Outcome = Literal["recommend_tool", "suggest_improvement", "continue_directly"]
Reason = Literal["repetition", "failures", "task_word", "chain", "error_pattern", "none"]
Call = tuple[str, Mapping[str, Any], bool]  # the action's qualified name, its arguments, whether it went well

REPEATED = 2  # calls of one shape that are a repetition
FAILURES = 3
CHAIN = 3  # different actions, or steps that a task names
_LONGEST_TASK = 100  # characters of it in the text
_LONGEST_DEFAULT = 200  # characters of JSON
_DEEPEST = 4
_MOST_CALLS = 500  # of the conversation, from its end
_KEYWORDS = frozenset((*keyword.kwlist, "params", "execute"))
_NO_OPERATIONS = ("dynamic_tool", "dynamic_tool_operation")  # categories: what they call is a tool already
_FILLERS = frozenset({
    "a", "all", "an", "and", "any", "are", "as", "at", "be", "by", "each", "every", "for", "from", "in", "into", "is",
    "it", "its", "my", "of", "on", "or", "our", "please", "several", "some", "that", "the", "their", "them", "then",
    "these", "this", "those", "to", "with", "your",
})  # fmt: skip


@dataclass(frozen=True)
class Reflection:
    """What was found.

    Attributes:
        task: as it was described.
        outcome: what to do. `reason`: which condition led there.
        explanation: that in a sentence.
        reusable: whether the work can come again, so that a tool may pay later.
        failed_attempts: as told, or the calls that failed at the end, whichever is more.
        skeleton: the arguments with which `create_tool` makes the beginning of a tool, where one is recommended.
    """

    task: str
    outcome: Outcome
    reason: Reason
    explanation: str
    reusable: bool
    failed_attempts: int
    skeleton: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as a JSON object, with its `text`."""
        return {**asdict(self), "text": self.to_text()}

    def to_text(self) -> str:
        """Return it for a reader."""
        lines = [
            "# Tool reflection",
            "",
            "## Task analysis",
            f"- Description: {' '.join(self.task.split())[:_LONGEST_TASK]}...",
            f"- Failed attempts: {self.failed_attempts}",
            "",
        ]
        if self.outcome == "recommend_tool":
            lines += ["## Recommendation: make a tool", f"- Reason: {self.explanation}", ""]
            fields = ",\n".join(f"  {name}: {_shown(value)}" for name, value in (self.skeleton or {}).items())
            lines += ["## Next step", "Make the tool with this call:", f"create_tool({{\n{fields}\n}})"]
        else:
            improve = self.outcome == "suggest_improvement"
            lines += [
                f"## Recommendation: {'improve the way it is done' if improve else 'carry on directly'}",
                f"- Reason: {self.explanation}",
                f"- Reusable: {'yes' if self.reusable else 'no'}",
            ]
        return "\n".join(lines)


def reflect(
    task_description: str, last_tool_result: str, failed_attempts: int = 0, calls: Sequence[Call] = ()
) -> Reflection:
    """Return whether a task calls for a tool.

    Args:
        task_description: the task.
        last_tool_result: what the last call gave, as text.
        failed_attempts: how many attempts failed.
        calls: the conversation's earlier calls, in order. Calls of wrappers and of tools made at run time are no
            operations that a tool could take over.

    >>> reflect("write a poem", "done", 3).reason, reflect("write a poem", "done", 2).outcome
    ('failures', 'continue_directly')
    """
    operations = [call for call in calls if _is_operation(call[0])][-_MOST_CALLS:]
    failures = max(failed_attempts, _failures_at_the_end(operations))
    repeated = _most_repeated(operations)
    for_a_tool = _why_a_tool(task_description, failures, repeated)
    better = None if for_a_tool else _why_better(task_description, last_tool_result, operations)
    general = is_general(task_description) or any(ok and given for _, given, ok in operations)
    outcome: Outcome = (
        "recommend_tool" if for_a_tool else "suggest_improvement" if better else "continue_directly"
    )
    reason, explanation = for_a_tool or better or ("none", "the conditions for making a tool are not met")
    return Reflection(
        task=task_description,
        outcome=outcome,
        reason=reason,
        explanation=explanation,
        reusable=for_a_tool is not None or general,
        failed_attempts=failures,
        skeleton=_skeleton(task_description, repeated) if for_a_tool else None,
    )


def _why_a_tool(task: str, failures: int, repeated: Sequence[Call]) -> tuple[Reason, str] | None:
    """Return why a tool is recommended, or None."""
    if len(repeated) >= REPEATED:
        names = enumerate_words(sorted(map(str, repeated[0][1])))
        with_what = f"the same kind of arguments ({shorten(names, 100)})" if names else "no arguments"
        return "repetition", f"{repeated[0][0]} was called {len(repeated)} times with {with_what}"
    if failures >= FAILURES:
        return "failures", f"{failures} attempts failed; a tool keeps the way that works, once it is found"
    if subject := subject_of(task):
        return "task_word", f"the task is of {subject[0]} ({shorten(subject[1], 40)!r})"
    return None


def _why_better(task: str, result: str, operations: Sequence[Call]) -> tuple[Reason, str] | None:
    """Return why the way in which the task is done should be improved, or None."""
    advice = "; fewer steps, or one tool for all of them, leave less to go wrong"
    different = len({action for action, _, _ in operations})
    if different >= CHAIN:
        return "chain", f"{different} different actions were called one after the other{advice}"
    steps = steps_in(task) + 1
    if steps >= CHAIN:
        return "chain", f"the task names {steps} steps, one after the other{advice}"
    if error := error_in(result):
        told = f"the last result tells of an error ({shorten(error, 40)!r})"
        return "error_pattern", f"{told}; mend what it names before the next try"
    return None


def _is_operation(action: str) -> bool:
    return action not in WRAPPERS and action.partition(SEPARATOR)[0] not in _NO_OPERATIONS


def _failures_at_the_end(calls: Sequence[Call]) -> int:
    failed = 0
    for _, _, ok in reversed(calls):
        if ok:
            break
        failed += 1
    return failed


def _most_repeated(calls: Sequence[Call]) -> list[Call]:
    """Return the calls of the action and shape that went well most often, the later one where two are level."""
    groups: dict[Any, list[Call]] = {}
    for call in calls:
        if call[2]:
            key = (call[0], _shape(call[1]))
            group = groups.pop(key, [])  # the latest group is the last
            groups[key] = group
            group.append(call)
    return max(reversed(groups.values()), key=len, default=[])


def _shape(value: Any, depth: int = 0) -> Any:
    """Return the keys and types of a value, without what they hold."""
    if isinstance(value, Mapping) and depth < _DEEPEST:
        return tuple(sorted((str(key), _shape(inner, depth + 1)) for key, inner in value.items()))
    return _kind(value)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, Mapping):
        return "object"
    if isinstance(value, list | tuple):
        return "array"
    return "null" if value is None else "string"


def _skeleton(task: str, repeated: Sequence[Call]) -> dict[str, Any]:
    """Return the arguments of `create_tool`: what varied between the calls is a parameter, what did not its default."""
    parameters = _parameters(repeated) or {
        "text": {"type": "string", "description": "what to work on", "required": True}
    }
    lines = ["def execute(params):"]
    for number, name in enumerate(parameters):
        variable = (
            name if name.isidentifier() and name.isascii() and name not in _KEYWORDS else f"value_{number}"
        )
        lines.append(f"    {variable} = params[{name!r}]")
    lines += [
        "    # Work on the parameters here, and return a value that is plain JSON.",
        '    return {"error": "this tool has no work yet"}',
        "",
    ]
    description = shorten(" ".join(task.split()), 500)
    return {
        "name": _tool_name(task, repeated),
        "description": description or "What the tool does",
        "code": "\n".join(lines),
        "parameters": parameters,
        "generated_from": description,
    }


def _parameters(repeated: Sequence[Call]) -> dict[str, Any]:
    given = [arguments for _, arguments, _ in repeated]
    found: dict[str, Any] = {}
    for name, value in given[-1].items() if given else ():
        kind = _kind(value)
        definition: dict[str, Any] = {"type": "string" if kind == "null" else kind}
        definition["description"] = f"{name} of {repeated[-1][0]}"
        if all(each.get(name) == value for each in given) and len(given) > 1 and _is_short(value):
            definition["default"] = value
        else:
            definition["required"] = True
        try:
            read_parameters({name: definition})
        except DynamicToolError:  # a name that no parameter can have
            continue
        found[name] = definition
    return found


def _is_short(value: Any) -> bool:
    try:
        return len(json.dumps(value, allow_nan=False)) <= _LONGEST_DEFAULT
    except (TypeError, ValueError, RecursionError):
        return False


def _tool_name(task: str, repeated: Sequence[Call]) -> str:
    """Return a name that a tool can have, from the words of the task, else of the action."""
    for text in (task, *(action for action, _, _ in repeated[-1:])):
        words = [word for word in re.findall(r"[a-z0-9]+", text[:500].lower()) if word not in _FILLERS]
        name = "_".join(words[:5])[:48].strip("_")
        try:
            check_name(name)
        except DynamicToolError:
            continue
        return name
    return "new_tool"


def _shown(value: Any) -> str:
    """Return a value of the call: code as it is between back quotes, the rest as JSON."""
    if isinstance(value, str) and "\n" in value:
        return f"`{value}`"
    return json.dumps(value, ensure_ascii=False)
