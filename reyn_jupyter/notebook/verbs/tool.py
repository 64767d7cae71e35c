"""`%%reyn tool NAME`: the cell's code becomes a tool, which runs in a sandbox."""

from __future__ import annotations

import ast
import json
from typing import Annotated, Any

from pydantic import Field

from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line.options import Option, Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.overviews.tool_overview import ToolActionError
from reyn_jupyter.sessions.result_objects import Card
from reyn_jupyter.support.python_source import parse_source

_EXAMPLE = 'def execute(params):\n    """Reverse a text."""\n    return params["text"][::-1]'


class ToolOptions(Options):
    name: Annotated[str | None, Positional("NAME")] = None
    about: Annotated[
        str | None,
        Option(takes="TEXT"),
        Field(description="what the tool does; the docstring of execute if left out"),
    ] = None
    parameters: Annotated[
        str | None,
        Option(takes="JSON"),
        Field(description="what it takes, as JSON or the name of a variable; any object if left out"),
    ] = None
    permission: Annotated[
        str,
        Option(takes="A,B"),
        Field(description="what it may reach: network:api.example.org, read:data, write:out"),
    ] = ""
    tag: Annotated[str, Option(takes="A,B"), Field(description="tags to find it by")] = ""


def run(context: Context, options: ToolOptions) -> Card:
    if options.name is None:
        raise ReynError("A tool needs a name.", "%%reyn tool string_reverse, and the code below.")
    code = context.body or ""
    if not code.strip():
        raise ReynError("The code of the tool goes into the cell below.", f"For example:\n{_EXAMPLE}")
    given: dict[str, Any] = {
        "name": options.name,
        "description": options.about or _docstring(code) or f"The tool {options.name}.",
        "code": code,
    }
    if options.parameters is not None:
        given["parameters"] = _parameters(context, options.parameters)
    for key, words in (("permissions", options.permission), ("tags", options.tag)):
        if several := [each.strip() for each in words.split(",") if each.strip()]:
            given[key] = several
    try:
        return context.session.create_tool(**given)
    except ToolActionError as error:
        raise ReynError(error.message, error.hint) from None


def _docstring(code: str) -> str | None:
    """Return the first paragraph of what `execute` says of itself, or the module."""
    try:
        module = parse_source(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    found = [each for each in module.body if isinstance(each, functions) and each.name == "execute"]
    text = next((text for each in (*found, module) if (text := ast.get_docstring(each))), None)
    return None if text is None else " ".join(text.partition("\n\n")[0].split())


def _parameters(context: Context, given: str) -> Any:
    if given.isidentifier() and given in context.shell.user_ns:
        return context.shell.user_ns[given]
    try:
        return json.loads(given)
    except ValueError:
        raise ReynError(
            "--parameters is no JSON, and no variable of that name is there.",
            """--parameters '{"text": {"type": "string", "required": true}}'""",
        ) from None


VERB = Verb(
    "tool",
    "make the cell's code a tool that runs in a sandbox, for you and for models",
    run,
    ToolOptions,
    ("%%reyn tool string_reverse", "%%reyn tool fetch_rates --permission network:api.example.org"),
    takes_body=True,
    group="change",
)
