"""How common words are among the actions of both tuning halves: what `search/ranking/term_weights.py` holds.

    python -m tests.benchmarks._retrieval_words --write

Invariant: only texts of actions of the tuning halves are counted, never requests, and nothing that is reported on.
"""

from __future__ import annotations

import argparse
import math
import re
import textwrap
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from reyn_jupyter.search.ranking import term_weights
from reyn_jupyter.search.ranking.lexical import STOPPED
from reyn_jupyter.search.ranking.tokens import runs, tokens_of
from reyn_jupyter.search.ranking.vocabulary import parameter_texts
from tests.benchmarks._retrieval_sets import NAMES, TUNING, load

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reyn_jupyter.search.action_records import Record

KEPT = 400  # words: with 1,600 the decision is no better
WIDTH = 96


def counted(records: Iterable[Record]) -> dict[int, str]:
    """The commonest words, in groups: the power of two nearest to how many records hold them, and the words."""
    held: Counter[str] = Counter()
    for record in records:
        texts = (record.name, record.description, *parameter_texts(record.parameters))
        tokens = {token for text in texts for run in runs(text) for token in tokens_of(run)}
        held.update(token for token in tokens - STOPPED if not token.isdigit())
    groups: dict[int, list[str]] = {}
    for word, count in sorted(held.items(), key=lambda pair: (-pair[1], pair[0]))[:KEPT]:
        groups.setdefault(round(math.log2(count)), []).append(word)
    return {power: " ".join(sorted(words)) for power, words in groups.items()}


def written(found: Mapping[int, str]) -> str:
    """The groups as the package writes them."""
    lines = []
    for power, words in found.items():
        parts = textwrap.wrap(words, WIDTH)
        if len(parts) == 1:
            lines.append(f'    {power}: "{words}",')
        else:
            quoted = [f'        "{part} "' for part in parts[:-1]] + [f'        "{parts[-1]}"']
            lines += [f"    {power}: (", *quoted, "    ),"]
    return "\n".join(["COMMON = {", *lines, "}"])


def main() -> None:
    """Print the groups, or write them into the package."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks._retrieval_words")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    new = written(counted(record for name in NAMES for record in load(name).actions(TUNING)))
    path = Path(term_weights.__file__)
    if options.write:
        path.write_text(re.sub(r"(?s)\nCOMMON = \{.*?\}\n", f"\n{new}\n", path.read_text("utf-8")), "utf-8")
    else:
        print(new)


if __name__ == "__main__":
    main()
