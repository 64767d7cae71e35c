"""An exported page, opened from disk: it draws, sorts and opens steps without a kernel and without a network."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import reyn_jupyter
from reyn_jupyter import Session
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.notebook import assets
from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line.options import parse
from reyn_jupyter.notebook.magic_line.verb import Context
from reyn_jupyter.notebook.render import to_html, view
from reyn_jupyter.notebook.render.hosts.page import PageEntry, to_page
from reyn_jupyter.notebook.serving.view_json import to_snapshot
from reyn_jupyter.notebook.verbs.export import VERB, ExportOptions
from reyn_jupyter.outputs.content import Structured
from reyn_jupyter.sessions import current
from reyn_jupyter.sessions.result_objects import Card
from tests.browser.browser_support import STATIC, open_details
from tests.notebook.render.samples import HOSTILE, every_kind


@dataclass
class Opened:
    page: Page
    complaints: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)


@contextmanager
def opened(browser: Browser, path: Path, script: bool = True) -> Iterator[Opened]:
    """A page from disk, as a double click opens it."""
    context = browser.new_context(java_script_enabled=script, viewport={"width": 1100, "height": 900})
    shown = Opened(context.new_page())
    shown.page.on("console", lambda each: shown.complaints.append(each.text))
    shown.page.on("pageerror", lambda error: shown.complaints.append(str(error)))
    shown.page.on("request", lambda each: shown.elsewhere.append(each.url))
    shown.page.goto(path.as_uri())
    shown.elsewhere = [url for url in shown.elsewhere if url not in (path.as_uri(), "data:,")]
    try:
        yield shown
    finally:
        context.close()


@pytest.fixture(autouse=True)
def built(monkeypatch: pytest.MonkeyPatch) -> None:
    """The renderer that the other browser tests use."""
    monkeypatch.setattr(assets, "STATIC", STATIC)


@pytest.fixture
def session(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """The kernel's session, with one run that read two files."""
    monkeypatch.chdir(workspace)
    monkeypatch.setattr(current, "_current", [])
    made = current.session()
    steps = [call("file__read", path="notes.txt"), call("file__read", path="data/orders.csv")]
    made.parts.model = ScriptedModel(*steps, "There are **3** orders.")
    made.ask("how many orders are there?")
    return made


def export(line: str) -> Card:
    made = VERB.run(Context(None), parse(ExportOptions, line))
    assert isinstance(made, Card)
    return made


def test_a_run_is_exported_with_its_steps_and_opens_without_a_kernel(
    browser: Browser, session: Session, workspace: Path
) -> None:
    card = export("run.html")
    facts = dict(card.facts)
    assert facts["file"] == "run.html" and card.data["bytes"] == (workspace / "run.html").stat().st_size
    with opened(browser, workspace / "run.html") as shown:
        expect(shown.page.get_by_role("heading", level=1)).to_have_text("how many orders are there?")
        expect(shown.page.locator("main")).to_contain_text("There are 3 orders.")
        open_details(shown.page)
        steps = shown.page.get_by_role("option").or_(shown.page.get_by_role("row"))
        steps.filter(has_text="file__read").last.click()
        expect(shown.page.locator("main")).to_contain_text("north,10")
        assert shown.complaints == [] and shown.elsewhere == []


def test_tables_in_a_page_are_sorted_by_a_click(browser: Browser, session: Session, workspace: Path) -> None:
    export("page.html list runs blobs --title Catalog")
    with opened(browser, workspace / "page.html") as shown:
        expect(shown.page.get_by_role("heading", level=1)).to_have_text("Catalog")
        table = shown.page.locator("table").first
        names = table.locator("tbody th").all_inner_texts()
        button = table.locator("th button").first
        button.click()
        button.press("Enter")
        assert table.locator("tbody th").all_inner_texts() == sorted(names, key=str.casefold, reverse=True)
        assert shown.complaints == [] and shown.elsewhere == []


def test_without_javascript_the_same_words_are_there(
    browser: Browser, session: Session, workspace: Path
) -> None:
    export("page.html last list")
    with opened(browser, workspace / "page.html", script=False) as shown:
        expect(shown.page.locator("main")).to_contain_text("There are 3 orders.")
        expect(shown.page.locator("main")).to_contain_text("file__read")
        assert shown.elsewhere == []


@pytest.mark.parametrize("script", [True, False], ids=["drawn", "without a script"])
def test_nothing_hostile_ends_its_place_in_a_page(browser: Browser, tmp_path: Path, script: bool) -> None:
    hostile = [
        *HOSTILE,
        "</script><script>window.ran=1</script>",
        "<!--<script>",
        "\u2028</title><base href=http://evil.example>",
    ]
    made = [
        view(each, tail=text if name == "live" else None)
        for text in hostile
        for name, each in every_kind(text).items()
    ]
    entries = [
        PageEntry(to_snapshot(each, "s"), to_html(each), {"x": {"text": each.title}})
        for each in made[:: 3 if script else 1]
    ]
    path = tmp_path / "hostile.html"
    path.write_text(to_page(hostile[-1] + hostile[-3], entries, hostile[-2]), encoding="utf-8")
    with opened(browser, path, script) as shown:
        assert shown.page.locator("section").count() == len(entries)
        assert shown.page.locator("main .reyn-view").count() >= len(entries)
        assert (
            shown.page.locator(
                "main :is(img:not(.r-media > img), iframe, svg, base, form, link, math)"
            ).count()
            == 0
        )
        assert shown.complaints == [] and shown.elsewhere == []
        if script:
            assert shown.page.evaluate("() => window.ran") is None
            assert shown.page.locator(".reyn-saved").count() == 0


def test_a_page_lets_no_other_script_run_and_loads_nothing(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    made = to_page("Page", [])
    attack = (
        "<script>window.ran=1</script><img src=x onerror=window.ran=2><img src=http://evil.example/a.png>"
    )
    path.write_text(made.replace("<main>", f"<main>{attack}"), encoding="utf-8")
    with opened(browser, path) as shown:
        assert shown.page.evaluate("() => window.ran") is None
        assert len(shown.complaints) >= 2 and all(
            "Content Security Policy" in each for each in shown.complaints
        )


def test_a_run_in_a_page_offers_nothing_that_needs_a_kernel(
    browser: Browser, session: Session, workspace: Path
) -> None:
    export("run.html")
    with opened(browser, workspace / "run.html") as shown:
        open_details(shown.page)
        expect(shown.page.get_by_role("listbox", name="Steps")).to_be_visible()
        expect(shown.page.get_by_role("button", name="Compare")).to_have_count(0)
        expect(shown.page.get_by_role("button", name="Stop")).to_have_count(0)


def stored(session: Session, value: object) -> str:
    store: Any = session.parts.services.blobs
    return str(store.put(Structured(value)).id)


def test_a_stored_table_is_paged_in_a_page_and_the_rest_is_announced(
    browser: Browser, session: Session, workspace: Path
) -> None:
    small = stored(session, [{"n": number, "name": f"row {number}"} for number in range(900)])
    large = stored(session, [{"n": number} for number in range(5_000)])
    export(f"page.html {small} {large}")
    with opened(browser, workspace / "page.html") as shown:
        whole, part = shown.page.get_by_role("grid").all()
        expect(whole).to_have_attribute("aria-rowcount", "901")
        whole.get_by_role("gridcell").first.click()
        shown.page.keyboard.press("Control+End")
        expect(whole.get_by_role("gridcell", name="row 899", exact=True)).to_be_visible()
        expect(part).to_have_attribute("aria-rowcount", "201")
        expect(shown.page.get_by_role("note")).to_contain_text("the first 200 of 5,000 rows")
        part.get_by_role("columnheader", name="n").click()
        expect(shown.page.locator("main")).to_contain_text("sorted by n ↑ among themselves")
        expect(shown.page.get_by_role("alert")).to_have_count(0)
        expect(shown.page.get_by_role("button", name="Try again")).to_have_count(0)
        assert shown.complaints == [] and shown.elsewhere == []


def test_a_stored_tree_is_open_two_levels_deep_in_a_page(
    browser: Browser, session: Session, workspace: Path
) -> None:
    blob = stored(session, {"outer": {"inner": {"deep": 1}}, "text": "words"})
    export(f"page.html {blob}")
    with opened(browser, workspace / "page.html") as shown:
        items = shown.page.get_by_role("treeitem")
        items.filter(has_text="outer").click()
        items.filter(has_text="inner").click()
        expect(shown.page.locator("main")).to_contain_text("not in the saved page")
        shown.page.get_by_role("tab", name="Text").click()
        expect(shown.page.get_by_role("tabpanel")).to_contain_text("words")
        assert shown.complaints == [] and shown.elsewhere == []


def test_each_run_of_a_page_stands_under_its_question(
    browser: Browser, session: Session, workspace: Path
) -> None:
    first, second = session.trace(), session.ask("list the files here", model="offline")
    reyn_jupyter.export(workspace / "two.html", first, second, session.runs)
    with opened(browser, workspace / "two.html") as shown:
        expect(shown.page.get_by_role("heading", level=1)).to_have_text("how many orders are there?")
        expect(shown.page.get_by_role("heading", level=2)).to_have_text(["list the files here"])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_page_follows_the_reader_s_theme(
    browser: Browser, session: Session, workspace: Path, theme: str
) -> None:
    export("page.html last runs")
    with opened(browser, workspace / "page.html") as shown:
        shown.page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        background = shown.page.locator(".reyn-view").first.evaluate(
            "(each) => getComputedStyle(each).backgroundColor"
        )
        assert background == ("rgb(20, 23, 28)" if theme == "dark" else "rgb(255, 255, 255)")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("../out.html", "climbs with"),
        ("/tmp/out.html", "outside the workspace"),
        ("notes.txt", "ends in .html"),
        ("missing/out.html", "is no folder that exists"),
        ("out.html nothing-like-this", "names neither one run, one blob nor a variable"),
    ],
)
def test_a_page_is_written_inside_the_workspace_alone(
    session: Session, workspace: Path, line: str, said: str
) -> None:
    with pytest.raises(ReynError, match=said):
        export(line)
    assert not list(workspace.rglob("out.html")) and (workspace / "notes.txt").read_text().startswith("first")


def test_a_file_that_is_there_is_replaced_only_when_asked(session: Session, workspace: Path) -> None:
    (workspace / "mine.html").write_text("mine")
    with pytest.raises(ReynError, match=r"is there already\..*add --force"):
        export("mine.html")
    assert (workspace / "mine.html").read_text() == "mine"
    export("mine.html --force")
    assert (workspace / "mine.html").read_text().startswith("<!doctype html>")


def test_a_secret_of_the_environment_is_not_exported(
    session: Session, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-abcdefghijklmnopqrstuvwxyz0123456789"
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    session.parts.model = ScriptedModel(f"the key is {secret}")
    session.ask("tell me")
    export("run.html")
    assert secret not in (workspace / "run.html").read_text()


def test_the_python_face_writes_the_same_page(browser: Browser, session: Session, tmp_path: Path) -> None:
    card = reyn_jupyter.export(tmp_path / "page.html", session.trace("last"), session.blobs, title="Mine")
    assert card.data["bytes"] == (tmp_path / "page.html").stat().st_size
    with opened(browser, tmp_path / "page.html") as shown:
        expect(shown.page.get_by_role("heading", level=1)).to_have_text("Mine")
        expect(shown.page.locator("main")).to_contain_text("There are 3 orders.")


def test_a_page_that_does_not_fit_on_the_disk_leaves_the_old_one_whole(
    session: Session, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    page.write_text("the page of last week")
    blobs, (soft, hard) = session.blobs, resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(ReynError, match="cannot be written"):
            reyn_jupyter.export(page, blobs)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert page.read_text() == "the page of last week"
    assert list(tmp_path.glob(".*")) == []


def test_a_page_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="at least one object"):
        reyn_jupyter.export(tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []
