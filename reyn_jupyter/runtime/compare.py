"""Two runs side by side: their calls aligned, and what differs."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any

from reyn_jupyter.models.seam import canonical
from reyn_jupyter.runtime.results import Table
from reyn_jupyter.runtime.trace import Call, Trace


def compare(left: Trace, right: Trace) -> Table:
    """A table with one row a pair of calls, and the totals in its note.

    Calls are aligned by action name; "same" says whether arguments and results are equal too.
    """
    rows: list[dict[str, Any]] = [_prompt(left, right)]
    matcher = SequenceMatcher(
        a=[call.label for call in left.calls], b=[call.label for call in right.calls], autojunk=False
    )
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            rows += [_pair(x, y) for x, y in zip(left.calls[a:b], right.calls[c:d], strict=True)]
        else:
            rows += [_pair(x, None) for x in left.calls[a:b]]
            rows += [_pair(None, y) for y in right.calls[c:d]]
    rows.append(
        {"step": "answer", "a": left.answer, "b": right.answer, "same": _same(left.answer == right.answer)}
    )
    note = "; ".join(
        f"{label}: {trace.model or 'by hand'}, {len(trace.steps)} steps, {trace.tokens:,} tokens, {trace.seconds:.2f} s"
        for label, trace in (("a", left), ("b", right))
    )
    return Table("diff", tuple(rows), f"{left.run[-12:]} and {right.run[-12:]}", note, (left, right))


def _prompt(left: Trace, right: Trace) -> dict[str, Any]:
    return {"step": "prompt", "a": left.prompt, "b": right.prompt, "same": _same(left.prompt == right.prompt)}


def _pair(left: Call | None, right: Call | None) -> dict[str, Any]:
    shown = left or right
    assert shown is not None
    if left is None or right is None:
        same = "only in a" if right is None else "only in b"
    elif canonical(left.resolved.inner) != canonical(right.resolved.inner):
        same = "other arguments"
    elif (left.finished and left.finished.output) != (right.finished and right.finished.output):
        same = "other result"
    else:
        same = "same"
    return {"step": str(shown.resolved.step), "a": _cell(left), "b": _cell(right), "same": same}


def _cell(call: Call | None) -> str:
    if call is None:
        return "—"
    arguments = canonical(call.resolved.inner if call.resolved.inner is not None else call.resolved.arguments)
    state = "" if call.ok else " ✗" if call.ok is False else " …"
    return f"{call.label} {arguments.decode('utf-8', 'replace')[:160]}{state}"


def _same(equal: bool) -> str:
    return "same" if equal else "differs"
