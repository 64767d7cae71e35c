"""The servers of ``make mcp-zoo``: packages of npm and PyPI as they are published, which need no key and no network.

In the words of a row `{folder}` is its folder of sample files, `{page}` the address of a local page, `{port}` a free port.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, eq=False)
class Call:
    """One call that only reads, or that writes into the sample files.

    Attributes:
        what: the name of a tool or prompt, or the address of a resource.
        args: its arguments.
        fact: a text that the answer has.
    """

    what: str
    args: Mapping[str, Any]
    fact: str
    kind: Literal["tool", "resource", "prompt"] = "tool"


@dataclass(frozen=True, eq=False)
class ZooServer:
    """One server in a pinned version.

    Attributes:
        name: as in `--only`.
        made_with: the library that speaks the protocol, and its language.
        command: the package's script and its arguments.
        tools: how many tools are offered.
        left_out: how many are not.
        beside: further packages that it needs, with their versions.
        path: of its address, for a server over HTTP; "" for one over pipes.
    """

    name: str
    registry: Literal["npm", "PyPI"]
    requirement: str
    made_with: str
    command: tuple[str, ...]
    tools: int
    calls: tuple[Call, ...]
    left_out: int = 0
    env: Mapping[str, str] = field(default_factory=dict)
    beside: tuple[str, ...] = ()
    path: str = ""


SERVERS = ()
