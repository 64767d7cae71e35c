"""What a model says is text where JupyterLab typesets formulas: in HTML without our extension, and in our Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbconvert import HTMLExporter
from playwright.sync_api import expect

import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.notebook.displays.mime import mimebundle
from reyn_jupyter.notebook.render.displayables import view
from reyn_jupyter.notebook.render.hosts.markdown_writer import to_markdown
from reyn_jupyter.runtime.record.trace import Trace
from tests.browser.lab_support import LabPage

FORMULAS = (
    r"$\style{cursor:url(http://evil.example/leak)}{\text{42}}$",
    r"$$\href{http://evil.example}{\text{https://bank.example}}$$",
    r"\(\unicode{x41}\)",
    r"\[\class{a}{x}\]",
    r"\\(x\\)",
    r"\begin{equation}y\end{equation}",
    "It costs $5, or $6.",
)


def answered(workspace: Path) -> Trace:
    session = reyn.Session(workspace, namespace={}, store="memory")
    try:
        return session.ask("go", model=ScriptedModel("\n\n".join(FORMULAS)), new=True)
    finally:
        session.close()


def output(data: dict[str, Any]) -> dict[str, Any]:
    shown = {"output_type": "display_data", "metadata": {}, "data": data}
    return {"source": "%reyn go", "outputs": [shown], "execution_count": 1}


def test_no_formula_of_an_answer_is_typeset(lab: LabPage, workspace: Path) -> None:
    trace = answered(workspace)
    html = mimebundle(trace)["text/html"]
    lab.open(
        output({"text/html": html}),
        {"cell_type": "markdown", "source": to_markdown(view(trace))},
        output({"text/html": "<p>one $x^2$ of the page's own</p>"}),
    )
    lab.script("panel.content.widgets[2].node.scrollIntoView()")
    expect(lab.notebook.locator(".jp-Cell").nth(2).locator("mjx-container")).to_have_count(1)
    for index in (0, 1):
        cell = lab.notebook.locator(".jp-Cell").nth(index)
        cell.scroll_into_view_if_needed()
        expect(cell).to_contain_text("It costs $5, or $6.")
        expect(cell).to_contain_text(r"\begin{equation}y\end{equation}")
        expect(cell.locator("mjx-container")).to_have_count(0)
        links = cell.locator("a[href*='evil']").all_inner_texts()
        assert all("evil.example" in text for text in links)  # an address that Markdown finds is its own text


def test_an_exported_notebook_tells_mathjax_to_leave_answers_alone(workspace: Path) -> None:
    trace = answered(workspace)
    made = nbformat.v4.new_output("display_data", {"text/html": mimebundle(trace)["text/html"]})
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("%reyn go", outputs=[made])])
    page, _ = HTMLExporter().from_notebook_node(book)
    opening = page.index("reyn-view mathjax_ignore tex2jax_ignore")
    assert opening < page.index(r"\style{cursor")
