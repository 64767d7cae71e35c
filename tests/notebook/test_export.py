"""`reyn.export`: a file of a kind that it says, there whole or as it was before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import reyn_jupyter as reyn
from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.outputs.parts.content_parts import ContentPart, ContentParts
from reyn_jupyter.sessions import current
from reyn_jupyter.sessions.result_objects import Result, Table
from tests.support.media_samples import png

TABLE = Table("rows", ({"a": 1}, {"a": 2}), "Rows")


@pytest.fixture(autouse=True)
def here(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(workspace)
    monkeypatch.setattr(current, "_current", [])
    return workspace


@pytest.mark.parametrize("name", ["report.pdf", "report", "report.csv", "report.html.gz"])
def test_a_name_of_another_format_is_refused_and_the_formats_are_named(here: Path, name: str) -> None:
    with pytest.raises(ReynError, match=r"names no format.*\.html, \.htm, \.md, \.parquet"):
        reyn.export(name, TABLE)
    assert not (here / name).exists()


@pytest.mark.parametrize("name", ["t.html", "t.HTM", "t.md", "t.parquet"])
def test_every_format_is_written_over_what_was_there(here: Path, name: str) -> None:
    (here / name).write_text("before")
    card = reyn.export(here / name, TABLE)
    content = (here / name).read_bytes()
    assert card.data["bytes"] == len(content) and content != b"before"
    assert not list(here.glob(".*part")) and not list(here.glob(".*tmp"))


def test_the_card_says_where_secrets_are_not_covered(here: Path) -> None:
    def facts(name: str, *shown: Any) -> dict[str, str]:
        return dict(reyn.export(name, *shown).facts)

    assert facts("t.html", TABLE).keys() == {"file", "size", "holds"}
    assert facts("t.parquet", TABLE)["secrets"] == "not covered: the table is written as it is"
    picture = Result("photo__take", "", ContentParts([ContentPart("image/png", data=png())]))
    assert "cannot be covered" in facts("t.html", picture)["pictures and sounds"]


@pytest.mark.parametrize("name", ["t.html", "t.md", "t.parquet"])
def test_a_place_where_no_file_can_be_is_named(here: Path, name: str) -> None:
    with pytest.raises(ReynError, match=r"There is no folder .*no\. Make it first"):
        reyn.export(here / "no" / name, TABLE)
    assert not (here / "no").exists()
    (here / name).mkdir()
    with pytest.raises(ReynError, match="is a folder"):
        reyn.export(name, TABLE)
    with pytest.raises(ReynError, match=r"/proc/.* cannot be written"):
        reyn.export(f"/proc/{name}", TABLE)


@pytest.mark.parametrize("shown", [3, pd.DataFrame({"a": [1]}), None])
def test_what_cannot_be_shown_cannot_be_exported(here: Path, shown: Any) -> None:
    for name in ("t.html", "t.md"):
        with pytest.raises(TypeError, match="nothing that the session or a study returns"):
            reyn.export(name, shown)
        assert not (here / name).exists()
    with pytest.raises(TypeError, match="begins with a file's name"):
        reyn.export(TABLE, "t.html")  # type: ignore[arg-type]


def test_a_suite_and_its_parts_are_pages_too(here: Path) -> None:
    suite = reyn.Study(None, "mandates").suite
    assert suite is not None
    reyn.export("suite.md", suite, suite.scenarios[0], suite.variants["must"], reyn.Budget(usd=1))
    page = (here / "suite.md").read_text("utf-8")
    for said in (
        "140 scenarios",
        "Scenario read-free-shipping",
        "step 1: file",
        "# Variant must",
        r"at most <span>\$</span>1.00",  # one alone begins no formula
    ):
        assert said in page


def test_a_full_disk_leaves_what_was_there(here: Path) -> None:
    (here / "t.html").write_text("before")
    code = """
        import resource, reyn_jupyter as reyn
        from reyn_jupyter.sessions.result_objects import Table
from tests.support.media_samples import png
        reyn.session()
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            reyn.export("t.html", Table("rows", tuple({"a": n} for n in range(50)), "Rows"))
        except reyn.notebook.errors.ReynError as error:
            print("refused:", error)
    """
    body = "\n".join(line.removeprefix(" " * 8) for line in code.splitlines())
    done = subprocess.run([sys.executable, "-c", body], capture_output=True, text=True, cwd=here, check=False)
    assert "refused: " in done.stdout and "cannot be written" in done.stdout, done.stderr
    assert (here / "t.html").read_text() == "before"
    assert [each.name for each in here.iterdir() if each.name.endswith((".tmp", ".part"))] == []
