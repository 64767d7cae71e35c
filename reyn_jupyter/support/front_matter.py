"""Front matter: the YAML between two lines of dashes with which a Markdown text may begin.

Invariant: a stranger's front matter is read quickly or refused, whatever it holds: it is bounded in length and depth.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from reyn_jupyter.support.text import shorten

FRONT_MATTER_BYTES = 8 * 1024
_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_DEEPEST = 4  # levels of front matter
_NESTED = re.compile(r"[\[{&*!]|-[ \t]+-|^[ \t]{16}", re.MULTILINE)  # what may nest, or refer to something


def split_front_matter(text: str) -> tuple[dict[str, Any], str, str]:
    """Return the keys of a text's front matter, what follows it, and why it cannot be read, "" where it can.

    A text without any is all that follows; so is one whose front matter is broken.

    >>> split_front_matter("---\\ntitle: Tea\\n---\\nGreen.")
    ({'title': 'Tea'}, 'Green.', '')
    """
    import yaml

    match = _FRONT_MATTER.match(text)
    if match is None:
        return {}, text, ""
    if len(match[1].encode("utf-8", "replace")) > FRONT_MATTER_BYTES:
        return {}, text, f"it is longer than {FRONT_MATTER_BYTES:,} bytes"
    try:
        front = yaml.load(match[1], front_matter_loader(match[1]))  # noqa: S506 - it is a safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return {}, text, shorten(" ".join(str(error).split()), 120)
    if front is None:
        return {}, text[match.end() :], ""
    if not isinstance(front, dict):
        return {}, text, "it holds no keys"
    return {str(key): value for key, value in front.items()}, text[match.end() :], ""


def front_matter_loader(text: str) -> Any:
    """Return a safe loader for front matter: of libyaml where nothing in it can nest, one that bounds depth else."""
    import yaml

    fast = getattr(yaml, "CSafeLoader", None)
    return _shallow_loader() if fast is None or _NESTED.search(text) else fast


@cache
def _shallow_loader() -> Any:
    import yaml

    class ShallowLoader(yaml.SafeLoader):
        """A safe loader that gives up on deep nesting, which would cost it seconds."""

        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            self.depth += 1
            if self.depth > _DEEPEST:
                raise yaml.YAMLError("it is nested too deeply")
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

    return ShallowLoader
