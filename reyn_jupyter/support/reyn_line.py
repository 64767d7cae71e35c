"""Write the lines of `%reyn` that errors, cards, and hints show.

Invariant: the magic parser reads a written line back as the very words and options that it was made from.
"""

from __future__ import annotations

import re

# A word that needs no quotes; IPython reads a "?" at the end of a line as help.
_BARE = re.compile(r"(?:[\w./:,@%+=*-]|…)+", re.ASCII)
_LIKE_OPTION = re.compile(r"-[^\d]")


def reyn_line(verb: str, *words: str, **options: str | bool) -> str:
    r"""Return a `%reyn` line.

    Args:
        verb: The verb, with its fixed words: ``"mcp login"``.
        words: The words after it, in order. They are quoted if they need it.
        options: The values of options by their names; True for a flag.

    >>> print(reyn_line("mcp login", "my server"), reyn_line("trust", "-x y", hash="ab"))
    %reyn mcp login 'my server' %reyn trust --hash ab -- '-x y'
    """
    quoted = [quote_word(word) for word in words]
    given = [_option(name.replace("_", "-"), value) for name, value in options.items()]
    if any(_LIKE_OPTION.match(word) for word in words):
        return " ".join(["%reyn", verb, *given, "--", *quoted])
    return " ".join(["%reyn", verb, *quoted, *given])


def _option(name: str, value: str | bool) -> str:
    if isinstance(value, bool):
        return f"--{name}"
    apart = value and not value.startswith("-")
    return f"--{name} {quote_word(value)}" if apart else quote_word(f"--{name}={value}")


def quote_word(text: str) -> str:
    r"""Return a text as one word of a `%reyn` line, in quotes if it needs them.

    >>> print(quote_word("README.md"), quote_word("two words"), quote_word('6" of it\'s'))
    README.md 'two words' "6\" of it's"
    """
    return text if _BARE.fullmatch(text) else quote(text)


def quote(text: str) -> str:
    r"""Return a text between quotes, as one word of a line.

    >>> print(quote('say "hi"'), quote(r"it's C:\new"))
    'say "hi"' "it's C:\\new"
    """
    return f"'{text}'" if "'" not in text else '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'
