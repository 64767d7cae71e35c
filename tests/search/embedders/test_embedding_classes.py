"""What a configured embedding class comes to: an embedder, a quiet absence, or a mistake that is named."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reyn_jupyter.config import Settings
from reyn_jupyter.search.embedders.embedder import Embedder
from reyn_jupyter.search.embedders.embedding_classes import InstalledModels, ResolvedClass, resolve
from reyn_jupyter.search.embedders.local import MUCH, LocalEmbedder
from tests.support.waiting import PATIENCE

HERE, LIGHT, NOTHING = (
    InstalledModels(True, True),
    InstalledModels(False, True),
    InstalledModels(False, False),
)


def come_to(
    name: str | None = "local-mini",
    machine: InstalledModels = HERE,
    environ: dict[str, str] | None = None,
    **classes: str,
) -> ResolvedClass:
    settings = Settings.model_validate(
        {
            "action_retrieval": {"embedding_class": name},
            "embedding": {"classes": {"local-mini": "sentence-transformers/all-MiniLM-L6-v2", **classes}},
        }
    )
    return resolve(settings, environ or {}, lambda: machine)


@pytest.mark.parametrize("machine", [HERE, LIGHT, InstalledModels(True, False)])
def test_the_default_class_is_in_force_where_anything_here_can_run_it(machine: InstalledModels) -> None:
    found = come_to(machine=machine)
    assert (found.kind, found.in_force, found.reason) == ("local", "local-mini", "")


def test_it_counts_as_off_quietly_where_nothing_can() -> None:
    found = come_to(machine=NOTHING)
    assert found.kind == "absent" and found.in_force is None and found.embedder() is None
    assert found.hint == "pip install 'reyn-jupyter[local-embed]'"


def test_null_opts_out() -> None:
    found = come_to(None)
    assert found.kind == "off" and found.in_force is None and "null" in found.reason


@pytest.mark.parametrize(
    ("name", "machine", "classes", "said"),
    [
        ("local_mini", HERE, {}, "Did you mean 'local-mini'"),
        ("strong", NOTHING, {}, "%reyn config embedding.classes.strong PROVIDER/MODEL"),
        ("big", LIGHT, {"big": "sentence-transformers/all-mpnet-base-v2"}, "local-embed"),
        ("light", HERE, {"light": "openai/text-embedding-3-small"}, "OPENAI_API_KEY"),
        ("light", HERE, {"light": "voyage-large"}, "provider/model"),
    ],
)
def test_any_other_misconfiguration_is_named_with_the_way_out(
    name: str, machine: InstalledModels, classes: dict[str, str], said: str
) -> None:
    found = come_to(name, machine, **classes)
    assert found.kind == "wrong" and found.in_force is None
    assert said in f"{found.reason} {found.hint}"
    assert found.embedder() is None


def test_another_model_of_the_library_counts_as_absent_only_where_nothing_at_all_is_there() -> None:
    other = {"big": "sentence-transformers/all-mpnet-base-v2"}
    assert come_to("big", NOTHING, **other).kind == "absent"
    assert come_to("big", HERE, **other).kind == "local"


@pytest.mark.parametrize(
    "environ", [{"OPENAI_API_KEY": "k" * 20}, {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}]
)
def test_a_providers_class_needs_a_key_or_a_server_of_ones_own(environ: dict[str, str]) -> None:
    found = come_to("light", NOTHING, environ, light="openai/text-embedding-3-small")
    assert (found.kind, found.in_force) == ("hosted", "light")


@pytest.mark.parametrize("name", ["light", "standard", "strong"])
def test_a_providers_class_of_each_tier_takes_one_line_and_a_key(name: str) -> None:
    settings = Settings.model_validate({"action_retrieval": {"embedding_class": name}})
    environ = {"OPENAI_API_KEY": "k" * 20}
    found = resolve(settings, environ, lambda: NOTHING)
    assert (found.kind, found.in_force) == ("hosted", name) and found.embedder(environ=environ) is not None
    without = resolve(settings, {}, lambda: HERE)
    assert without.kind == "wrong" and "OPENAI_API_KEY" in without.hint


def test_what_is_installed_is_asked_only_for_a_local_class() -> None:
    def never() -> InstalledModels:
        raise AssertionError("it was asked")

    settings = Settings.model_validate({"action_retrieval": {"embedding_class": None}})
    assert resolve(settings, {}, never).kind == "off"


def test_to_resolve_and_to_search_with_the_packaged_weights_imports_no_torch() -> None:
    code = """
        import sys, tempfile
        import reyn_jupyter as reyn

        session = reyn.Session(tempfile.mkdtemp())
        session.build_embeddings()  # a search alone waits for the index no longer than a person would
        found = session.search_actions("look for words in the text of files")
        assert found.payload["ranking"] == "hybrid", found.payload
        assert session.embeddings.data["served_by"] == "packaged weights"
        heavy = {"torch", "sentence_transformers", "transformers", "sklearn", "scipy"} & sys.modules.keys()
        assert not heavy, heavy
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# Who serves


class Counting:
    """Vectors by length of text; remembers what it was asked."""

    key, dimension = "counting", 2

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def embed(self, texts: Any) -> np.ndarray:
        self.asked.append(list(texts))
        rows = np.array([[len(text), 1.0] for text in texts], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def serving(light: Embedder | None, heavy: Embedder | Exception | None) -> LocalEmbedder:
    def load() -> Embedder:
        if isinstance(heavy, Exception):
            raise heavy
        assert heavy is not None
        return heavy

    return LocalEmbedder("k", 2, (lambda: light) if light else None, load if heavy else None)  # type: ignore[arg-type, return-value]


def test_a_few_texts_never_load_the_heavy_way() -> None:
    light, heavy = Counting(), Counting()
    embedder = serving(light, heavy)
    embedder.expect(10)
    embedder.embed(["a"])
    assert embedder.ready and embedder.served_by == "packaged weights" and not heavy.asked


def test_a_lot_of_texts_load_it_and_from_then_on_it_serves() -> None:
    light, heavy = Counting(), Counting()
    embedder = serving(light, heavy)
    embedder.expect(MUCH)
    loading = embedder.load()
    assert loading is not None
    loading.result(PATIENCE)
    assert embedder.served_by == "sentence-transformers"
    embedder.embed(["a"])
    assert heavy.asked[-1] == ["a"] and not light.asked


def test_where_loading_fails_the_packaged_weights_go_on() -> None:
    light = Counting()
    embedder = serving(light, ImportError("no torch"))
    embedder.expect(MUCH)
    loading = embedder.load()
    assert loading is not None
    loading.result(PATIENCE)
    assert embedder.embed(["a"]).shape == (1, 2) and embedder.served_by == "packaged weights"


def test_alone_the_heavy_way_is_waited_for_or_says_why_not() -> None:
    embedder = serving(None, Counting())
    assert not embedder.ready and embedder.embed(["a"]).shape == (1, 2) and embedder.ready
    with pytest.raises(ImportError, match="no torch"):
        serving(None, ImportError("no torch")).embed(["a"])


def test_what_was_embedded_lately_is_not_embedded_again() -> None:
    light = Counting()
    embedder = serving(light, None)
    first = embedder.embed(["a", "bb", "a"])
    again = embedder.embed(["bb", "a", "ccc"])
    assert light.asked == [["a", "bb"], ["ccc"]]
    assert np.array_equal(first[0], again[1]) and np.array_equal(first[1], again[0])
    assert embedder.embed([]).shape == (0, 2)


def test_the_threads_of_the_persons_own_products_come_back() -> None:
    program = (
        "import numpy\n"
        "from threadpoolctl import threadpool_info\n"
        "from reyn_jupyter.search.embedders.local import one_thread\n"
        "def threads():\n"
        "    return [each['num_threads'] for each in threadpool_info() if each['user_api'] == 'blas']\n"
        "before = threads()\n"
        "first, second = one_thread(), one_thread()\n"
        "first.__enter__()\n"
        "second.__enter__()\n"
        "first.__exit__(None, None, None)\n"
        "assert set(threads()) <= {1}, threads()\n"
        "second.__exit__(None, None, None)\n"
        "assert threads() == before, (threads(), before)\n"
    )
    # A process of its own: here other tests' sessions embed in the background, with a limit of their own.
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr


def test_libraries_are_looked_for_while_another_thread_loads_one(tmp_path: Path) -> None:
    library = importlib.util.find_spec("numpy.random._sfc64")
    assert library is not None and library.origin is not None
    shutil.copy(library.origin, tmp_path / "copy.so")  # one that is not loaded yet
    program = (
        "import sys, threading, _ctypes\n"
        "from reyn_jupyter.search.embedders.local import _libraries\n"
        "_libraries()\n"
        "def look():\n"
        "    for _ in range(200):\n"
        "        _libraries.__wrapped__()\n"
        "looking = threading.Thread(target=look)\n"
        "looking.start()\n"
        "while looking.is_alive():\n"
        "    _ctypes.dlclose(_ctypes.dlopen(sys.argv[1], 1))\n"  # like an import, with the interpreter's lock held
    )
    # A process of its own: where the two wait for each other, nothing in it goes on.
    command = [sys.executable, "-c", program, str(tmp_path / "copy.so")]
    subprocess.run(command, check=True, timeout=PATIENCE)
