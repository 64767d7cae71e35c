"""The built front end that the package carries: ES modules with their style sheets.

``widget`` draws the snapshot of any display and is what every widget carries; the others are the live views, which a
page asks the kernel for, once, when it first needs one; ``page`` is the script of an exported page. A widget carries
only what draws its snapshot, since its code is copied into every display; a live view needs the kernel anyway.
"""

from __future__ import annotations

from pathlib import Path

STATIC = Path(__file__).parents[1] / "static"
MODULES = ("widget", "explorer", "blob", "grid", "trace", "page")


def read_module(name: str) -> tuple[str, str]:
    """Return a module's code and style sheet.

    Raises:
        FileNotFoundError: the installation lacks it.
    """
    code, style = ((STATIC / f"{name}.{suffix}").read_text("utf-8") for suffix in ("js", "css"))
    return code, style


def missing_files() -> list[str]:
    """Return the names of the files that this installation lacks; without them the HTML alone is shown."""
    names = [f"{name}.{suffix}" for name in MODULES for suffix in ("js", "css")]
    return [name for name in names if not (STATIC / name).is_file()]
