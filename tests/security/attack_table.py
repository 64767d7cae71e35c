"""Makes the table of attacks in the manual: `python -m tests.security.attack_table --write`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from reyn_jupyter.guard.sandbox import Sandbox
from reyn_jupyter.guard.sandbox.ladder import BACKENDS
from reyn_jupyter.guard.sandbox.pyodide import Pyodide
from tests.security.sandbox_attacks import ATTACKS, Outcome, attacked, attacked_by_python, attacked_place

PAGE = Path(__file__).parents[2] / "reyn_jupyter" / "docs" / "sandbox.md"
PYODIDE = Path(sys.prefix, "pyodide")  # where `make setup-test` installs it
BEGIN, END = "<!-- attacks: begin -->", "<!-- attacks: end -->"


async def table() -> str:
    """Run every attack in every sandbox that is here, and return what stopped it as a table."""
    names = [backend.name for backend in BACKENDS]
    with tempfile.TemporaryDirectory() as folder, attacked_place(Path(folder)) as place:
        by_python = await attacked_by_python(Sandbox(Pyodide(PYODIDE)), place)
    lines = [f"| what was tried | {' | '.join(names)} |", f"| --- {'| --- ' * len(names)}|"]
    for attack in ATTACKS:
        row = []
        for backend in BACKENDS:
            if backend.language == "python":
                outcome = by_python.get(attack.name, Outcome(True, "–"))
                row.append(outcome.by if outcome.held else "**got through**")
                continue
            script = attack.typescript if backend.language == "typescript" else attack.python
            if not script:
                row.append("–")
                continue
            with tempfile.TemporaryDirectory() as folder, attacked_place(Path(folder)) as place:
                outcome = await attacked(Sandbox(backend), backend.language, attack, place)
            row.append(outcome.by if outcome.held else "**got through**")
        lines.append(f"| {attack.name} | {' | '.join(row)} |")
    return "\n".join(lines)


def written() -> str:
    """Return the table that the page has."""
    return PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].strip()


def main() -> None:
    made = asyncio.run(table())
    if "--write" not in sys.argv:
        print(made)
        return
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{made}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
