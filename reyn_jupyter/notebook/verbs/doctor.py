"""`%reyn doctor`: versions, environments, keys and extras, and what to install for what is missing."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from reyn_jupyter import categories
from reyn_jupyter.models.local.model_server import SERVERS, ServerState
from reyn_jupyter.models.providers.provider_facts import key_status
from reyn_jupyter.notebook import assets
from reyn_jupyter.notebook.magic_line.options import Options
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.notebook.serving.hub import DRAWING, kernel_hub
from reyn_jupyter.sessions.assembly import Parts
from reyn_jupyter.sessions.overviews import index_overview
from reyn_jupyter.sessions.result_objects import Card
from reyn_jupyter.support.sanitize import printable
from reyn_jupyter.support.text import count
from reyn_jupyter.support.versions import version_of

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
    "ipywidgets",
    "tokenizers",
    "sentence-transformers",
)
LOG_LINES = 12  # of what the server of a model says
EXTRAS = (
    ("duckdb", "sql", "table queries"),
    ("jupyterlab", "lab", "JupyterLab in this environment"),
    ("pypdf", "documents", "corpora of PDF, office and HTML files"),
    ("xllamacpp", "local-llm", "a language model from a file of this machine"),
)


def run(context: Context, options: Options) -> Card:
    session = context.session
    width = max(map(len, PACKAGES))
    versions = tuple(f"{name:<{width}}  {version_of(name) or 'not installed'}" for name in PACKAGES)
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
        ("JupyterLab extension", _extension()),
        ("live views elsewhere", _widgets()),
        ("workspace", f"{session.root} ({'writable' if os.access(session.root, os.W_OK) else 'read-only'})"),
        ("state", str(session.root / ".reyn")),
        ("search", index_overview.line(session.parts.search.state())),
        *_telemetry(session.parts),
        ("model", next(value for key, value in session.status.facts if key == "model")),
    )
    sections = [("Versions", versions), ("Keys in the environment", _keys())]
    if missing:
        sections.append(("Not installed", missing))
    sections.append(("Packages that add categories", _category_packages()))
    sections += [local_model_section(state) for state in SERVERS.states]
    if elsewhere := categories.packages_elsewhere():
        sections.append(("On the import path, but not installed", _not_installed(elsewhere)))
    if damaged := session.parts.damaged_files():
        sections.append(("Files of the state folder that are not used", tuple(map(printable, damaged))))
    if session.catalog.hidden:
        hidden = tuple(printable(f"{name:<14} {why}") for name, why in session.catalog.hidden.items())
        sections.append(("Categories that are not on offer", hidden))
    if session.problems:
        sections.append(("Problems", tuple(map(printable, session.problems))))
    return Card("doctor", "What is here", facts, tuple(sections), ("%reyn models", "%reyn config"))


def _telemetry(parts: Parts) -> tuple[tuple[str, str], ...]:
    """Return where runs are sent, and whether that is this machine."""
    return () if parts.sender is None else (("OpenTelemetry", parts.sender.state(parts.settings.otel)),)


def _category_packages() -> tuple[str, ...]:
    """Return one line a package with its version and place: their code runs in this kernel."""
    return tuple(
        printable(f"{package.name:<14} {package.version} at {package.place}")
        for package in categories.packages()
    ) or ("none; only installed packages can, nothing else that is on the import path",)


def local_model_section(state: ServerState) -> tuple[str, tuple[str, ...]]:
    """Return what the server of a model's file does, and the end of what it said."""
    if state.pid is None:
        now = "not running"
    else:
        at = f"on {state.address}, loaded in" if state.address else "loading since"
        now = f"process {state.pid}, {at} {state.seconds:.1f} s"
    said = tuple(printable(f"  {line}") for line in state.log[-LOG_LINES:])
    return f"Model from {printable(state.file.name)}", (
        f"{now}; started {count(state.starts, 'time')}",
        *said,
    )


def _not_installed(packages: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return one line a package whose categories are left out because of where it lies, and what would bring them."""
    return (
        *(printable(f"{name:<14} at {place}: its categories are not loaded") for name, place in packages),
        (
            "what is not installed is not run; to use what you trust, install it into the kernel's environment "
            "(%pip install FOLDER), then restart the kernel"
        ),
    )


def _keys() -> tuple[str, ...]:
    """Return one line a variable that is set, never its value, and the names of those that are missing."""
    users: dict[tuple[str, str], list[str]] = {}
    for provider, variable, state in key_status(os.environ):
        users.setdefault((state, variable), []).append(provider)
    found = tuple(
        f"{variable:<22} {state:<8} {', '.join(names)}"
        for (state, variable), names in users.items()
        if state != "missing"
    )
    missing = ", ".join(variable for state, variable in users if state == "missing")
    return (*found, *([f"missing: {missing}"] if missing else []))


def _server() -> str:
    """Return whether the process that started this kernel runs in the kernel's own environment."""
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


def _extension() -> str:
    """Return whether our part of JupyterLab and Notebook is there, as seen from the kernel, and whether it fits."""
    own = str(version_of("reyn-jupyter"))
    seen = {
        (each.hello.host, each.hello.version)
        for each in list(kernel_hub().connections)
        if each.hello is not None and each.hello.host in DRAWING
    }
    if seen:
        said = ", ".join(f"{host} ({version or 'of no version'})" for host, version in sorted(seen))
        other = sorted({version for _, version in seen if version not in ("", own)})
        return f"connected: {said}" + (f"; {_differs(other[0], own)}" if other else "")
    found = _installed()
    if found is None:
        return "not found here; where JupyterLab runs: pip install reyn-jupyter, then reload the page"
    if found != own:
        return f"installed here, but {_differs(found, own)}"
    return "installed here; no page has connected yet (reload it if it was open before the installation)"


def _differs(other: str, own: str) -> str:
    return (
        f"the page has version {other}, the kernel {own}: pip install reyn-jupyter=={own} where JupyterLab runs, "
        "then reload the page"
    )


def _installed() -> str | None:
    """Return the version of the extension in the places that JupyterLab of this environment looks in."""
    from jupyter_core.paths import jupyter_path

    for folder in jupyter_path("labextensions"):
        manifest = Path(folder) / "reyn-jupyter" / "package.json"
        if manifest.is_file():
            try:
                return str(json.loads(manifest.read_text("utf-8")).get("version", "unknown"))
            except (OSError, ValueError, AttributeError):
                return "unknown"
    return None


def _widgets() -> str:
    """Return whether live views work in VS Code, Colab and other hosts of widgets."""
    absent = [name for name in ("anywidget", "ipywidgets") if find_spec(name) is None]
    if absent:
        return f"static only: pip install {' '.join(absent)}"
    lacking = assets.missing_files()
    if lacking:
        return f"static only: {', '.join(lacking)} not in this installation; pip install --force-reinstall reyn-jupyter"
    return "as widgets (VS Code, Colab, marimo)"


VERB = Verb("doctor", "versions, keys, extras, and what to install", run, examples=("%reyn doctor",))
