"""Nothing of a workspace is on an import path: what comes with a cloned folder does not run because `%reyn` does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.installation import install_module

REPOSITORY = Path(__file__).resolve().parents[2]

LIBRARIES = (
    "yaml", "pydantic", "platformdirs", "litellm", "tiktoken", "duckdb", "jsonschema_rs", "re2", "pandas", "numpy",
    "sqlite3", "orjson", "mcp", "uuid_utils", "snowballstemmer", "numexpr", "pyarrow", "scipy", "tokenizers", "psutil",
)  # fmt: skip
# What a file of the cloned folder does when it is run: it leaves its name.
TRAP = "import pathlib; pathlib.Path(__file__).with_name('RAN').write_text(__name__)\n"
CATEGORY = """
from reyn_jupyter.catalog.action import Category, Operation, Purity, Tool

def categories(services):
    async def where(args, context):
        return __file__
    return (Category("lent", "Say where it comes from.", (
        Operation("where", "Say where.", {"type": "object"}, Tool("where", where, Purity.PURE)),)),)
"""
VERBS = """
    import reyn_jupyter as reyn
    session = reyn.session()
    session.list_actions()
    session.invoke_action("file__list", {"path": "."})
    session.invoke_action("table__query", {"sql": "SELECT 1 AS one"})
    session.search_actions("read a file")
    session.models
    print(session.ask("which files are here?", model="offline").status)
"""


def program(text: str) -> str:
    return textwrap.dedent(text)


def run(
    code: str, folder: Path, *sites: Path, python: str = sys.executable, expected: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run a program with the folder as its working folder, which `-c` puts first on the path, as a kernel does."""
    lines = "import sys; sys.path[1:1] = " + repr([str(site) for site in sites]) + "\n" + program(code)
    done = subprocess.run(
        [python, "-c", lines],
        cwd=folder,
        env={
            "HOME": str(folder.parent),
            "PATH": "/usr/bin:/bin",
            "REYN_STATE_DIR": str(folder.parent / "state"),
        },
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == expected, done.stderr
    return done


def install(site: Path, module: str, code: str, *, name: str = "lent", version: str = "1.5") -> None:
    install_module(site, module, code, name=name, version=version)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "clone"
    folder.mkdir()
    (folder / "notes.txt").write_text("hello\n")
    return folder


def test_metadata_in_a_cloned_folder_names_no_code_that_runs(clone: Path) -> None:
    install(clone, "taken_in", TRAP, name="e", version="1")
    done = run(VERBS, clone)
    assert not (clone / "RAN").exists()
    assert done.stdout.split()[-1] == "ok"


def test_the_root_of_a_session_is_no_import_path_wherever_the_program_runs(
    clone: Path, tmp_path: Path
) -> None:
    install(clone, "taken_in", TRAP, name="e", version="1")
    (clone / "litellm.py").write_text(TRAP)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    code = VERBS.replace("reyn.session()", f"reyn.Session({str(clone)!r})")
    run(f"sys.path.insert(0, {str(clone)!r})\n" + program(code), elsewhere)
    assert not (clone / "RAN").exists()


def test_metadata_in_a_cloned_folder_is_not_even_read(clone: Path) -> None:
    for name in ("reyn_jupyter-9.dist-info", "litellm-9.dist-info", "e-1.dist-info"):
        (clone / name).mkdir()
        os.mkfifo(clone / name / "METADATA")
        os.mkfifo(clone / name / "entry_points.txt")
    assert run(VERBS, clone).stdout.split()[-1] == "ok"


def test_a_file_of_a_cloned_folder_takes_no_librarys_place(clone: Path) -> None:
    for module in LIBRARIES:
        (clone / f"{module}.py").write_text(TRAP)
    assert run(VERBS, clone).stdout.split()[-1] == "ok"
    assert not (clone / "RAN").exists()


def test_what_a_library_imports_in_its_own_tasks_is_not_looked_for_there_either(clone: Path) -> None:
    for module in ("mcp", "openai", "httpx", "aiohttp", "tiktoken"):
        (clone / f"{module}.py").write_text(TRAP + "raise ImportError")
    done = run(
        """
        import os, reyn_jupyter as reyn
        os.environ |= {"OPENAI_API_KEY": "none", "OPENAI_API_BASE": "http://127.0.0.1:9/v1"}
        print(reyn.session().ask("hello", model="openai/gpt-4o-mini").status)
        """,
        clone,
    )
    assert done.stdout.split() == ["error"]  # nobody is there; the request was made
    assert not (clone / "RAN").exists()


def test_the_persons_own_imports_are_as_python_has_them(clone: Path) -> None:
    (clone / "helper.py").write_text("word = 'from the folder'\n")
    (clone / "later.py").write_text("word = 'from the folder, later'\n")
    done = run(
        """
        import reyn_jupyter as reyn
        import helper

        @reyn.action(purity="pure")
        def word() -> str:
            "Return a word."
            import later
            return later.word

        session = reyn.session()
        print(helper.word, "|", session.invoke_action("function__word", {}).value)
        """,
        clone,
    )
    assert done.stdout.strip() == "from the folder | from the folder, later"


def test_a_package_beside_the_workspace_adds_its_categories_and_the_doctor_names_it(
    clone: Path, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    install(site, "lent_categories", CATEGORY)
    done = run(
        """
        import reyn_jupyter as reyn
        from reyn_jupyter.categories import packages
        print(reyn.session().invoke_action("lent__where", {}).value)
        print([(each.name, each.version, each.place) for each in packages()])
        from IPython.core.interactiveshell import InteractiveShell
        reyn.load_ipython_extension(shell := InteractiveShell.instance())
        doctor = shell.run_line_magic("reyn", "doctor")
        print(*next(lines for title, lines in doctor.sections if title == "Packages that add categories"))
        """,
        clone,
        site,
    )
    assert done.stdout.splitlines() == [
        str(site / "lent_categories.py"),
        repr([("lent", "1.5", str(site))]),
        f"lent           1.5 at {site}",
    ]


def test_a_file_of_the_working_folder_is_not_taken_for_a_packages_module(clone: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    install(site, "lent_categories", CATEGORY)
    (clone / "lent_categories.py").write_text(TRAP + CATEGORY)
    code = """
        import reyn_jupyter as reyn
        print(reyn.session().invoke_action("lent__where", {}).value)
    """
    assert run(code, clone, site).stdout.strip() == str(site / "lent_categories.py")
    assert not (clone / "RAN").exists()


def test_a_package_whose_module_was_shadowed_before_is_left_out_and_said(clone: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    install(site, "lent_categories", CATEGORY)
    (clone / "lent_categories.py").write_text(CATEGORY)
    done = run(
        """
        import lent_categories  # the person's own import
        import reyn_jupyter as reyn
        session = reyn.session()
        print([row["qualified_name"] for row in session.list_actions() if "lent" in row["qualified_name"]])
        print(*session.parts.catalog.problems.values())
        """,
        clone,
        site,
    )
    names, problem = done.stdout.splitlines()
    assert names == "[]"
    assert "'lent'" in problem
    assert str(clone / "lent_categories.py") in problem


@pytest.fixture
def interpreter(clone: Path) -> tuple[str, Path]:
    """A virtual environment inside the workspace, as many projects have it; and its site-packages."""
    home = clone / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True, timeout=120)
    (site,) = home.glob("lib/python3*/site-packages")
    places = [entry for entry in sys.path if entry.endswith("site-packages")]
    (site / "base.pth").write_text("\n".join([str(REPOSITORY), *places]) + "\n")
    return str(home / "bin" / "python"), site


def test_a_virtual_environment_inside_the_workspace_is_the_persons_own(
    clone: Path, interpreter: tuple[str, Path]
) -> None:
    python, site = interpreter
    install(site, "lent_categories", CATEGORY)
    install(clone, "taken_in", TRAP, name="e", version="1")
    done = run(
        """
        import reyn_jupyter as reyn
        from reyn_jupyter.categories import packages
        print(reyn.session().invoke_action("lent__where", {}).value)
        print([each.place for each in packages()])
        """,
        clone,
        python=python,
    )
    assert done.stdout.splitlines() == [str(site / "lent_categories.py"), repr([str(site)])]
    assert not (clone / "RAN").exists()


def test_a_package_that_is_installed_from_its_sources_in_the_workspace_is_loaded_from_there(
    clone: Path, interpreter: tuple[str, Path]
) -> None:
    python, site = interpreter
    install(site, "lent_categories", CATEGORY)
    (site / "lent_categories.py").rename(clone / "lent_categories.py")
    origin = {"url": clone.as_uri(), "dir_info": {"editable": True}}
    (site / "lent-1.5.dist-info" / "direct_url.json").write_text(json.dumps(origin))
    code = """
        import reyn_jupyter as reyn
        print(reyn.session().invoke_action("lent__where", {}).value)
    """
    assert run(code, clone, python=python).stdout.strip() == str(clone / "lent_categories.py")


def test_an_environment_in_the_workspace_that_does_not_run_is_no_place_of_packages(clone: Path) -> None:
    install(clone / "venv" / "lib" / "python3.11" / "site-packages", "taken_in", TRAP, name="e", version="1")
    (place,) = clone.glob("venv/lib/*/site-packages")
    run(VERBS, clone, place)
    assert not (place / "RAN").exists()


@pytest.mark.parametrize("module", ["multiprocessing", "pickle", "selectors", "pydantic", "duckdb", "yaml"])
def test_worker_processes_of_a_study_take_nothing_from_the_folder_they_start_in(
    clone: Path, module: str
) -> None:
    (clone / f"{module}.py").write_text(TRAP)
    done = run(
        """
        sys.path.remove("")  # as if the person had imported these before
        import multiprocessing, multiprocessing.spawn, pickle, selectors
        from reyn_jupyter import Study
        from tests.evaluation.study_support import BASE, small
        sys.path.insert(0, "")
        print(Study(None, small(2), executor="processes").run(BASE.but("simulated", model="simulator")).done)
        """,
        clone,
        REPOSITORY,
    )
    assert not (clone / "RAN").exists()
    assert done.stdout.strip() == "4"
