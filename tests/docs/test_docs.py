"""The manual, the README and the notebook say what is so."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
import pytest

from reyn_jupyter.demo import REPOSITORY
from reyn_jupyter.notebook import verbs
from reyn_jupyter.notebook.magic_line.options import parse, parse_leading
from tests.docs.config_table import PAGE, with_table
from tests.docs.example_code import BLOCK, PROJECT, definitions, parse_code, with_code
from tests.docs.example_code import PAGE as CODE_PAGE
from tests.support.installation import write_metadata

MANUAL = sorted((REPOSITORY / "reyn_jupyter" / "docs").glob("*.md"))
TEXTS = [
    *(
        REPOSITORY / name
        for name in (
            "README.md",
            "CHANGELOG.md",
            "CONTRIBUTING.md",
            "SECURITY.md",
            "notebooks/data/README.md",
        )
    ),
    *MANUAL,
]
HOSTS = {
    *("github.com", "docs.litellm.ai", "www.iana.org", "registry.modelcontextprotocol.io"),
    *("localhost", "127.0.0.1", "example.org", "mcp.example.org"),
}
FENCE = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def named(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


def text_of(path: Path) -> str:
    if path.suffix == ".ipynb":
        return "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
    return path.read_text(encoding="utf-8")


SHOWN = [*TEXTS, REPOSITORY / "notebooks" / "01_quickstart.ipynb"]


@pytest.mark.parametrize("path", SHOWN, ids=named)
def test_every_verb_that_is_mentioned_exists(path: Path) -> None:
    mentioned = set(re.findall(r"%%?reyn ([a-z]+)\b", text_of(path)))
    assert {verb for verb in mentioned if verbs.find(verb) is None} == set()


@pytest.mark.parametrize("path", SHOWN, ids=named)
def test_every_line_with_a_verb_can_be_read(path: Path) -> None:
    text = text_of(path)
    lines = re.findall(r"^%reyn ([a-z]+)\b([^\n#]*)", "\n".join(FENCE.findall(text)) or text, re.MULTILINE)
    for name, rest in lines:
        verb = verbs.find(name)
        assert verb is not None
        line = rest.partition("   ")[0]  # a remark stands apart
        assert parse_leading(verb.options, line)[0] if verb.literal else parse(verb.options, line)


def test_the_manual_lists_every_verb_once() -> None:
    page = (REPOSITORY / "reyn_jupyter" / "docs" / "notebook.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| `%reyn ([a-z]+)` \|", page, re.MULTILINE)) == sorted(verbs.names())


def test_the_manual_shows_every_option_of_a_question() -> None:
    page = (REPOSITORY / "reyn_jupyter" / "docs" / "notebook.md").read_text(encoding="utf-8")
    ask = verbs.find("ask")
    assert ask is not None
    common = {"debug", "help", "output", "model"}
    for name in ask.options.model_fields.keys() - common:
        assert f"`--{name.replace('_', '-')}" in page


@pytest.mark.parametrize("path", TEXTS, ids=named)
def test_links_lead_to_files_that_are_there(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(path)):
        if "://" not in target:
            assert (path.parent / target.partition("#")[0]).exists(), target


@pytest.mark.parametrize("path", SHOWN, ids=named)
def test_addresses_are_few_and_known(path: Path) -> None:
    found = re.findall(r"https?://[^\s)\"'`>]+", text_of(path))
    assert {urlsplit(address).hostname for address in found} <= HOSTS


@pytest.mark.parametrize("path", TEXTS, ids=named)
def test_every_make_target_that_is_named_exists(path: Path) -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    text = text_of(path)
    named_here = re.findall(r"`make ([a-z-]+)`", text)
    named_here += re.findall(r"^make ([a-z-]+)", "\n".join(FENCE.findall(text)), re.MULTILINE)
    assert set(named_here) <= targets


def test_make_lab_installs_what_the_notebooks_import_and_name() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    chosen = set(re.findall(r"^EXTRAS := (.*)$", makefile, re.MULTILINE)[0].split(","))
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(each for name in chosen for each in extras[name])]
    installed = {re.split(r"[^\w-]", each)[0].lower() for each in wanted}
    named, imported = set(), set()
    for path in REPOSITORY.glob("notebooks/*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:  # type: ignore[no-untyped-call]
            if cell.cell_type == "code":
                imported |= set(re.findall(r"^(?:import|from) (\w+)", cell.source, re.MULTILINE))
            elif "`make lab` has" in cell.source:
                named |= set(re.findall(r"`(\w+)`", cell.source)) & set(extras)
    packages = packages_distributions()
    outside = imported - set(sys.stdlib_module_names) - {"reyn_jupyter", "slug"}
    assert {name for name in outside if not {each.lower() for each in packages[name]} & installed} == set()
    assert named and named <= chosen


def test_the_index_of_the_manual_leads_to_every_page() -> None:
    index = (REPOSITORY / "reyn_jupyter" / "docs" / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| \[([\w-]+\.md)\]", index, re.MULTILINE))
    assert listed == {path.name for path in MANUAL} - {"index.md"}


def test_the_table_of_keys_is_that_of_the_settings() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_table(page) == page, "run: python tests/docs/config_table.py --write"


def test_the_manual_names_every_installed_category(tmp_path: Path) -> None:
    from reyn_jupyter import Session

    page = (REPOSITORY / "reyn_jupyter" / "docs" / "catalog.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert listed >= set(Session(tmp_path, namespace={}).catalog.category_names)


def test_each_promise_of_security_names_tests_that_are_there_and_each_attack_has_its_promise() -> None:
    page = (REPOSITORY / "SECURITY.md").read_text(encoding="utf-8")
    promised = page.partition("## What is promised")[2].partition("\n## ")[0]
    rows = [line for line in promised.splitlines() if line.startswith("| **")]
    named = [re.findall(r"\]\((tests/[\w/]+\.py)\)", row) for row in rows]
    assert rows and all(named)
    files = {name for names in named for name in names}
    assert {name for name in files if not (REPOSITORY / name).is_file()} == set()
    attacks = {
        path.relative_to(REPOSITORY).as_posix() for path in REPOSITORY.glob("tests/security/test_*.py")
    }
    assert attacks - files == set()


def test_the_benchmarks_of_the_manual_are_those_that_run() -> None:
    page = (REPOSITORY / "reyn_jupyter" / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    files = {path.stem for path in (REPOSITORY / "tests" / "benchmarks").glob("[a-z]*.py")}
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == files


def test_the_example_of_a_category_works_when_it_is_installed(tmp_path: Path) -> None:
    page = (REPOSITORY / "reyn_jupyter" / "docs" / "extending.md").read_text(encoding="utf-8")
    blocks = FENCE.findall(page)
    module = next(block for block in blocks if "reyn_countdown.py" in block)
    project = tomllib.loads(next(block for block in blocks if block.startswith("[project]")))["project"]
    site, workspace = tmp_path / "site", tmp_path / "workspace"
    write_metadata(site, project)
    workspace.mkdir()
    (site / "reyn_countdown.py").write_text(module, encoding="utf-8")
    program = """
        import reyn_jupyter as reyn
        session = reyn.Session(".", namespace={})
        print([row["qualified_name"] for row in session.list_actions("countdown")])
        print(session.invoke_action("countdown__days", {"day": "2030-12-31", "since": "2030-01-01"}).value)
        print(session.invoke_action("countdown__days", {"day": "soon", "since": "2030-01-01"}).error)
        print(session.invoke_action("countdown__keep", {"day": "2030-12-31"}).value)
    """
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(line.strip() for line in program.splitlines())],
        cwd=workspace,
        env={"PYTHONPATH": f"{site}:{REPOSITORY}", "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    names, value, error, kept = done.stdout.splitlines()
    assert names == "['countdown__days', 'countdown__keep']"
    assert value == "364"
    assert "'soon' is no day" in error
    assert kept == "kept 2030-12-31"
    assert (workspace / "days.txt").read_text() == "2030-12-31\n"


def test_the_code_of_the_larger_example_is_that_of_the_package_that_tests_run() -> None:
    page = CODE_PAGE.read_text(encoding="utf-8")
    assert page.count("<!-- code: ") == len(BLOCK.findall(page)) > 10
    assert with_code(page) == page, "run: python tests/docs/example_code.py --write"


def test_the_larger_example_shows_all_of_its_category() -> None:
    file = "reyn_observatory/__init__.py"
    blocks = BLOCK.findall(CODE_PAGE.read_text(encoding="utf-8"))
    shown = [name for place, names, _ in blocks if place == file for name in names.split()]
    source = (PROJECT / file).read_text(encoding="utf-8")
    assert sorted(shown) == sorted(set(dict(definitions(parse_code(source)))) - {"Observatory"})


def test_the_terminal_of_the_readme_is_one_of_the_demo() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    notebook = nbformat.read(REPOSITORY / "notebooks" / "01_quickstart.ipynb", as_version=4)
    sources = "\n".join(cell.source for cell in notebook.cells)
    for question in re.findall(r"^▸ (.+)$", readme, re.MULTILINE):
        assert question in sources
    cells = sum(cell.cell_type == "code" for cell in notebook.cells)
    assert f"✓ {cells} cells in" in readme
