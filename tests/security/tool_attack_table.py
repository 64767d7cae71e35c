"""Makes the table of tools that attack in the manual: `python -m tests.security.tool_attack_table --write`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.security.tool_attacks import Attack, Outcome, analysis, attack_all, attacked_place, attacks

PAGE = Path(__file__).parents[2] / "reyn_jupyter" / "docs" / "permissions.md"
BEGIN, END = "<!-- tool attacks: begin -->", "<!-- tool attacks: end -->"
_NOT_GRANTED = {
    "network": "no host is granted",
    "write_files": "no folder is granted",
    "make_folders": "no folder is granted",
}


def label(attack: Attack) -> str:
    """Return the name of an attack with its language."""
    name = f"`{attack.name}`" if "__" in attack.name else attack.name
    return f"{name} ({'Python' if attack.mode == 'python' else 'TypeScript'})"


def seen(attack: Attack) -> str:
    """Return what the analysis saw, in the words of the table."""
    kinds = dict.fromkeys(each.type for each in sorted(analysis(attack).issues, key=lambda each: each.line))
    return ", ".join(f"`{kind}`" for kind in kinds) or "**nothing**"


def refused(attack: Attack) -> str:
    """Return what a tool without any permission is refused before it runs."""
    made = analysis(attack)
    if made.blocked_operations:
        return "not created without " + ", ".join(f"`allow:{kind}`" for kind in made.blocked_operations)
    kinds = dict.fromkeys(_NOT_GRANTED[kind] for kind in made.allowed_operations if kind in _NOT_GRANTED)
    return ", ".join(kinds) or "–"


async def run_all(
    folder: Path, backend: str = "auto", pieces: Sequence[Attack] | None = None
) -> dict[Attack, Outcome]:
    """Run attacks, all by default, in a sandbox, and return what came of each."""
    outside, workspace = folder / "outside", folder / "workspace"
    outside.mkdir()
    workspace.mkdir()
    with attacked_place(outside) as place:
        return await attack_all(place, workspace, backend, pieces)


def table(outcomes: Mapping[Attack, Outcome]) -> str:
    """Return the attacks as a table: one row each, after a line that counts them."""
    rows = attacks()
    unseen = sum(not analysis(each).issues for each in rows)
    blocked = sum(bool(analysis(each).blocked_operations) for each in rows)
    through = sum(each.happened for each in outcomes.values())
    head = (
        f"{len(rows)} tools: the analysis refuses {blocked} before they exist, says something of "
        f"{len(rows) - unseen - blocked} more, and sees nothing in {unseen}. "
        f"Run all the same, {through} got their way."
    )
    lines = [
        head,
        "",
        "| tool | it wants to | hidden by | analysis saw | the grant refused | the sandbox stopped it by |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for each in rows:
        outcome = outcomes[each]
        stopped = "**got through**" if outcome.happened else outcome.stopped_by
        lines.append(
            f"| {label(each)} | {each.wants} | {each.hides} | {seen(each)} | {refused(each)} | {stopped} |"
        )
    return "\n".join(lines)


def written() -> str:
    """Return the table that the page has."""
    return PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].strip()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = table(asyncio.run(run_all(Path(folder))))
    if "--write" not in sys.argv:
        print(made)
        return
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{made}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
