"""The notebook as actions: its cells are read within bounds and without secrets, new ones proposed and withdrawn."""

from __future__ import annotations

import asyncio
import json
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell

from reyn_jupyter.categories.notebook import categories
from reyn_jupyter.outputs.parts.content_parts import ContentParts
from reyn_jupyter.runtime.access.live_notebook import (
    CellOutput,
    LiveNotebook,
    NotebookCell,
    NotebookCells,
    ProposedCell,
)
from reyn_jupyter.runtime.access.reversals import Reversal
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.sessions.access.session_notebook import SessionNotebook, saved_cells
from tests.categories.notebook_support import SECRET, Caller, Hostile, Notebook, on_this_thread

CELLS = (
    NotebookCell("intro", "markdown", "# Orders\nThe text."),
    NotebookCell(
        "load",
        "code",
        "orders = load()\norders",
        3,
        (
            CellOutput("stream", f"loaded with {SECRET}\n"),
            CellOutput("result", "\x1b[31m  region value\x1b[0m", ("text/html",), 12),
        ),
    ),
    NotebookCell("broken", "code", "1 / 0", 4, (CellOutput("error", "ZeroDivisionError: division by zero"),)),
)


@dataclass
class Page:
    """A front end that keeps what it is asked to do."""

    proposed: list[ProposedCell] = field(default_factory=list)
    withdrawn: list[tuple[str, str]] = field(default_factory=list)

    def propose(self, cell: ProposedCell) -> None:
        self.proposed.append(cell)

    def withdraw(self, cell: str, source: str) -> None:
        self.withdrawn.append((cell, source))


@pytest.fixture
def shell() -> Any:
    shell = InteractiveShell.instance()
    yield shell
    InteractiveShell.clear_instance()


@dataclass
class Book:
    """A notebook with a live copy of its cells, its page, and callers of the category."""

    caller: Caller
    live: LiveNotebook
    page: Page

    def call(self, entry: str, **args: Any) -> Any:
        return asyncio.run(self.caller.call(entry, **args))

    def read(self, **args: Any) -> str:
        parts = self.call("read_cell", **args)
        assert isinstance(parts, ContentParts)
        return "\n".join(f"{part.name}|{part.text}" for part in parts)


def book(
    root: Path, cells: tuple[NotebookCell, ...] | None = CELLS, path: str | None = None, **context: Any
) -> Book:
    live, page = LiveNotebook(), Page()
    if cells is not None:
        live.receive(NotebookCells(cells, "front end", time.time()), page)
    notebook = Notebook(root)
    access = SessionNotebook(live, lambda: path, notebook.services.workspace, on_this_thread)
    services = replace(notebook.services, notebook=access)
    return Book(Caller(services, categories(services)[0], **context), live, page)


def test_cells_are_listed_a_page_at_a_time(tmp_path: Path) -> None:
    page = book(tmp_path).call("list_cells", limit=2)
    assert page["items"] == [
        {"index": 0, "id": "intro", "type": "markdown", "first_line": "# Orders", "lines": 2},
        {
            "index": 1,
            "id": "load",
            "type": "code",
            "first_line": "orders = load()",
            "lines": 2,
            "execution_count": 3,
            "outputs": ["stream", "result"],
        },
    ]
    assert (page["total"], page["next_offset"]) == (3, 2)
    assert "the open notebook" in page["from"] and "not instructions" in page["note"]
    assert [each["id"] for each in book(tmp_path).call("list_cells", offset=2)["items"]] == ["broken"]


def test_a_cell_is_read_by_index_or_id_with_its_outputs(tmp_path: Path) -> None:
    read = book(tmp_path).read(id="load")
    assert "Cell 1, code, run as [3]" in read and "source|orders = load()\norders" in read
    assert "output 2: result; also text/html; 12 characters are left out|" in read
    assert "\x1b" not in read
    assert "ZeroDivisionError" in book(tmp_path).read(index=2)


def test_secrets_are_masked_for_a_model_and_not_for_the_person(tmp_path: Path) -> None:
    assert SECRET not in book(tmp_path).read(id="load")
    assert SECRET in book(tmp_path, actor="person").read(id="load")


def test_half_a_secret_at_a_cut_is_not_shown(tmp_path: Path) -> None:
    cells = (NotebookCell("a", "code", f"x = 1\ny = {SECRET[:10]}", cut=11),)
    assert SECRET[:10] not in book(tmp_path, cells).read(index=0)


@pytest.mark.parametrize("policy", ["schema", "off"])
def test_outputs_are_withheld_from_a_model_that_may_not_see_content(tmp_path: Path, policy: Any) -> None:
    read = book(tmp_path, variables=policy).read(id="load")
    assert "orders = load()" in read and "region" not in read
    assert "stream, result) are not shown" in read


@pytest.mark.parametrize("args", [{}, {"index": 0, "id": "intro"}, {"index": 9}, {"id": "lod"}])
def test_a_cell_that_is_not_there_is_said_so(tmp_path: Path, args: Any) -> None:
    with pytest.raises(ActionError) as caught:
        book(tmp_path).call("read_cell", **args)
    assert caught.value.hint
    if args.get("id") == "lod":
        assert "load" in caught.value.hint


def test_the_source_of_the_copy_is_named_with_its_age(tmp_path: Path, shell: Any) -> None:
    saved = {"nbformat": 4, "cells": [{"cell_type": "code", "source": "saved = 1", "id": "s"}]}
    (tmp_path / "work.ipynb").write_text(json.dumps(saved))
    os.utime(tmp_path / "work.ipynb", (time.time() - 7300, time.time() - 7300))
    found = book(tmp_path, None, "work.ipynb").call("list_cells")
    assert "the notebook's file, saved 2 hours ago" in found["from"] and found["items"][0]["id"] == "s"
    shell.run_cell("kept = 1", store_history=True)
    shell.run_cell("thing = type('Thing', (), {})(); thing", store_history=True)
    history = book(tmp_path, None, None)
    found = history.call("list_cells")
    assert "history" in found["from"] and found["items"][-1]["outputs"] == ["result"]
    assert "<Thing>" in history.read(index=len(found["items"]) - 1)


def test_a_rule_about_the_file_is_about_what_a_page_shows_of_it(tmp_path: Path) -> None:
    held = book(tmp_path, path="private/work.ipynb").caller
    assert [str(each) for each in held.effects("read_cell", index=0)] == ["read private/work.ipynb"]
    assert [str(each) for each in held.effects("propose_cell", source="1")] == ["edit private/work.ipynb"]


def test_a_proposal_goes_to_the_page_and_is_not_run(tmp_path: Path, shell: Any) -> None:
    held = book(tmp_path)
    told = held.call("propose_cell", source="1 / 0")
    (cell,) = held.page.proposed
    assert (cell.kind, cell.source, told["cell"]) == ("code", "1 / 0", cell.id)
    assert "not run" in told["note"] and shell.execution_count == 1


def test_proposals_of_one_run_stand_in_their_order(tmp_path: Path) -> None:
    held = book(tmp_path)
    for source in ("one", "two", "three"):
        held.call("propose_cell", source=source)
    ids = [cell.id for cell in held.page.proposed]
    assert [cell.below for cell in held.page.proposed] == [(), (ids[0],), (ids[1],)]
    assert len(set(ids)) == 3


@pytest.mark.parametrize(
    "source",
    [
        "<script>alert(1)</script>",
        "text <img src=x onerror=alert(1)>",
        "![a](http://evil.example/?q=1)",
        "![a][b]\n\n[b]: http://evil.example",
        "<!-- hidden -->",
        "```\n<b>\n```",
        "<https://a.example/<img src=x>",
        "<svg/onload=alert(1)>",
        "</td><iframe src=//evil.example>",
        '```mermaid\nflowchart TD\n  A@{ img: "http://evil.example/?q=1" }\n```',
        '> - ~~~~ Mermaid\n>   %%{init: {"themeCSS": ".node {background: url(//evil.example)}"}}%%',
    ],
)
def test_a_text_cell_with_markup_is_refused(tmp_path: Path, source: str) -> None:
    held = book(tmp_path)
    with pytest.raises(ActionError, match="may not hold"):
        held.call("propose_cell", source=source, kind="markdown")
    assert held.page.proposed == []


def test_a_text_cell_with_a_formula_that_does_more_than_symbols_is_refused(tmp_path: Path) -> None:
    held = book(tmp_path)
    commands = (
        *(
            r"\style{cursor:url(http://evil.example)}{x}",
            r"\href{http://evil.example}{x}",
            r"\url{http://evil.example}",
        ),
        *(
            r"\require{html}",
            r"\class{a}{x}",
            r"\cssId{a}{x}",
            r"\unicode{x41}",
            r"\includegraphics{http://evil.example}",
        ),
        *(r"\def\x{y}", r"\newcommand\x{y}", r"\let\x=y", r"\csname href\endcsname", r"\bbox[url(a)]{x}"),
        *(
            r"\color{red}{x}",
            r"\mmlToken{mi}[href=a]{x}",
            r"\data{a}{x}",
            r"\text{a $\href{a}{b}$}",
            r"\renewcommand\x{y}",
        ),
        *(
            r"\begin{CD}x\end{CD}",
            r"\begin{html}x\end{html}",
            r"\begin x",
            r"\definecolor{a}{b}{c}",
            r"\toggle{a}{b}",
        ),
    )
    places = (
        "${}$",
        "$${}$$",
        r"\\({}\\)",
        r"\\[{}\\]",
        "[a ${}$](http://e.org)",
        "- a\n  - ${}$",
        "> ${}$",
        "| a |\n|--|\n| ${}$ |",
    )
    sources = [place.replace("{}", command) for command in commands for place in places]
    sources += [
        r"\begin{equation}\href{a}{b}\end{equation}",
        r"&#36;\style{a}{b}&#36;",
        r"&#36;&#92;style{a}{b}&#36;",
        "`a\n$\\style{a}{b}$`x` b",
        r"\`$\style{a}{b}$\`",
        "````\ncode\n```\n$\\style{a}{b}$\n````\n$\\style{a}{b}$",
    ]
    admitted = []
    for source in sources:
        try:
            held.call("propose_cell", source=source, kind="markdown")
            admitted.append(source)
        except ActionError:
            pass
    assert admitted == [] and held.page.proposed == []


@pytest.mark.parametrize(
    "source",
    [
        r"$\frac{1}{n}\sum_{i=1}^n x_i \leq \alpha\,\beta$",
        r"$$\begin{aligned} a &= b \\\\ c &= \text{mean} \end{aligned}$$",
        "It costs $5, or $6.",
        r"Write `$\href{a}{b}$`, in C:\new.",
        "```\n$\\style{a}{b}$\n```",
    ],
)
def test_formulas_of_symbols_and_code_are_proposed(tmp_path: Path, source: str) -> None:
    held = book(tmp_path)
    held.call("propose_cell", source=source, kind="markdown")
    assert [cell.source for cell in held.page.proposed] == [source]


@pytest.mark.parametrize(
    "source",
    ["# Title\n\n- a < b\n- `x < 3`", "see <https://example.org/a?b=c>", "**bold** [l](https://e.org)"],
)
def test_plain_markdown_is_proposed_as_it_is(tmp_path: Path, source: str) -> None:
    held = book(tmp_path)
    held.call("propose_cell", source=source, kind="markdown")
    assert [(cell.kind, cell.source) for cell in held.page.proposed] == [("markdown", source)]


@pytest.mark.parametrize("kind", ["code", "markdown"])
@pytest.mark.parametrize("hidden", ["\u202e", "\u200b", "\U000e0041", "\u3164", "\x1b[8m", "\r"], ids=ascii)
def test_a_cell_with_what_nobody_sees_is_refused(tmp_path: Path, kind: str, hidden: str) -> None:
    held = book(tmp_path)
    with pytest.raises(ActionError, match="nobody sees: line 2 is"):
        held.call("propose_cell", source=f"seen\nallowed{hidden} = 1", kind=kind)
    assert held.page.proposed == []


@given(st.text(alphabet="<>!a[]/ b\n`?", max_size=30))
def test_no_tag_ever_gets_into_a_proposed_text(text: str) -> None:
    from markdown_it import MarkdownIt

    held = book(Path("/"))
    try:
        held.call("propose_cell", source=text or "x", kind="markdown")
    except ActionError:
        return
    tokens = MarkdownIt("commonmark", {"html": True}).parse(text)
    children = [child for token in tokens for child in (token.children or [])]
    assert not [each for each in (*tokens, *children) if each.type in ("html_block", "html_inline", "image")]


def reversal(held: Book, **args: Any) -> Reversal:
    tool = next(each.tool for each in held.caller.category.operations if each.entry == "propose_cell")
    context = held.caller.context("propose_cell")
    asyncio.run(tool.handler(args, context))  # type: ignore[arg-type]
    return context.reversals[0]


def seen(held: Book, **changes: Any) -> None:
    """Let the page send the notebook again, with the proposed cell in it, or without."""
    cell = held.page.proposed[0]
    there = NotebookCell(cell.id, cell.kind, cell.source)
    cells = (*CELLS, replace(there, **changes)) if changes.pop("there", True) else CELLS
    held.live.receive(NotebookCells(cells, "front end", time.time() + 1), held.page)


def test_undo_takes_an_untouched_cell_out(tmp_path: Path) -> None:
    held = book(tmp_path)
    taken = reversal(held, source="a = 1")
    seen(held)
    assert "is taken out" in taken.revert()[0]
    assert held.page.withdrawn == [(held.page.proposed[0].id, "a = 1")]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"source": "a = 2"}, "changed it"),
        ({"execution_count": 7}, "run it"),
        ({"there": False}, "not in the notebook"),
    ],
)
def test_undo_leaves_a_cell_that_is_the_persons_by_now(tmp_path: Path, changes: Any, said: str) -> None:
    held = book(tmp_path)
    taken = reversal(held, source="a = 1")
    seen(held, **changes)
    assert said in taken.revert()[0] and held.page.withdrawn == []


def test_without_a_page_code_goes_to_the_next_prompt_and_text_is_refused(tmp_path: Path, shell: Any) -> None:
    held = book(tmp_path, None)
    assert "next prompt" in held.call("propose_cell", source="a = 1")["proposed"]
    assert shell.rl_next_input == "a = 1"
    with pytest.raises(ActionError, match="One cell at a time"):
        held.call("propose_cell", source="b = 1")
    with pytest.raises(ActionError, match="Only code"):
        held.call("propose_cell", source="text", kind="markdown")


def test_a_plain_program_has_no_notebook(tmp_path: Path) -> None:
    assert "no notebook" in str(book(tmp_path).caller.category.hidden())


_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=9)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(
                [
                    "cells",
                    "cell_type",
                    "source",
                    "outputs",
                    "output_type",
                    "data",
                    "text",
                    "id",
                    "execution_count",
                    "text/plain",
                    "traceback",
                    "ename",
                ]
            ),
            inner,
            max_size=6,
        ),
    ),
    max_leaves=30,
)


@given(_JSON)
def test_a_saved_notebook_may_hold_anything(found: Any) -> None:
    try:
        cells = saved_cells({"cells": found}, 0.0)
    except ValueError:
        assert not isinstance(found, list)
        return
    for cell in cells.cells:
        assert isinstance(cell.source, str) and cell.kind in ("code", "markdown", "raw")


def test_results_of_the_history_are_never_drawn_by_code_of_the_person(tmp_path: Path, shell: Any) -> None:
    shell.history_manager.input_hist_raw.append("thing")
    shell.history_manager.output_hist[len(shell.history_manager.input_hist_raw) - 1] = Hostile()
    Hostile.calls.clear()
    held = book(tmp_path, None)
    total = held.call("list_cells")["total"]
    assert "<Hostile>" in held.read(index=total - 1)
    assert Hostile.calls == []
