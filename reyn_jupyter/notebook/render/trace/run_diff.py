"""Two runs side by side: totals and their difference, what was asked, the calls aligned, the answers.

Invariant: every difference is named in words, colour and marks only repeat it; the work is bounded whatever was
written, and what is too long to be compared word by word is compared line by line, or said to be too long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from reyn_jupyter.guard.diff import unified
from reyn_jupyter.notebook.render import formatting
from reyn_jupyter.notebook.render.blocks import (
    Badge,
    Block,
    Cell,
    Code,
    Column,
    Diff,
    DiffLine,
    Fold,
    Grid,
    Notice,
    Paragraph,
    Section,
    Span,
    Tone,
    View,
)
from reyn_jupyter.notebook.render.hosts.markdown_reader import markdown
from reyn_jupyter.notebook.render.trace.calls import inner_arguments, pretty
from reyn_jupyter.notebook.render.trace.card import run_badges, run_title, whole
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.runtime.record.compare import CallPair, RunDiff, call_line, text_of
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    from reyn_jupyter.runtime.record.run_steps import Call
    from reyn_jupyter.runtime.record.trace import Trace

PAIRS = 60  # in the static card
_FOLDS = 12
_WORDS = 600  # of both texts together, that are compared word by word
_LINES = 60
_COMPARED = 200_000  # characters of either text
_WORD = re.compile(r"\w+|\s+|[^\w\s]")
TONES: dict[str, Tone] = {
    "same": "muted",
    "other arguments": "warn",
    "other result": "warn",
    "only in a": "info",
    "only in b": "info",
    "differs": "warn",
}


@dataclass(frozen=True, slots=True)
class PairRow:
    """One line of the aligned calls."""

    id: str
    step: str
    a: str
    b: str
    same: str
    tone: Tone


def diff_view(diff: RunDiff, look: Look) -> View:
    """Return everything in one card, for hosts without a kernel."""
    head = diff_head(diff, look)
    blocks: list[Block] = [*head.blocks]
    rows = pair_rows(diff, look)
    if rows:
        blocks.append(Section("Calls", (_grid(rows),)))
    differing = [(row, pair) for row, pair in zip(rows, diff.pairs, strict=True) if row.same != "same"]
    for row, pair in differing[:_FOLDS]:
        inner = tuple(pair_blocks(pair, look))
        if inner:
            title = (
                Span(look.line(pair.label, 100), ("strong", "code")),
                Span(f" step {row.step}", ("muted",)),
            )
            blocks.append(Fold(title, (Badge(row.same, row.tone),), "", inner))
    if len(differing) > _FOLDS:
        left = count(len(differing) - _FOLDS, "more difference")
        blocks.append(Notice(f"… {left} not opened here; all of them: .pairs", "muted"))
    blocks += [answers(diff, look)] if diff.a.answer or diff.b.answer else []
    return View("diff", head.title, head.badges, head.facts, tuple(blocks), ".df")


def diff_head(diff: RunDiff, look: Look) -> View:
    """Return which runs, how much differs, the totals, and the prompts where they are not the same."""
    a, b = diff.a, diff.b
    differing = sum(pair.same != "same" for pair in diff.pairs)
    badge = Badge("the same", "good") if diff.equal else Badge("they differ", "warn")
    facts = [count(len(diff.pairs), "pair of calls", "pairs of calls")]
    facts.append(f"{differing} of them differ" if differing else "all of them the same")
    blocks: list[Block] = [_totals(diff, look)]
    if a.prompt == b.prompt:
        if a.prompt:
            prompt = Code(look.text(a.prompt, 2000))
            blocks.append(Fold((Span("The prompt, the same in both"),), (), "", (prompt,)))
    else:
        blocks.append(Section("Prompts", tuple(differing_texts(a.prompt, b.prompt, "prompt", look))))
    title = f"Runs {look.line(a.run[-12:], 20)} and {look.line(b.run[-12:], 20)}"
    return View("diff", title, (badge,), tuple(facts) if diff.pairs else ("no calls",), tuple(blocks), ".df")


def _totals(diff: RunDiff, look: Look) -> Grid:
    a, b = diff.a, diff.b
    rows = [("model", run_title(a, look), run_title(b, look), _other(a.model == b.model))]
    states = [run_badges(run)[0].text for run in (a, b)]
    rows.append(("status", states[0], states[1], _other(states[0] == states[1])))
    rows.append(_count("steps", len(a.steps), len(b.steps)))
    rows.append(_count("calls", len(a.calls), len(b.calls)))
    if a.model is not None or b.model is not None:
        rows.append(_count("tokens", a.tokens, b.tokens))
        if a.cost is not None or b.cost is not None or a.started.real or b.started.real:
            rows.append(_cost(a.cost, b.cost))
    rows.append(
        ("time", formatting.seconds(a.seconds), formatting.seconds(b.seconds), _longer(b.seconds - a.seconds))
    )
    columns = (
        Column("", header=True),
        Column("a", detail=look.line(a.run[-12:], 20)),
        Column("b", detail=look.line(b.run[-12:], 20)),
        Column("difference"),
    )
    cells = tuple((Cell(name), Cell(x), Cell(y), Cell(said, "muted" if said == "same" else "plain"))
                  for name, x, y, said in rows)  # fmt: skip
    return Grid("", columns, cells)


def _other(equal: bool) -> str:
    return "same" if equal else "differs"


def _count(name: str, a: int, b: int) -> tuple[str, str, str, str]:
    sign = "+" if b > a else "−"
    percent = f" ({sign}{abs(b - a) / a:.0%})" if a >= 20 else ""
    return name, f"{a:,}", f"{b:,}", "same" if a == b else f"{sign}{abs(b - a):,}{percent}"


def _cost(a: float | None, b: float | None) -> tuple[str, str, str, str]:
    texts = [formatting.money(each) if each is not None else "not known" for each in (a, b)]
    if a is None or b is None:
        return "cost", texts[0], texts[1], "same" if a is b else "not known"
    said = "same" if a == b else f"{'+' if b > a else '−'}{formatting.money(abs(b - a))}"
    return "cost", texts[0], texts[1], said


def _longer(more: float) -> str:
    return f"{'+' if more >= 0 else '−'}{formatting.seconds(abs(more))}"


def pair_rows(diff: RunDiff, look: Look) -> tuple[PairRow, ...]:
    rows = []
    for place, pair in enumerate(diff.pairs):
        shown = pair.a or pair.b
        assert shown is not None
        step = str(shown.resolved.step)
        a, b = (look.line(call_line(call), 180) for call in (pair.a, pair.b))
        rows.append(PairRow(f"p{place}", step, a, b, pair.same, TONES[pair.same]))
    return tuple(rows)


def _grid(rows: tuple[PairRow, ...]) -> Grid:
    columns = (Column("step", header=True), Column("a", wide=True), Column("b", wide=True), Column("same"))
    cells = tuple(
        (
            Cell(row.step),
            Cell(row.a, face="code"),
            Cell(row.b, face="code"),
            Cell(row.same, row.tone, "badge"),
        )
        for row in rows[:PAIRS]
    )
    left = len(rows) - PAIRS
    return Grid(
        "", columns, cells, f"The first {PAIRS} of {len(rows):,} pairs; all of them: .df" if left > 0 else ""
    )


def pair_blocks(pair: CallPair, look: Look) -> list[Block]:
    """Return what differs between two calls; of one that stands alone, what it asked for."""
    if pair.a is None or pair.b is None:
        alone = pair.a or pair.b
        assert alone is not None
        return [Code(pretty(inner_arguments(alone), look, 2000), "arguments"), *_outputs(alone, look)]
    blocks: list[Block] = []
    before, after = (_arguments(call, look) for call in (pair.a, pair.b))
    if before != after:
        blocks += differing_texts(before, after, "arguments", look)
    outputs = [call.finished.output if call.finished else "" for call in (pair.a, pair.b)]
    if text_of(outputs[0]) != text_of(outputs[1]):
        blocks += differing_texts(outputs[0], outputs[1], "result", look)
    if not blocks:
        what = (
            "One of the two did not come back."
            if pair.same != "same"
            else "Arguments and results are the same."
        )
        blocks.append(Notice(what, "muted"))
    return blocks


def _arguments(call: Call, look: Look) -> str:
    """Return the arguments over several lines, so that one that differs is a line of its own."""
    given = inner_arguments(call)
    text = pretty(given, Look(look.now), _COMPARED)
    return (
        text.replace(", ", ",\n") if "\n" not in text and len(text) > 40 and isinstance(given, dict) else text
    )


def _outputs(call: Call, look: Look) -> list[Block]:
    output = call.finished.output if call.finished else ""
    return [Code(look.text(output, 1200), "came back")] if output else []


def answers(diff: RunDiff, look: Look) -> Section:
    """Return both answers as they read, and what differs."""
    if diff.a.answer == diff.b.answer:
        return Section("The answer, the same in both", markdown(whole(diff.a.answer, look), ".a.answer"))
    blocks = answers_differing(diff, look)
    for name, trace in (("a", diff.a), ("b", diff.b)):
        blocks.append(Section(f"The answer of {name}", side_view(trace, name, look).blocks))
    return Section("Answers", tuple(blocks))


def answers_differing(diff: RunDiff, look: Look) -> list[Block]:
    a, b = diff.a.answer, diff.b.answer
    return differing_texts(a, b, "answer", look) if a != b and a and b else []


def side_view(trace: Trace, name: str, look: Look) -> View:
    """Return one run's answer, as a column."""
    badges = run_badges(trace)
    blocks: tuple[Block, ...] = markdown(whole(trace.answer, look), f".{name}.answer") if trace.answer else ()
    if trace.error:
        blocks = (Notice(look.text(trace.error, 800), "bad"), *blocks)
    title = f"{name}: {run_title(trace, look)}"
    return View("side", title, badges, (), blocks or (Notice("No answer.", "muted"),), f".{name}.answer")


def differing_texts(a: str, b: str, what: str, look: Look) -> list[Block]:
    """Return two texts that differ: word by word where they are short, else line by line."""
    words = [_WORD.findall(text[:_COMPARED]) for text in (a, b)]
    if "\n" not in a.strip() and "\n" not in b.strip() and len(words[0]) + len(words[1]) <= _WORDS:
        shown = [_WORD.findall(look.text(text, _COMPARED)) for text in (a, b)]
        legend = Notice(f"{what}: bold is what the other does not have", "muted")
        return [legend, *_words(shown[0], shown[1])]
    if max(len(a), len(b)) > _COMPARED:
        return [Notice(f"{what}: too long to compare here ({len(a):,} and {len(b):,} characters).", "muted")]
    return [_line_diff(a, b, what, look)]


def _words(a: list[str], b: list[str]) -> Iterator[Paragraph]:
    """Each text whole, so that it reads where marks are not drawn; what only one of them has is bold in it."""
    matcher = SequenceMatcher(a=a, b=b, autojunk=False)
    equal: list[list[tuple[bool, int, int]]] = [[], []]
    for tag, *ends in matcher.get_opcodes():
        for side in (0, 1):
            equal[side].append((tag == "equal", ends[2 * side], ends[2 * side + 1]))
    for name, words, parts in (("a", a, equal[0]), ("b", b, equal[1])):
        spans = [Span("".join(words[i:j]), () if same else ("strong",)) for same, i, j in parts if j > i]
        yield Paragraph((Span(f"{name}: ", ("muted",)), *(spans or [Span("(empty)", ("muted",))])))


def _line_diff(a: str, b: str, what: str, look: Look) -> Diff:
    # Taken out on both sides alike before they are compared: a secret may span lines.
    before, after = (look.text(text, _COMPARED).encode("utf-8", "replace") for text in (a, b))
    if before == after:
        return Diff(what, "", (), "They differ in what is not shown here.")
    lines = unified(before, after, what, most_lines=_LINES).split("\n")
    if not lines[0].startswith("--- "):
        return Diff(what, "", (), "Nothing to compare line by line.")
    body = lines[2:]
    more = body.pop() if body and body[-1].startswith("…") else ""
    body = [line for line in body if line[:1] != "\\"]
    added, removed = (sum(line.startswith(sign) for line in body) for sign in "+-")
    shown = tuple(DiffLine(line[:1], line if line[:1] == "@" else line[1:]) for line in body)
    about = "at least " if more else ""
    return Diff(what, f"− only in a ({about}{removed}), + only in b ({about}{added})", shown, more)
