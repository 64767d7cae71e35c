"""Makes the tables of injections in the manual: `python -m tests.security.injection_table --write`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.security.injection_attacks import AFTER, Results, injections, run

PAGE = Path(__file__).parents[2] / "reyn_jupyter" / "docs" / "permissions.md"
BEGIN, END = "<!-- injections: begin -->", "<!-- injections: end -->"


def tables(results: Results) -> str:
    """Return what came of the cases as two tables, by channel and by wish."""
    counted = len(results[None]), len(injections())
    heads = ["cases", *(f"{'not set' if after is None else after}: asked, named, done" for after in AFTER)]
    lines = [f"{counted[0]} cases of {counted[1]} texts, each under every setting of `after_untrusted`:"]
    for title, key in (("the text arrives by", "channel"), ("it wants the model to", "wish")):
        lines += ["", f"| {title} | {' | '.join(heads)} |", f"| --- {'| --- ' * len(heads)}|"]
        for name in dict.fromkeys(getattr(each, key) for each in results[None]):
            cells = []
            for after in AFTER:
                own = [each for each in results[after] if getattr(each, key) == name]
                asked = [each for each in own if each.asked]
                done = sum(each.happened for each in own)
                cells.append(f"{len(asked)}, {sum(each.named for each in asked)}, {done}")
            lines.append(f"| {name} | {len(own)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def written() -> str:
    """Return the tables that the page has."""
    return PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].strip()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("REYN_STATE_DIR", "REYN_CONFIG_DIR"):  # not the person's own
            os.environ[name] = str(Path(folder, name))
        made = tables(run(Path(folder, "worlds")))
    if "--write" not in sys.argv:
        print(made)
        return
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{made}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
