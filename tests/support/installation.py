"""What an installer leaves of a package: its modules, and the metadata that names its entry points."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

GROUP = "reyn_jupyter.categories"


@contextmanager
def import_place(site: Path) -> Iterator[Path]:
    """Have a folder on the import path of this process as an installed one, as `PYTHONPATH` makes it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
        patch.setattr(sys, "path", [str(site), *sys.path])
        importlib.invalidate_caches()
        yield site


def install_project(project: Path, site: Path) -> None:
    """Install a project with one package, by its ``pyproject.toml``, in the way of an installer.

    Args:
        project: the folder of ``pyproject.toml``.
        site: the folder that stands on the import path.
    """
    facts = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    package = facts["name"].replace("-", "_")
    shutil.copytree(project / package, site / package, ignore=shutil.ignore_patterns("__pycache__"))
    write_metadata(site, facts)


def install_module(site: Path, module: str, code: str, *, name: str, version: str) -> None:
    """Install one module whose function ``categories`` is an entry point of this name."""
    site.mkdir(parents=True, exist_ok=True)
    (site / f"{module}.py").write_text(code, encoding="utf-8")
    points = {GROUP: {name: f"{module}:categories"}}
    write_metadata(site, {"name": name, "version": version, "entry-points": points})


def write_metadata(site: Path, facts: Mapping[str, Any]) -> None:
    """Write the ``.dist-info`` folder of a package; `facts` are those of ``[project]`` in ``pyproject.toml``."""
    info = site / f"{facts['name'].replace('-', '_')}-{facts['version']}.dist-info"
    info.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {facts['name']}", f"Version: {facts['version']}"]
    lines += [f"Requires-Dist: {each}" for each in facts.get("dependencies", ())]
    (info / "METADATA").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (info / "INSTALLER").write_text("pip\n", encoding="utf-8")
    points = ""
    for group, named in facts["entry-points"].items():
        points += f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in named.items())
    (info / "entry_points.txt").write_text(points, encoding="utf-8")
