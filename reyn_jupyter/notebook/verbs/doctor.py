"""`%reyn doctor`: versions, environments, keys and extras, and what to install for what is missing."""

from __future__ import annotations

import os
import platform
import sys
from importlib.util import find_spec
from pathlib import Path

from reyn_jupyter.models.providers import key_status
from reyn_jupyter.notebook.options import Options
from reyn_jupyter.notebook.verb import Context, Verb
from reyn_jupyter.runtime.results import Card
from reyn_jupyter.version import version_of

PACKAGES = (
    "reyn-jupyter",
    "ipykernel",
    "ipython",
    "pydantic",
    "pandas",
    "litellm",
    "jupyterlab",
    "duckdb",
    "anywidget",
)
EXTRAS = (
    ("duckdb", "sql", "table queries"),
    ("jupyterlab", "lab", "JupyterLab in this environment"),
)


def run(context: Context, options: Options) -> Card:
    session = context.session
    versions = tuple(f"{name:<14} {version_of(name) or 'not installed'}" for name in PACKAGES)
    missing = tuple(
        f"{purpose}: pip install 'reyn-jupyter[{extra}]'"
        for module, extra, purpose in EXTRAS
        if find_spec(module) is None
    )
    kernel = getattr(context.shell, "kernel", None)
    facts = (
        ("python", f"{platform.python_version()} at {sys.prefix}"),
        ("kernel", type(kernel).__name__ if kernel is not None else "none: plain IPython"),
        ("front end can be asked", "yes" if getattr(kernel, "_allow_stdin", False) else "no"),
        ("server environment", _server()),
        ("workspace", f"{session.root} ({'writable' if os.access(session.root, os.W_OK) else 'read-only'})"),
        ("state", str(session.root / ".reyn")),
        ("model", next(value for key, value in session.status.facts if key == "model")),
    )
    sections = [("Versions", versions), ("Keys in the environment", _keys())]
    if missing:
        sections.append(("Not installed", missing))
    problems = tuple(session.parts.catalog.problems.values())
    if problems:
        sections.append(("Problems", problems))
    return Card("doctor", "What is here", facts, tuple(sections), ("%reyn models", "%reyn config"))


def _keys() -> tuple[str, ...]:
    """One line a variable, set ones first; never a value."""
    users: dict[tuple[str, str], list[str]] = {}
    for provider, variable, state in key_status(os.environ):
        users.setdefault((state, variable), []).append(provider)
    ordered = sorted(users.items(), key=lambda item: item[0][0] != "set")
    return tuple(f"{variable:<22} {state:<8} {', '.join(names)}" for (state, variable), names in ordered)


def _server() -> str:
    """Whether the process that started this kernel runs in the kernel's own environment."""
    parent = os.environ.get("JPY_PARENT_PID")
    if parent is None or not parent.isdecimal():
        return "no Jupyter server started this kernel"
    import psutil  # ipykernel brings it along

    try:
        program = Path(psutil.Process(int(parent)).cmdline()[0])
    except (psutil.Error, IndexError):
        return "started by another program"
    if not program.is_absolute() or program.parent.parent == Path(sys.prefix):
        return "the same as the kernel's"
    return f"{program.parent.parent}, not the kernel's: front-end parts must be installed there"


VERB = Verb("doctor", "versions, keys, extras, and what to install", run, examples=("%reyn doctor",))
