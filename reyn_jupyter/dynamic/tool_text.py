"""What is said of tools made at run time, in the lines that the API reference has for them.

Source: dynamic tool generation, API reference (return values of the five tools).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    from reyn_jupyter.dynamic.analysis.quality import QualityAssessment
    from reyn_jupyter.dynamic.analysis.safety import SafetyAnalysis
    from reyn_jupyter.dynamic.definition import DynamicTool
    from reyn_jupyter.dynamic.tool_runner import ToolRun

_NEVER = "never"
_LONGEST_RESULT = 2_000  # characters of a result in the sentence about its run


def creation_text(tool: DynamicTool) -> str:
    """Return what is said of a tool that was made."""
    lines = [
        f'Created the tool "{tool.name}".',
        "",
        f"Tool ID: {tool.id}",
        f"Safety score: {tool.safety_score:g}",
        f"Quality score: {tool.quality_score:g}",
        f"Verification: {verification_word(tool)}",
        "",
        "Description:",
        tool.description,
        "",
        "Parameters:",
        *(parameter_lines(tool) or ["- any object"]),
        "",
        "Usage:",
        f'run_dynamic_tool({{ tool_id: "{tool.id}", parameters: {{ /* ... */ }} }})',
    ]
    return "\n".join(lines)


def parameter_lines(tool: DynamicTool) -> list[str]:
    """Return one line for each parameter that a tool declares."""
    return [f"- {each.name} ({each.type}): {each.description}".rstrip() for each in tool.parameters or ()]


def verification_word(tool: DynamicTool) -> str:
    """Return "verified" for a tool whose examples came out as they should, else "unverified"."""
    return "verified" if tool.verification_status == "passed" else "unverified"


def run_text(name: str, run: ToolRun) -> str:
    """Return what is said of a run that came to its end."""
    milliseconds = round(run.seconds * 1000)
    if not run.ok:
        head = f'The run of the tool "{name}" failed.'
        return f"{head}\n\nExecution time: {milliseconds}ms\nError: {run.error}"
    result = run.value if isinstance(run.value, str) else json.dumps(run.value, ensure_ascii=False, indent=2)
    if len(result) > _LONGEST_RESULT:
        result = f"{result[:_LONGEST_RESULT]}… ({len(result):,} characters in all)"
    return (
        f'The run of the tool "{name}" is complete.\n\nExecution time: {milliseconds}ms\n\nResult:\n{result}'
    )


def listing_text(tools: Sequence[DynamicTool], total: int) -> str:
    """Return what is said of tools that were looked for.

    Args:
        tools: those that are shown.
        total: how many were found.
    """
    lines = [f"# Dynamic tools ({total})"]
    for tool in tools:
        lines += [
            "",
            f"## {tool.name}",
            f"- ID: {tool.id}",
            f"- Description: {tool.description}",
            f"- Confidence: {tool.confidence_score:g}",
            f"- Uses: {tool.usage_count} | Last use: {tool.last_used_at or _NEVER}",
            f"- Verification: {tool.verification_status}",
            f"- Tags: {', '.join(tool.tags)}".rstrip(),
        ]
    if total > len(tools):
        lines += ["", f"{count(total - len(tools), 'further tool')} not shown; raise limit or narrow name."]
    return "\n".join(lines)


def deletion_text(tool: DynamicTool) -> str:
    """Return what is said of a tool that was removed."""
    return f'Deleted the tool "{tool.name}" ({tool.id}).'


def review_text(tool: DynamicTool, safety: SafetyAnalysis, quality: QualityAssessment) -> str:
    """Return what a person reads before they consent to a tool: scores, findings by line, permissions, the whole code.

    Args:
        tool: as it would be kept.
        safety, quality: what was found in its code.
    """
    taken = [each.summary for each in tool.parameters] if tool.parameters is not None else ["any object"]
    lines = [
        f"a {'Python' if tool.mode == 'python' else 'TypeScript'} tool: {tool.name}",
        *(f"  {line}" for line in tool.description.splitlines()),
        f"takes: {'; '.join(taken) or 'nothing'}",
        f"may reach: {', '.join(tool.permissions) or 'nothing outside of its sandbox'}",
        *([f"serves {tool.capability} in plans"] if tool.capability else []),
        f"safety {safety.score:g}, quality {quality.score:g}",
        *(f"  line {each.line}: {each.severity}: {each.description}" for each in safety.issues),
    ]
    if tool.examples:
        lines.append(f"tried at once with {count(len(tool.examples), 'example')}")
    if tool.origins:
        lines.append(f"made after text of others: {', '.join(tool.origins)}")
    lines.append("code:")
    lines += [f"  {number:>4}  {line}" for number, line in enumerate(tool.code.splitlines(), 1)]
    return "\n".join(lines)


def summary_of(tool: DynamicTool) -> dict[str, Any]:
    """Return what a listing tells of a tool, without its code."""
    return tool.model_dump(
        mode="json",
        include={
            *("id", "name", "description", "mode", "tags", "permissions", "verification_status"),
            *("confidence_score", "safety_score", "quality_score"),
            *("usage_count", "failure_count", "last_used_at"),
        },
    )
