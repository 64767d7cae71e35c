"""The holes of a prompt, ``{{name}}``, which are filled with variables: how they are found, and how one is escaped."""

from __future__ import annotations

import re

HOLE = re.compile(r"(\\?)\{\{[ \t]*([^\W\d]\w*)[ \t]*\}\}")


def escape_holes(text: str) -> str:
    r"""Return what is typed for a prompt that is sent as `text`: its braces are no holes.

    >>> escape_holes("what are {{braces}}?")
    'what are \\{{braces}}?'
    """
    return HOLE.sub(lambda hole: f"{hole[1]}\\{hole[0].removeprefix(hole[1])}", text)
