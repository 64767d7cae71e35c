"""``make demo``: run the quickstart without a browser, say what it answered, and keep it as one HTML page.

Invariants: the notebook that is run is a copy under ``build/quickstart``, so the repository stays as it is; the page
loads nothing from anywhere; a cell that fails ends the program with status 1 and its name.
"""

from __future__ import annotations

import html
import re
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reyn_jupyter.support.text import shorten

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from reyn_jupyter.runtime.record.run_steps import Call
    from reyn_jupyter.runtime.record.trace import Trace

REPOSITORY = Path(__file__).resolve().parent.parent
NOTEBOOK = "01_quickstart.ipynb"
SECONDS = 120  # the longest that one cell may take
ANSWER_LINES = 12
Say = Callable[[str], None]


class DemoError(RuntimeError):
    """The demo could not be run to its end; the message says where and why."""


def main() -> int:
    """Run the demo; the exit status."""
    say: Say = _say
    started = time.perf_counter()
    say(f"notebooks/{NOTEBOOK}, run without a browser\n")
    try:
        notebook = execute(REPOSITORY / "notebooks", REPOSITORY / "build" / "quickstart", say)
    except DemoError as error:
        say(f"\n✗ {error}")
        return 1
    page = write_page(notebook, REPOSITORY / "build" / "quickstart.html")
    cells = sum(cell.cell_type == "code" for cell in notebook.cells)
    say(f"✓ {cells} cells in {time.perf_counter() - started:.1f} s")
    say(f"  the whole notebook as a page   {_shown(page)} ({page.stat().st_size / 1024:,.0f} KB)")
    say("  try it yourself                make lab")
    return 0


def execute(source: Path, working: Path, say: Say) -> NotebookNode:
    """Run a copy of the quickstart from top to bottom.

    Args:
        source: the folder of the notebooks; nothing in it is touched.
        working: the folder for the copy; what is there is replaced. The executed notebook is saved in it.
        say: takes lines of progress: each question with the calls and the answer.

    Returns:
        The executed notebook.

    Raises:
        DemoError: a package is missing, a cell failed or took too long, or the kernel died.
    """
    try:
        import nbformat
        from nbclient import NotebookClient
        from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    except ImportError as error:
        raise DemoError(f"{error.name} is not installed. Try: pip install 'reyn-jupyter[lab,sql]'") from error
    if not (source / NOTEBOOK).is_file():
        raise DemoError(f"{source / NOTEBOOK} is not there. The demo runs in a clone of the repository.")
    shutil.rmtree(working, ignore_errors=True)
    shutil.copytree(source, working, ignore=shutil.ignore_patterns(".*", "__pycache__", "reyn.yaml"))
    notebook = nbformat.read(working / NOTEBOOK, as_version=4)
    turns = _Turns(working / ".reyn" / "runs", say)
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(working)}},
        on_cell_executed=turns.tell_new,
    )
    log = working / "kernel.log"
    try:
        with log.open("w", encoding="utf-8") as stderr:
            client.execute(stderr=stderr)
    except CellExecutionError as error:
        raise DemoError(f"the cell {_last_run(notebook)} failed: {error.ename}: {error.evalue}") from error
    except CellTimeoutError as error:
        raise DemoError(f"the cell {_last_run(notebook)} took more than {SECONDS} s") from error
    except DeadKernelError as error:
        raise DemoError(f"the kernel died at the cell {_last_run(notebook)}; see {log}") from error
    finally:
        # How long each cell took is of no use in a saved notebook, and differs every time.
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)
        nbformat.write(notebook, working / NOTEBOOK)
    return notebook


def _last_run(notebook: NotebookNode) -> str:
    started = [cell.id for cell in notebook.cells if "execution" in cell.metadata]
    return repr(started[-1]) if started else "(none was run)"


class _Turns:
    """Tells each question of the notebook once, from the records of its runs."""

    def __init__(self, folder: Path, say: Say) -> None:
        self._folder = folder
        self._say = say
        self._described_paths: set[Path] = set()

    def tell_new(self, **_: Any) -> None:
        from reyn_jupyter.runtime.record.trace import Trace

        for path in sorted(set(self._folder.glob("*.jsonl")) - self._described_paths):
            self._described_paths.add(path)
            trace = Trace.load(path)
            if trace.started.run_kind == "turn":
                self._say(describe_run(trace))


def describe_run(trace: Trace) -> str:
    """A turn as lines for a terminal: the question, the calls with their times, the answer."""
    lines = [f"▸ {trace.prompt}"]
    for call in trace.calls:
        mark = {True: "✓", False: "✗", None: "…"}[call.ok]
        seconds = call.finished.seconds if call.finished else 0.0
        lines.append(f"    {mark} {call.label:<24} {seconds * 1000:>5.0f} ms  {_given(call)}".rstrip())
    lines += [f"  {line}".rstrip() for line in _answer(trace)]
    return "\n".join([*lines, ""])


def _given(call: Call) -> str:
    arguments = call.resolved.inner if call.resolved.inner is not None else call.resolved.arguments
    values = arguments.values() if isinstance(arguments, dict) else ()
    text = ", ".join(value for value in values if isinstance(value, str))
    return shorten(text, 70)


def _answer(trace: Trace) -> list[str]:
    from reyn_jupyter.notebook.render.blocks import View
    from reyn_jupyter.notebook.render.hosts.markdown_reader import markdown
    from reyn_jupyter.notebook.render.hosts.plain_text import to_text

    text = to_text(View("answer", "", blocks=markdown(trace.answer or trace.error or "", "the page")))
    lines = text.strip("\n").split("\n")
    left = len(lines) - ANSWER_LINES
    return lines if left <= 1 else [*lines[:ANSWER_LINES], f"… {left} more lines, in the page"]


def write_page(notebook: NotebookNode, path: Path) -> Path:
    """Write an executed notebook as one HTML page that follows the reader's light or dark theme.

    Nothing is loaded with it: no script, no font, no style sheet. The page's own style is `demo.css`.

    Args:
        notebook: the executed notebook; its first heading becomes the page's title.
        path: the file to write; its folder is made.

    Returns:
        The path.
    """
    from nbconvert import HTMLExporter
    from pygments.formatters import HtmlFormatter

    exporter = HTMLExporter(template_name="basic", exclude_input_prompt=True, exclude_output_prompt=True)
    body, _ = exporter.from_notebook_node(notebook)
    body = re.sub(r'<a class="anchor-link"[^>]*>.*?</a>', "", body)
    light = HtmlFormatter(style="friendly").get_style_defs(".highlight")
    dark = HtmlFormatter(style="github-dark").get_style_defs(".highlight")
    style = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
    title = re.search(r"^# (.+)$", "\n".join(cell.source for cell in notebook.cells), re.MULTILINE)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        PAGE.format(
            title=html.escape(title[1] if title else path.stem),
            style=f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n{style}",
            body=body,
        ),
        encoding="utf-8",
    )
    return path


PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
