"""The table of keys in docs/configuration.md, made from the settings: ``python tests/docs/config_table.py --write``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import reyn_jupyter
from reyn_jupyter.config.key_table import all_keys

PAGE = Path(reyn_jupyter.__file__).parent / "docs" / "configuration.md"
BEGIN, END = "<!-- keys: begin -->", "<!-- keys: end -->"


def table() -> str:
    rows = ["| key | takes | default | what it is |", "| --- | --- | --- | --- |"]
    for key in all_keys():
        takes = key.type.replace(" | ", ", ")
        rows.append(f"| `{key.key}` | {takes} | {_shown(key.default)} | {key.description} |")
    return "\n".join(rows)


def with_table(page: str) -> str:
    """The page with the table as it is now between the two marks."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


def _shown(value: Any) -> str:
    if value is None or value in ([], ""):
        return "–"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"`{value}`"


if __name__ == "__main__":
    text = with_table(PAGE.read_text(encoding="utf-8"))
    if "--write" in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(table())
