"""A tool that was made at run time, taken over as ordinary files: a module, and tests of its examples.

Invariant: the module holds the tool's code as it runs in the sandbox, byte for byte, below one comment; what is quoted
around it is data, never code.
"""

from __future__ import annotations

import json
import keyword
import re
from dataclasses import dataclass
from pprint import pformat
from typing import TYPE_CHECKING

from reyn_jupyter.dynamic.definition import apply_parameters

if TYPE_CHECKING:
    from reyn_jupyter.dynamic.definition import DynamicTool

_WIDTH = 100


@dataclass(frozen=True)
class ToolFiles:
    """The files that a tool becomes: their names and texts. There are no tests without examples, and in TypeScript."""

    module: str
    code: str
    tests: str | None = None
    test_code: str = ""


def export_tool(tool: DynamicTool) -> ToolFiles:
    """Return a tool as a module, with a test for each of its examples.

    >>> from reyn_jupyter.dynamic.definition import DynamicTool
    >>> tool = DynamicTool.create(name="to-upper", description="Upper case", code="def execute(p):\\n    return 1\\n",
    ...                           at="2026-01-31T09:30:00+00:00", safety_score=1.0, quality_score=0.7)
    >>> export_tool(tool).module
    'to_upper.py'
    """
    name = module_name(tool.name)
    about = " ".join(tool.description.split())
    if tool.mode == "typescript":
        head = f"// {tool.name}: {about}\n\n"
        return ToolFiles(f"{name}.ts", head + tool.code.rstrip() + "\n\nexport { execute };\n")
    code = f"# {tool.name}: {about}\n\n{tool.code.rstrip()}\n"
    if not tool.examples:
        return ToolFiles(f"{name}.py", code)
    cases = [(apply_parameters(tool, each.parameters), each.result) for each in tool.examples]
    lines = [
        f'"""The examples of {json.dumps(tool.name)[1:-1]}, as tests."""',
        "",
        "import asyncio",
        "import inspect",
        "",
        "import pytest",
        "",
        f"from {name} import execute",
        "",
        f"CASES = {pformat(cases, width=_WIDTH, sort_dicts=False)}",
        "",
        "",
        '@pytest.mark.parametrize(("parameters", "result"), CASES)',
        f"def test_{name.lower()}(parameters, result):",
        "    found = execute(parameters)",
        "    assert (asyncio.run(found) if inspect.isawaitable(found) else found) == result",
        "",
    ]
    return ToolFiles(f"{name}.py", code, f"test_{name}.py", "\n".join(lines))


def module_name(name: str) -> str:
    """Return the name of a tool as that of a Python module.

    >>> module_name("to-upper"), module_name("class")
    ('to_upper', 'class_')
    """
    plain = re.sub(r"\W", "_", name)
    return f"{plain}_" if keyword.iskeyword(plain) else plain
