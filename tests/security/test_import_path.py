"""Nothing of a workspace is on an import path: what comes with a cloned folder does not run because `%reyn` does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.kernel.kernel_support import Kernel
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
    """Run a program with the folder as its working folder, which `-c` puts first on the path, as a kernel does.

    Args:
        sites: what the person has in `PYTHONPATH`.
    """
    done = subprocess.run(
        [python, "-c", "import sys\n" + program(code)],
        cwd=folder,
        env={
            "HOME": str(folder.parent),
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": os.pathsep.join(map(str, sites)),
            "REYN_STATE_DIR": str(folder.parent / "state"),
        },
        capture_output=True,
        text=True,
        timeout=300,
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


def test_versions_are_found_where_another_package_took_the_way_to_them_from_pythons_finder(
    clone: Path,
) -> None:
    done = run(
        """
        import importlib_metadata
        import reyn_jupyter
        from reyn_jupyter.support.versions import versions
        print(versions()["reyn-jupyter"])
        """,
        clone,
    )
    assert done.stdout.strip() not in ("", "source"), done.stderr


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
        reyn.session().configure("router.limits.retries", 0)
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


PERSONS_FUNCTIONS = {
    "imports in a thread": """
        @reyn.action
        async def word() -> str:
            return (await asyncio.to_thread(lambda: __import__("mine"))).word
        """,
    "lets the library import in a thread": """
        @reyn.action
        async def word() -> str:
            return (await asyncio.to_thread(importlib.import_module, "mine")).word
        """,
    "lets a task import": """
        @reyn.action
        async def word() -> str:
            return (await asyncio.create_task(library.loaded("mine"))).word
        """,
    "awaits the session between": """
        @reyn.action
        async def word() -> str:
            await session.aio.invoke_action("file__list", {"path": "."})
            return (await asyncio.to_thread(importlib.import_module, "mine")).word
        """,
    "is of the library": """
        reyn.action(library.word, name="word")
        """,
    "is of a module in the working folder": """
        import lazy
        reyn.action(lazy.word)
        """,
    "is of a module in a folder that was added": """
        sys.path.append("../beside")
        import beside
        reyn.action(beside.word)
        """,
}


@pytest.mark.parametrize("definition", PERSONS_FUNCTIONS.values(), ids=PERSONS_FUNCTIONS)
def test_a_registered_function_imports_as_the_person_does(
    clone: Path, tmp_path: Path, definition: str
) -> None:
    site, beside = tmp_path / "site", tmp_path / "beside"
    site.mkdir()
    beside.mkdir()
    lazy = "def word() -> str:\n    import mine\n    return mine.word\n"
    (clone / "mine.py").write_text("word = 'found'\n")
    (clone / "lazy.py").write_text(lazy)
    (beside / "beside.py").write_text(lazy.replace("mine", "yours"))
    (beside / "yours.py").write_text("word = 'found'\n")
    (site / "library.py").write_text(
        "import importlib\n\n"
        "def word() -> str:\n    return importlib.import_module('mine').word\n\n"
        "async def loaded(name):\n    return importlib.import_module(name)\n"
    )
    done = run(
        program("""
        import asyncio, importlib
        import library
        import reyn_jupyter as reyn
        session = reyn.session()
        """)
        + program(definition)
        + 'print(session.invoke_action("function__word", {}).value)\n',
        clone,
        site,
    )
    assert done.stdout.strip() == "found"


def test_what_a_library_does_for_an_action_of_a_package_is_not_the_persons(
    clone: Path, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    handler = "import asyncio, importlib\n" + CATEGORY.replace(
        "return __file__",
        """
        found = []
        for load in (asyncio.to_thread(importlib.import_module, "mine"), loaded()):
            try:
                await asyncio.create_task(load)
                found.append("found")
            except ImportError:
                found.append("absent")
        return found
        """.strip(),
    )
    install(site, "lent_categories", handler + "\nasync def loaded():\n    import mine\n")
    (clone / "mine.py").write_text(TRAP)
    done = run(
        """
        import reyn_jupyter as reyn
        session = reyn.session()

        @reyn.action
        async def outer() -> list:
            result = await session.aio.invoke_action("lent__where", {})
            return result.value

        print(session.invoke_action("lent__where", {}).value, session.invoke_action("function__outer", {}).value)
        """,
        clone,
        site,
    )
    assert done.stdout.strip() == "['absent', 'absent'] ['absent', 'absent']"
    assert not (clone / "RAN").exists()


def test_in_a_kernel_a_folder_adds_nothing_and_a_cell_finds_its_own(clone: Path, tmp_path: Path) -> None:
    install(tmp_path, "taken_in", TRAP, name="e", version="1")
    (tmp_path / "pydantic.py").write_text(TRAP)
    (clone / "mine.py").write_text("word = 'found'\n")
    kernel = Kernel(clone, tmp_path / "state")
    try:
        assert kernel.run("import sys; sys.path.insert(0, '..'); import os; os.chdir('.')").error is None
        assert kernel.run("%load_ext reyn_jupyter").error is None
        done = kernel.run(
            program("""
            import asyncio, importlib
            import reyn_jupyter as reyn

            @reyn.action
            async def word() -> str:
                return (await asyncio.to_thread(importlib.import_module, "mine")).word

            session = reyn.session()
            print(session.invoke_action("function__word", {}).value)
            print((await session.aio.invoke_action("function__word", {})).value)
            """)
        )
        assert done.error is None, done.error
        assert done.printed == "found\nfound\n"
        doctor = kernel.run("%reyn doctor")
        assert f"e-1            at {tmp_path}: its categories are not loaded" in doctor.text
    finally:
        kernel.stop()
    assert not (tmp_path / "RAN").exists()


def test_what_a_worker_is_sent_finds_the_modules_that_its_sender_has(clone: Path) -> None:
    (clone / "mine.py").write_text("word = 'found'\n")
    (clone / "work.py").write_text(
        "class Finder:\n"
        "    def __reduce__(self):\n        import importlib\n        return importlib.import_module, ('mine',)\n\n"
        "class Work:\n"
        "    def open(self, folder):\n        return self\n"
        "    async def run(self, payload):\n        import mine\n        return payload.word, mine.word\n"
        "    async def release(self):\n        pass\n"
        "    def close(self):\n        pass\n"
    )
    done = run(
        """
        import asyncio, work
        from reyn_jupyter.executors.executor import SentSpec, Task
        from reyn_jupyter.executors.processes import ProcessExecutor

        with ProcessExecutor(1) as executor:
            spec = SentSpec.of(work.Work(), "executor='processes'")
            print(asyncio.run(executor.submit(Task(spec, work.Finder()))))
        """,
        clone,
    )
    assert done.stdout.strip() == "('found', 'found')"


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
    (site / "lent.pth").write_text(f"{clone}\n")
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


def test_another_environment_that_is_laid_under_this_one_is_installed(
    clone: Path, tmp_path: Path, interpreter: tuple[str, Path]
) -> None:
    python, site = interpreter
    install(tmp_path / "base", "lent_categories", CATEGORY)
    (site / "overlay.pth").write_text(f"import site; site.addsitedir({str(tmp_path / 'base')!r})\n")
    code = """
        import reyn_jupyter as reyn
        print(reyn.session().invoke_action("lent__where", {}).value)
    """
    assert run(code, clone, python=python).stdout.strip() == str(tmp_path / "base" / "lent_categories.py")


FINDER = """
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import spec_from_file_location

WORD, FOLDER = "__editable__.lent.finder", {folder!r}

class ByName:
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname == "lent_categories":
            return spec_from_file_location(fullname, FOLDER + "/lent_categories.py")
        if fullname == "shared.of_lent":
            return PathFinder.find_spec(fullname, path=[FOLDER + "/shared"])

class Shared:
    @classmethod
    def find_spec(cls, fullname, target=None):
        if fullname == "shared":
            spec = ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [WORD]
            return spec

def hook(entry):
    if entry != WORD:
        raise ImportError
    return Shared

sys.meta_path.append(ByName)
sys.path_hooks.append(hook)
sys.path.append(WORD)
"""


def test_the_finders_of_editable_installations_find_their_sources_in_the_workspace(
    clone: Path, interpreter: tuple[str, Path]
) -> None:
    python, site = interpreter
    sources = clone / "src"
    install(site, "lent_categories", "import shared.of_lent\n" + CATEGORY)
    (sources / "shared").mkdir(parents=True)
    (site / "lent_categories.py").rename(sources / "lent_categories.py")
    (sources / "shared" / "of_lent.py").write_text("")
    (site / "lent_finder.py").write_text(FINDER.format(folder=str(sources)))
    (site / "lent.pth").write_text("import lent_finder\n")
    origin = {"url": clone.as_uri(), "dir_info": {"editable": True}}
    (site / "lent-1.5.dist-info" / "direct_url.json").write_text(json.dumps(origin))
    code = """
        import reyn_jupyter as reyn
        print(reyn.session().invoke_action("lent__where", {}).value)
    """
    assert run(code, clone, python=python).stdout.strip() == str(sources / "lent_categories.py")


ENTRIES = {
    "the folder above": "sys.path.append('..')",
    "the folder above, first": "sys.path.insert(0, '..')",
    "a folder beside": "sys.path.append('../beside')",
    "a folder beside, in full": "sys.path.append(os.path.abspath('../beside'))",
    "a folder beside, through a link": "os.symlink('../beside', 'link'); sys.path.insert(0, os.path.abspath('link'))",
    "a folder beside, and then elsewhere": (
        "sys.path.append(os.path.abspath('../beside')); os.makedirs('deep/er'); os.chdir('deep/er')"
    ),
    "the working folder left": "sys.path.append(os.getcwd()); os.chdir('/')",
}


@pytest.mark.parametrize("addition", ENTRIES.values(), ids=ENTRIES)
def test_what_a_notebook_adds_to_the_path_is_the_persons_alone(clone: Path, addition: str) -> None:
    places = (clone, clone.parent, clone.parent / "beside")
    for place in places:
        install(place, "taken_in", TRAP, name="e", version="1")
        (place / "pydantic.py").write_text(TRAP)
        (place / "uncommon.py").write_text("word = __file__\n")
    done = run(
        f"""
        import os
        {addition}
        import reyn_jupyter as reyn
        session = reyn.Session({str(clone)!r})
        session.list_actions()
        session.invoke_action("file__read", {{"path": "notes.txt"}}).value
        import uncommon
        print(os.path.realpath(uncommon.word))
        """,
        clone,
    )
    assert [str(place) for place in places if (place / "RAN").exists()] == []
    assert Path(done.stdout.strip()).name == "uncommon.py"


def test_python_path_is_installed_where_it_is_no_workspace(clone: Path, tmp_path: Path) -> None:
    install(tmp_path / "site", "lent_categories", CATEGORY)
    install(clone / "src", "taken_in", TRAP, name="e", version="1")
    code = """
        import reyn_jupyter as reyn
        print(reyn.session().invoke_action("lent__where", {}).value)
    """
    done = run(code, clone, clone / "src", tmp_path / "site")
    assert done.stdout.strip() == str(tmp_path / "site" / "lent_categories.py")
    assert not (clone / "src" / "RAN").exists()


def test_the_doctor_names_what_would_add_categories_if_it_were_installed(clone: Path) -> None:
    install(clone.parent / "beside", "taken_in", TRAP, name="lent", version="2")
    (clone / "piped-1.dist-info").mkdir()
    os.mkfifo(clone / "piped-1.dist-info" / "entry_points.txt")
    done = run(
        """
        sys.path.append("../beside")
        import reyn_jupyter as reyn
        from IPython.core.interactiveshell import InteractiveShell
        reyn.load_ipython_extension(shell := InteractiveShell.instance())
        doctor = shell.run_line_magic("reyn", "doctor")
        print(*dict(doctor.sections)["On the import path, but not installed"], sep="\\n")
        """,
        clone,
    )
    lent, advice = done.stdout.splitlines()
    assert lent == f"lent-2         at {clone.parent / 'beside'}: its categories are not loaded"
    assert "restart the kernel" in advice
    assert not (clone.parent / "beside" / "RAN").exists()


SPREAD = {
    "no code of its own": None,
    "a path that it looks for itself": "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n",
}
OPTIONAL = """
import importlib

def optional(name):
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name).__file__
    except ImportError as error:
        return type(error).__name__

BEFORE = [optional("spread.real"), optional("spread.planted"), optional("spread.inner.planted")]

def found(names):
    return [optional(name) for name in names]
"""
ASKING = CATEGORY.replace("return __file__", "return BEFORE + found(args['names'])").replace(
    '{"type": "object"}', '{"type": "object", "properties": {"names": {"type": "array"}}}'
)


@pytest.mark.parametrize("head", SPREAD.values(), ids=SPREAD)
@pytest.mark.parametrize("entry", ["", "{clone}"], ids=["as a kernel has it", "in full"])
def test_a_folder_adds_nothing_to_a_package_that_spreads_over_several(
    clone: Path, tmp_path: Path, head: str | None, entry: str
) -> None:
    site = tmp_path / "site"
    install(site, "lent_categories", OPTIONAL + ASKING)
    for place, names in ((site, ["real"]), (clone, ["planted", "later", "mine"])):
        (place / "spread" / "inner").mkdir(parents=True)
        for name in names:
            (place / "spread" / f"{name}.py").write_text(TRAP if place == clone else "")
            (place / "spread" / "inner" / f"{name}.py").write_text(TRAP if place == clone else "")
        if head is not None:
            (place / "spread" / "__init__.py").write_text(head)
            (place / "spread" / "inner" / "__init__.py").write_text(head)
    done = run(
        f"""
        import json, pathlib
        sys.path.remove("")
        sys.path.append({entry.format(clone=clone)!r})
        import reyn_jupyter as reyn
        session = reyn.session()
        def asked():
            names = ["spread.real", "spread.inner.real", "spread.later", "spread.inner.later"]
            return session.invoke_action("lent__where", {{"names": names}}).value
        first = asked()
        sys.path.append("/nowhere")  # by which Python looks for the parts of such a package again
        again = asked()
        before = len(list(pathlib.Path("spread").rglob("RAN")))
        import spread.mine, spread.inner.mine  # by the person, who has them on the path
        print(json.dumps([first, again, asked(), before, len(list(pathlib.Path("spread").rglob("RAN")))]))
        """,
        clone,
        site,
    )
    *answers, before, after = json.loads(done.stdout)
    real, inner = str(site / "spread" / "real.py"), str(site / "spread" / "inner" / "real.py")
    absent = "ModuleNotFoundError"
    assert answers == [[real, absent, absent, real, inner, absent, absent]] * 3
    assert (before, after) == (0, 2)


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
