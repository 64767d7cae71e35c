"""5,000 memories: listing, keeping, finding and reviewing them, beside reading and parsing their files bare."""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel

COUNT = 5_000
_WORDS = [
    "tax",
    "report",
    "style",
    "customer",
    "invoice",
    "deploy",
    "database",
    "season",
    "tea",
    "garden",
    "budget",
    "meeting",
    "plan",
    "release",
]


def _bare(folder: Path) -> int:
    """Read all files, and parse their front matter by libyaml: what no listing can do without, the first time."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))]
    return len([yaml.load(text.split("---\n")[1], loader) for text in texts])


def main() -> None:
    """Print CPU seconds of this process, and how many times those of the bare reading they are."""
    with tempfile.TemporaryDirectory() as place:
        for name in ("REYN_STATE_DIR", "REYN_CONFIG_DIR"):
            os.environ[name] = str(Path(place, name))
        root = Path(place, "work")
        folder = root / ".reyn" / "memory" / "shared"
        folder.mkdir(parents=True)
        chance = random.Random(1)
        for number in range(COUNT):
            text = " ".join(chance.choices(_WORDS, k=120))
            (folder / f"memory-{number}.md").write_text(
                f"---\nname: About {number}\ndescription: When {text[:30]}\ntype: project\n---\n{text}\n"
            )
        began = time.process_time()
        assert _bare(folder) == COUNT
        bare = time.process_time() - began
        config = {"action_retrieval": {"embedding_class": None}}
        session = reyn.Session(root, store="memory", namespace={}, config=config)
        new = {"slug": "new", "name": "New", "description": "d", "type": "user", "body": "x"}

        def invoke(name: str, /, **args: Any) -> Callable[[], object]:
            return lambda: session.invoke_action(f"memory_operation__{name}", args)

        def turn() -> object:
            return session.ask("hi", model=ScriptedModel("done"))

        steps: list[tuple[str, Callable[[], object]]] = [
            ("trust all of them", session.trust),
            ("the catalog, for the first time", lambda: session.catalog),
            ("list", invoke("list")),
            ("remember one more", invoke("remember_shared", **new)),
            ("the turn after that", turn),
            ("a turn when nothing changed", turn),
            ("forget", invoke("forget", layer="shared", slug="new")),
            ("search by words, the first", invoke("search", query="tea garden")),
            ("search by words, the next", invoke("search", query="tax report")),
            ("review", invoke("review")),
        ]
        print(f"{f'{COUNT:,} files read and parsed, bare':40} {bare:6.2f} s")
        for what, step in steps:
            began = time.process_time()
            step()
            took = time.process_time() - began
            print(f"{what:40} {took:6.2f} s  {took / bare:5.1f} ×")
        session.close()
