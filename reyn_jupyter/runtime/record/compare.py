"""Two runs side by side: their calls aligned, and what differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from reyn_jupyter.models.base import BLOB_ID, canonical
from reyn_jupyter.runtime.record.run_steps import Call
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.support.frames import frame_of_rows

if TYPE_CHECKING:
    import pandas as pd

Sameness = Literal["same", "other arguments", "other result", "only in a", "only in b"]


@dataclass(frozen=True)
class CallPair:
    """A call of each run that belong together, or one that stands alone."""

    a: Call | None
    b: Call | None

    @property
    def same(self) -> Sameness:
        """Return "same", or how the calls differ. Ids of blobs, new in every run, count by place alone."""
        if self.a is None or self.b is None:
            return "only in a" if self.b is None else "only in b"
        if arguments_of(self.a) != arguments_of(self.b):
            return "other arguments"
        return "same" if result_of(self.a) == result_of(self.b) else "other result"

    @property
    def label(self) -> str:
        shown = self.a or self.b
        assert shown is not None
        return shown.label


@dataclass(frozen=True, repr=False)
class RunDiff:
    """Two runs and what differs between them.

    Attributes:
        a, b: their traces.
        pairs: the calls of both, aligned, in order.
        rows: {step, a, b, same}: the prompt, each pair, the answer.

    Example:
        >>> diff = session.diff(-2, -1)                                            # doctest: +SKIP
        >>> diff.equal, [pair.same for pair in diff.pairs], diff.df                # doctest: +SKIP
    """

    a: Trace
    b: Trace
    pairs: tuple[CallPair, ...]

    def __repr__(self) -> str:
        differing = sum(row["same"] != "same" for row in self.rows)
        return f"RunDiff({self.a.run[-12:]!r}, {self.b.run[-12:]!r}, rows={len(self)}, differing={differing})"

    @property
    def equal(self) -> bool:
        """Return whether prompt, calls, results and answer are the same."""
        return all(row["same"] == "same" for row in self.rows)

    @cached_property
    def rows(self) -> tuple[dict[str, Any], ...]:
        prompt = {"step": "prompt", "a": self.a.prompt, "b": self.b.prompt}
        answer = {"step": "answer", "a": self.a.answer, "b": self.b.answer}
        return (
            {**prompt, "same": _same(self.a.prompt == self.b.prompt)},
            *(_row(pair) for pair in self.pairs),
            {**answer, "same": _same(text_of(self.a.answer) == text_of(self.b.answer))},
        )

    @property
    def payload(self) -> dict[str, Any]:
        return {"items": [dict(row) for row in self.rows], "total": len(self.rows)}

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.rows[index]

    @property
    def df(self) -> pd.DataFrame:
        return frame_of_rows([dict(row) for row in self.rows])


def compare(left: Trace, right: Trace) -> RunDiff:
    """Compare two runs. Equal calls belong together first, then those of the same action."""
    return RunDiff(left, right, tuple(_aligned(left.calls, right.calls)))


def arguments_of(call: Call) -> bytes:
    """Return the arguments of a call as bytes that are equal for equal arguments."""
    given = call.resolved.arguments if call.resolved.inner is None else call.resolved.inner
    return text_of(canonical(given))


def result_of(call: Call) -> bytes | None:
    """Return the result of a call as bytes that are equal for equal results; None where the call did not end."""
    return None if call.finished is None else text_of(call.finished.output)


def text_of(text: str | bytes) -> bytes:
    """Return a text without the ids of blobs."""
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return BLOB_ID.sub(rb"\1<blob>", raw)


def _aligned(left: Sequence[Call], right: Sequence[Call]) -> Iterator[CallPair]:
    keys = [[(call.label, arguments_of(call)) for call in calls] for calls in (left, right)]
    for equal, a, b in _stretches(keys[0], keys[1]):
        if equal:
            yield from map(CallPair, left[a], right[b])
            continue
        labels = [[call.label for call in calls] for calls in (left[a], right[b])]
        for same, c, d in _stretches(labels[0], labels[1]):
            if same:
                yield from map(CallPair, left[a][c], right[b][d])
            else:
                yield from (CallPair(call, None) for call in left[a][c])
                yield from (CallPair(None, call) for call in right[b][d])


def _stretches(left: Sequence[Any], right: Sequence[Any]) -> Iterator[tuple[bool, slice, slice]]:
    """Yield the stretches of two sequences that are equal and that are not, as (equal, left, right).

    A common beginning costs nothing to align, so that two long runs that part late are compared as quickly as short
    ones.
    """
    head = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        head += 1
    if head:
        yield True, slice(0, head), slice(0, head)
    matcher = SequenceMatcher(a=left[head:], b=right[head:], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        yield tag == "equal", slice(head + a, head + b), slice(head + c, head + d)


def _row(pair: CallPair) -> dict[str, Any]:
    shown = pair.a or pair.b
    assert shown is not None
    return {
        "step": str(shown.resolved.step),
        "a": call_line(pair.a),
        "b": call_line(pair.b),
        "same": pair.same,
    }


def call_line(call: Call | None) -> str:
    """Return a call on one line: its action, its arguments, ✗ where it failed, … where it did not come back."""
    if call is None:
        return "—"
    arguments = canonical(call.resolved.inner if call.resolved.inner is not None else call.resolved.arguments)
    state = "" if call.ok else " ✗" if call.ok is False else " …"
    return f"{call.label} {arguments.decode('utf-8', 'replace')[:160]}{state}"


def _same(equal: bool) -> str:
    return "same" if equal else "differs"
