"""What a docstring says about a function and its parameters.

Google ("Args:"), NumPy ("Parameters" over dashes) and Sphinx (":param name:") forms are read; whatever is in no
such form stays description. Nothing here fails: a docstring is free text.
"""

from __future__ import annotations

import inspect
import re

_GOOGLE = re.compile(r"(?:Args|Arguments|Parameters|Params):\s*")
_GOOGLE_ENTRY = re.compile(r"\s+\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_NUMPY_ENTRY = re.compile(r"(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?")
_SPHINX = re.compile(r":(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")
_SECTION = re.compile(
    r"(?:Args|Arguments|Parameters|Params|Returns?|Yields?|Raises|Examples?|Notes?|Attributes|References|See Also|"
    r"Warnings?|Todo):\s*|:(?:param|parameter|arg|argument|returns?|rtype|raises?|type)\b.*"
)
_DASHES = re.compile(r"-{3,}\s*")


def parse_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """The description (all before the first section) and what is said about each parameter, on one line each.

    >>> parse_docstring("Take off a rebate.\\n\\nArgs:\\n    price: before it, in euros.")
    ('Take off a rebate.', {'price': 'before it, in euros.'})
    """
    lines = inspect.cleandoc(text or "").split("\n")
    first = next((number for number in range(len(lines)) if _begins_section(lines, number)), len(lines))
    entries = _google(lines) | _numpy(lines) | _sphinx(lines)
    return "\n".join(lines[:first]).strip(), {
        name: " ".join(words.split()) for name, words in entries.items()
    }


def _begins_section(lines: list[str], number: int) -> bool:
    under = lines[number + 1] if number + 1 < len(lines) else ""
    return _SECTION.fullmatch(lines[number]) is not None or (
        bool(lines[number].strip()) and _DASHES.fullmatch(under) is not None
    )


def _google(lines: list[str]) -> dict[str, str]:
    start = next((number + 1 for number, line in enumerate(lines) if _GOOGLE.fullmatch(line)), len(lines))
    found: dict[str, str] = {}
    name, depth = "", None
    for line in lines[start:]:
        if line.strip() and not line[0].isspace():
            break
        indent = len(line) - len(line.lstrip())
        entry = _GOOGLE_ENTRY.fullmatch(line) if depth is None or indent <= depth else None
        if entry:
            name, depth = entry[1], indent
            found[name] = entry[2]
        elif name:
            found[name] += " " + line
    return found


def _numpy(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    names: list[str] = []
    inside = False
    for number, line in enumerate(lines):
        if _begins_section(lines, number):
            inside, names = line.strip() in ("Parameters", "Other Parameters"), []
        elif inside and line and not line[0].isspace():
            entry = _NUMPY_ENTRY.fullmatch(line)
            names = [name.strip() for name in entry[1].split(",")] if entry else []
            found.update(dict.fromkeys(names, ""))
        elif inside:
            for name in names:
                found[name] += " " + line
    return found


def _sphinx(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        entry = _SPHINX.fullmatch(line)
        if entry:
            name = entry[1]
            found[name] = entry[2]
        elif line.startswith(":") or not line.strip():
            name = ""
        elif name:
            found[name] += " " + line
    return found
