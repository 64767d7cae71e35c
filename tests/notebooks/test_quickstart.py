"""The quickstart, run as `make demo` runs it: once, without a browser, and with nobody there to ask."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest

from reyn_jupyter import demo
from reyn_jupyter.models.providers.provider_facts import key_status
from reyn_jupyter.runtime.record.script import script_of
from reyn_jupyter.runtime.record.trace import Trace

NOTEBOOKS = demo.REPOSITORY / "notebooks"
EDITED = Path("data") / "opening-hours.md"
GROUP_BY = "average days by region in recent"


@dataclass(frozen=True)
class Quickstart:
    """One run of the quickstart: its folder, the executed notebook, what the terminal said, the page."""

    folder: Path
    notebook: Any
    said: list[str]
    page: str

    def cell(self, name: str) -> Any:
        return next(cell for cell in self.notebook.cells if cell.id == name)

    @property
    def code(self) -> list[Any]:
        return [cell for cell in self.notebook.cells if cell.cell_type == "code"]

    @property
    def turns(self) -> list[Trace]:
        traces = [Trace.load(path) for path in sorted((self.folder / ".reyn" / "runs").glob("*.jsonl"))]
        return [trace for trace in traces if trace.started.run_kind == "turn"]

    def turn(self, prompt: str) -> Trace:
        return next(trace for trace in self.turns if trace.prompt == prompt)


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home without any configuration, and an environment without a key."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for _, variable, _ in key_status({}):
            patch.delenv(variable, raising=False)
        for name in ("HOME", "REYN_STATE_DIR", "REYN_CONFIG_DIR", "IPYTHONDIR", "JUPYTER_CONFIG_DIR"):
            patch.setenv(name, str(home / name.lower()))
            (home / name.lower()).mkdir()
        yield home


@pytest.fixture(scope="session")
def quickstart(stranger: Path, tmp_path_factory: pytest.TempPathFactory) -> Quickstart:
    said: list[str] = []
    folder = tmp_path_factory.mktemp("demo") / "quickstart"
    notebook = demo.execute(NOTEBOOKS, folder, said.append)
    page = demo.write_page(notebook, folder.parent / "quickstart.html")
    return Quickstart(folder, notebook, said, page.read_text(encoding="utf-8"))


def test_every_cell_runs_and_the_notebook_that_ran_is_saved(quickstart: Quickstart) -> None:
    assert [cell.id for cell in quickstart.code if cell.execution_count is None] == []
    saved = nbformat.read(quickstart.folder / demo.NOTEBOOK, as_version=4)
    assert [cell.id for cell in saved.cells] == [cell.id for cell in quickstart.notebook.cells]
    assert "widgets" not in saved.metadata


def test_nothing_is_written_beside_an_output(quickstart: Quickstart) -> None:
    streams = {cell.id for cell in quickstart.code for out in cell.outputs if out.output_type == "stream"}
    assert streams == set()


def test_a_question_leaves_one_output_in_its_cell(quickstart: Quickstart) -> None:
    asked = [cell for cell in quickstart.code if cell.source.startswith("%%reyn")]
    assert len(asked) >= 5
    assert {cell.id: len(cell.outputs) for cell in asked} == {cell.id: 1 for cell in asked}


def test_the_count_is_the_number_of_rows_of_the_file(quickstart: Quickstart) -> None:
    rows = len(pd.read_csv(NOTEBOOKS / "data" / "summer_time.csv"))
    answer = quickstart.turn("how many summers are in data/summer_time.csv?").answer
    assert re.search(rf"\b{rows}\b", answer.replace(",", ""))


def test_the_group_by_over_the_notebooks_own_frame_agrees_with_pandas(quickstart: Quickstart) -> None:
    answer = quickstart.turn(GROUP_BY).answer
    told = {region: float(days) for region, days in re.findall(r"\| (\w+) \| ([\d.]+) \|", answer)}
    assert told == pytest.approx(expected_by_region(), abs=0.0005)


def test_the_group_by_over_the_file_agrees_with_pandas(quickstart: Quickstart) -> None:
    frame = pd.read_csv(NOTEBOOKS / "data" / "summer_time.csv")
    expected = frame.groupby("country").days.mean()
    answer = quickstart.turn("average days by country in data/summer_time.csv").answer
    told = {country: float(days) for country, days in re.findall(r"\| ([^|]+) \| ([\d.]+) \|", answer)}
    assert len(told) >= 20
    assert told == pytest.approx({country: expected[country] for country in told}, abs=0.0005)


def test_a_question_about_data_that_is_not_there_gets_no_number(quickstart: Quickstart) -> None:
    answer = quickstart.turn("average rainfall by region in recent").answer
    assert "rainfall" in answer
    assert re.search(r"\d", answer) is None


def test_the_registered_function_was_called_by_hand_and_by_the_agent(quickstart: Quickstart) -> None:
    assert "13020" in text_of(quickstart.cell("invoke-function"))
    assert "5670" in quickstart.turn("call minutes_saved with days=189 and shift_minutes=30").answer


def test_the_agent_changed_the_file_and_undo_restored_every_byte(quickstart: Quickstart) -> None:
    change = quickstart.turn("change 18:00 to 19:00 in data/opening-hours.md").calls[-1].finished
    assert change is not None
    assert [item["path"] for item in change.changes] == [EDITED.as_posix()]
    assert (quickstart.folder / EDITED).read_bytes() == (NOTEBOOKS / EDITED).read_bytes()


def test_the_chart_is_drawn_in_its_cell(quickstart: Quickstart) -> None:
    (output,) = quickstart.cell("ask-plot").outputs
    assert "data:image/svg+xml;base64," in output.data["text/html"]
    assert "Bar chart: mean of days by region, 8 bars" in output.data["text/plain"]


def test_the_large_result_is_a_stored_frame(quickstart: Quickstart) -> None:
    turn = quickstart.turn("average days by country in data/summer_time.csv")
    blob = next(call.finished.blob for call in turn.calls if call.finished and call.finished.blob)
    stored = json.loads((quickstart.folder / ".reyn" / "blobs" / f"{blob}.json").read_text(encoding="utf-8"))
    assert len(stored) == pd.read_csv(NOTEBOOKS / "data" / "summer_time.csv").country.nunique()


def test_the_script_of_every_run_runs_without_a_model(quickstart: Quickstart, tmp_path: Path) -> None:
    scripts = {trace.prompt: script_of(trace).code for trace in quickstart.turns}
    definitions = [quickstart.cell(name).source for name in ("load", "register", "frame")]
    program = tmp_path / "scripts.py"
    program.write_text(
        "\n".join(source.replace("%load_ext reyn_jupyter", "") for source in definitions)
        + textwrap.dedent(f"""
            import json
            by_region = reyn.session().trace({quickstart.turn(GROUP_BY).run!r}).df
            results = {{}}
            for prompt, code in {scripts!r}.items():
                exec(code)
                results[prompt] = result.to_dict("list") if isinstance(result, pd.DataFrame) else str(result)
            print(json.dumps(results))
        """),
        encoding="utf-8",
    )
    try:
        done = subprocess.run(
            [sys.executable, str(program)], cwd=quickstart.folder, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        results = json.loads(done.stdout)
        assert b"19:00" in (quickstart.folder / EDITED).read_bytes()
    finally:
        (quickstart.folder / EDITED).write_bytes((NOTEBOOKS / EDITED).read_bytes())
    again = dict(zip(*results[GROUP_BY].values(), strict=True))
    assert again == pytest.approx(expected_by_region())
    assert results["call minutes_saved with days=189 and shift_minutes=30"] == "5670"


def test_no_cell_makes_the_saved_notebook_grow_by_more_than_100_kb(quickstart: Quickstart) -> None:
    sizes = {cell.id: len(json.dumps(cell.outputs).encode()) for cell in quickstart.code}
    assert {name: size for name, size in sizes.items() if size > 100 * 1024} == {}


def test_the_terminal_tells_the_answers_and_the_steps(quickstart: Quickstart) -> None:
    told = "\n".join(quickstart.said)
    assert [line for line in told.splitlines() if line.startswith("▸")] == [
        f"▸ {trace.prompt}" for trace in quickstart.turns
    ]
    assert "✓ table__query" in told
    assert "SELECT COUNT(*)" in told
    assert re.search(r"Europe +\d+\.\d+", told)


def test_a_cell_that_fails_ends_the_demo_with_its_name(tmp_path: Path, stranger: Path) -> None:
    source = tmp_path / "notebooks"
    source.mkdir()
    cells = [nbformat.v4.new_code_cell("1 + 1", id="fine"), nbformat.v4.new_code_cell("1 / 0", id="broken")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), source / demo.NOTEBOOK)
    with pytest.raises(demo.DemoError, match=r"'broken' failed: ZeroDivisionError"):
        demo.execute(source, tmp_path / "build", lambda line: None)
    kept = nbformat.read(tmp_path / "build" / demo.NOTEBOOK, as_version=4)
    assert kept.cells[0].outputs[0].data["text/plain"] == "2"


def test_a_folder_without_the_notebook_is_said(tmp_path: Path) -> None:
    with pytest.raises(demo.DemoError, match="clone of the repository"):
        demo.execute(tmp_path, tmp_path / "build", lambda line: None)


def test_the_repository_is_left_as_it_was(quickstart: Quickstart, tmp_path: Path) -> None:
    before = checksums(NOTEBOOKS)
    demo.execute(NOTEBOOKS, tmp_path / "again", lambda line: None)
    assert checksums(NOTEBOOKS) == before


def test_it_also_starts_in_the_folder_above(stranger: Path, tmp_path: Path) -> None:
    from nbclient import NotebookClient

    (tmp_path / "notebooks" / "data").mkdir(parents=True)
    (tmp_path / "notebooks" / "data" / "summer_time.csv").write_text("city,days\nOslo,217\nLima,0\n")
    notebook = nbformat.read(NOTEBOOKS / demo.NOTEBOOK, as_version=4)
    wanted = [cell for cell in notebook.cells if cell.id in ("load", "ask-file")]
    small = nbformat.v4.new_notebook(cells=wanted)
    client = NotebookClient(small, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}})
    client.execute(stderr=subprocess.DEVNULL)
    assert "2" in text_of(small.cells[1])
    assert (tmp_path / "notebooks" / ".reyn").is_dir()


def test_the_notebook_in_the_repository_carries_no_output_and_no_path() -> None:
    text = (NOTEBOOKS / demo.NOTEBOOK).read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", cell.id)
        if cell.cell_type == "code":
            assert (cell.outputs, cell.execution_count) == ([], None)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    assert re.search(r"(/home/|/Users/|/root/|[A-Z]:\\)", text) is None


class _Loads(HTMLParser):
    """Whatever a page would load or run."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "link", "iframe", "object", "embed", "base"):
            self.found.append(tag)
        for name, value in attrs:
            if (tag, name) == ("img", "src") and (value or "").startswith("data:image/svg+xml;base64,"):
                continue  # a chart: an image runs no script and loads nothing
            if name.startswith("on") or (name in ("src", "srcset", "data", "poster") and value):
                self.found.append(f"{tag} {name}={value}")


def test_the_page_loads_and_runs_nothing(quickstart: Quickstart) -> None:
    page = _Loads()
    page.feed(quickstart.page)
    assert page.found == []
    assert re.findall(r"@import|url\((?!['\"]?data:)", quickstart.page) == []


def test_the_page_shows_questions_answers_and_the_change(quickstart: Quickstart) -> None:
    for text in ("An agent in your kernel", GROUP_BY, "216.887", "09:00 to 19:00", "1 file restored"):
        assert text in quickstart.page
    assert quickstart.page.count('class="reyn-view') >= 15
    assert 'class="anchor-link"' not in quickstart.page


def test_what_the_data_says_of_itself_is_so() -> None:
    frame = pd.read_csv(NOTEBOOKS / "data" / "summer_time.csv", parse_dates=["starts", "ends"])
    readme = (NOTEBOOKS / "data" / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", readme, re.MULTILINE) == list(frame.columns)
    assert set(re.findall(r"\b[A-Z][a-z]+\b", readme.partition("name: ")[2].partition(" |")[0])) == set(
        frame.region
    )
    assert (frame.ends - frame.starts).dt.days.equals(frame.days)
    assert frame.year.equals(frame.starts.dt.year.astype(frame.year.dtype))
    assert (frame.city == "Havana").any()
    assert frame[frame.city == "Havana"].days.max() == 945
    assert set(frame[(frame.city == "Lord Howe") & (frame.year > 1985)].shift_minutes) == {30}
    assert f"{frame.city.nunique()} cities" in (NOTEBOOKS / demo.NOTEBOOK).read_text(encoding="utf-8")


def expected_by_region() -> dict[str, float]:
    frame = pd.read_csv(NOTEBOOKS / "data" / "summer_time.csv")
    means: dict[str, float] = frame[frame.year >= 2000].groupby("region").days.mean().to_dict()
    return means


def text_of(cell: Any) -> str:
    return "\n".join(str(output.data["text/plain"]) for output in cell.outputs)


def checksums(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and not {".reyn", ".ipynb_checkpoints"} & set(path.parts)
    }
