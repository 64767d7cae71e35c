"""What the command line of a server takes from the folder it works in, or from the workspace that is open.

Invariants: a server of the user works in an empty folder unless its entry names `cwd`, so a relative path in such an
entry means nothing and is refused; an entry that holds in every workspace runs nothing of an untrusted one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from reyn_jupyter.backends.mcp_servers.manifest import RESERVED
from reyn_jupyter.backends.mcp_servers.server_entry import WORKSPACE, ServerEntry
from reyn_jupyter.support.programs.program_search import is_runner

_RELATIVE = re.compile(r"(?:^|=)\.{1,2}(?:[/:]|$)")
_INTERPRETER = re.compile(
    r"(?:python|pypy|node|nodejs|ruby|perl|lua|java|bash|sh|zsh|dash|ksh|fish|env)[\d.]*w?"
)
_CODE = re.compile(r"\.(?:py|pyz|js|mjs|cjs|jsx|ts|mts|cts|tsx|sh|rb|pl|lua|jar|php)$")
_SUBCOMMANDS = frozenset({"exec", "dlx", "run", "x", "tool", "install"})
# Options of runners and interpreters whose value says where code or configuration is.
_OPTIONS = frozenset({
    "-C", "-p", "-r", "--config", "--config-file", "--cwd", "--dir", "--directory", "--env-file", "--find-links",
    "--from", "--import", "--import-map", "--index", "--index-url", "--extra-index-url", "--loader",
    "--experimental-loader", "--package", "--prefix", "--project", "--python", "--require", "--root", "--script",
    "--userconfig", "--with", "--with-editable", "--with-requirements",
})  # fmt: skip


def relative_path_problem(command: str, args: Sequence[str], cwd: Path | None) -> str | None:
    """Return which relative path of a server means nothing, as a clause that says what to write, or None.

    An argument counts as a relative path if it is, or begins with, `.` or `..` (`--root=./data` too).

    >>> relative_path_problem("mcp-server-git", ["--repository", "."], None).partition(";")[0]
    "its argument '.' is relative, and the server works in an empty folder"
    """
    if cwd is not None:
        if cwd.is_absolute():
            return None
        return f'its "cwd" {str(cwd)!r} is relative; write an absolute path, or {WORKSPACE} for the workspace'
    if "/" in command and not Path(command).is_absolute():
        what, word = "command", command
    else:
        what, word = "argument", next(filter(_RELATIVE.search, args), "")
    if not word:
        return None
    return (
        f"its {what} {word!r} is relative, and the server works in an empty folder; write an absolute path, or "
        f'{WORKSPACE} for the workspace, or name the folder as "cwd"'
    )


def code_of_workspace(entry: ServerEntry) -> str | None:
    """Return the part of a user's entry by which it runs code of whichever workspace is open, or None.

    A workspace that a server only works on is an argument of it: `npx -y PACKAGE ${workspaceFolder}`.
    """
    return next(
        (word for word, is_code in _words(entry) if is_code and WORKSPACE in word),
        None,
    )


def _words(entry: ServerEntry) -> Iterator[tuple[str, bool]]:
    """Yield the words of an entry, and whether each names code or a place where code is looked for."""
    yield entry.command, True
    loads = is_runner(entry.command) or bool(_INTERPRETER.fullmatch(Path(entry.command).name))
    yield entry.cwd or "", loads
    yield from ((value, bool(RESERVED.fullmatch(name))) for name, value in entry.env.items())
    before, option = loads, ""
    for word in entry.args:
        yield (
            word,
            before
            or bool(_CODE.search(word))
            or (loads and {option, word.partition("=")[0]} & _OPTIONS != set()),
        )
        option = word
        if not word.startswith("-") and word not in _SUBCOMMANDS:
            before = False
