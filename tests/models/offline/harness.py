"""A stand-in for the router loop and its actions, for unit tests of the offline model alone.

It answers the wrappers with the shapes that the real catalog has, over one little world in memory. What the model
is worth in the real session is measured by `rates.py`.
"""

from __future__ import annotations

import fnmatch
import io
import json
import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pandas as pd

from reyn_jupyter.backends.object_summary import describe
from reyn_jupyter.backends.sql.sql_frames import as_table
from reyn_jupyter.models.offline import answer
from tests.models.offline.worlds import World

Schema = dict[str, Any]
INLINE = 800
ROUNDS = 8
PAGE = 40  # items of a listing at most, as the real one is bounded by bytes


@cache
def _database() -> Any:
    """An empty database: making one takes longer than most queries."""
    import duckdb

    return duckdb.connect()


def schema(required: tuple[str, ...] = (), **properties: str) -> Schema:
    shapes = {name: {"type": kind} for name, kind in properties.items()}
    return {"type": "object", "properties": shapes, "required": list(required)}


TEXT = "string"
_REMEMBER = schema(
    ("slug", "name", "description", "type", "body"),
    slug=TEXT,
    name=TEXT,
    description=TEXT,
    type=TEXT,
    body=TEXT,
)
OPERATIONS: dict[str, tuple[str, Schema]] = {
    "file__delete": ("Delete one file.", schema(("path",), path=TEXT)),
    "file__edit": (
        "Change a part of an existing text file.",
        schema(
            ("path", "old_string", "new_string"), path=TEXT, old_string=TEXT, new_string=TEXT, replace_all="boolean"
        ),
    ),
    "file__glob": ("Find files by their path.", schema(("pattern",), pattern=TEXT, path=TEXT)),
    "file__grep": (
        "Search in the text of files.",
        schema(("pattern",), pattern=TEXT, path=TEXT, glob=TEXT, case_sensitive="boolean", max_results="integer"),
    ),
    "file__list": ("List what lies in one folder.", schema(("path",), path=TEXT)),
    "file__read": ("Read a text file.", schema(("path",), path=TEXT, offset="integer", limit="integer")),
    "file__write": ("Create a file, or replace its content.", schema(("path", "content"), path=TEXT, content=TEXT)),
    "memory_operation__forget": ("Forget a memory.", schema(("layer", "slug"), layer=TEXT, slug=TEXT)),
    "memory_operation__remember_agent": (
        "Keep a memory for this agent.",
        _REMEMBER,
    ),
    "memory_operation__remember_shared": (
        "Keep a memory for every agent.",
        _REMEMBER,
    ),
    "table__query": (
        "Run SQL over frames and files.",
        schema(("sql", "sources"), sql=TEXT, sources="object", limit="integer"),
    ),
}  # fmt: skip


@dataclass
class Talk:
    """What one prompt led to: the answer, the calls in order, and every text that the model saw."""

    text: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)

    @property
    def actions(self) -> list[str]:
        return [str(arguments["action_name"]) for name, arguments in self.calls if name == "invoke_action"]


class Desk:
    """One conversation with the offline model over a world. `flat` offers every action as a tool of its own."""

    def __init__(self, world: World, *, flat: bool = False) -> None:
        self.world = world
        self.files = dict(world.files)
        self.memories: dict[str, tuple[str, str]] = {}
        self.blobs: list[str] = []
        self.flat = flat
        self.schemas: dict[str, Schema] = {}  # of functions, where annotations do not say it
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": "You are an agent."}]

    # -- what is on offer -------------------------------------------------------------------------------------------

    @property
    def actions(self) -> dict[str, tuple[str, Schema]]:
        found = dict(OPERATIONS)
        for name, held in self.world.variables.items():
            found[f"variable__{name}"] = (f"{type(held).__name__} {name}", schema(rows="integer"))
        for function in self.world.functions:
            kinds = {"float": "number", "int": "integer", "str": "string"}
            named = {k: kinds.get(v, "object") for k, v in function.__annotations__.items() if k != "return"}
            optional = len(function.__defaults__ or ())
            required = tuple(named)[: len(named) - optional]
            name = f"function__{function.__name__}"
            found[name] = (function.__doc__ or "", self.schemas.get(name) or schema(required, **named))
        for slug, (description, _) in self.memories.items():
            found[f"memory_entry__{slug}"] = (description, schema())
        return dict(sorted(found.items()))

    @property
    def tools(self) -> list[dict[str, Any]]:
        inspect = ("inspect", "Look into a stored result.", schema(("blob_id",), blob_id=TEXT, selector=TEXT))
        if self.flat:
            specs = [(name, *face) for name, face in self.actions.items()]
        else:
            names = ["file", "function", "memory_entry", "memory_operation", "table", "variable"]
            listing = schema(filter=TEXT, offset="integer", limit="integer")
            listing["properties"]["category"] = {"type": "array", "items": {"type": "string", "enum": names}}
            specs = [
                ("list_actions", "Find out which actions exist.", listing),
                ("describe_action", "Show one action.", schema(("action_name",), action_name=TEXT)),
                (
                    "invoke_action",
                    "Run one action.",
                    schema(("action_name", "args"), action_name=TEXT, args="object"),
                ),
            ]
        return [
            {"type": "function", "function": {"name": name, "description": text, "parameters": shape}}
            for name, text, shape in [*specs, inspect]
        ]

    # -- the loop ---------------------------------------------------------------------------------------------------

    def ask(self, prompt: str) -> Talk:
        self.messages.append({"role": "user", "content": prompt})
        talk = Talk()
        for _ in range(ROUNDS):
            message = answer(
                {"model": "offline", "messages": self.messages, "tools": self.tools, "tool_choice": "auto"}
            )
            self.messages.append(message)
            if not message["tool_calls"]:
                talk.text = message["content"]
                return talk
            for call in message["tool_calls"]:
                name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
                talk.calls.append((name, arguments))
                text = self.run(name, arguments)
                talk.seen.append(text)
                self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        raise AssertionError(f"no answer after {ROUNDS} rounds: {talk.calls}")

    def run(self, name: str, arguments: dict[str, Any]) -> str:
        if name == "list_actions":
            return self._list(arguments)
        if name == "inspect":
            return self._inspect(**arguments)
        if name == "invoke_action":
            name, arguments = arguments["action_name"], arguments["args"]
        if name not in self.actions:
            return _json(
                {"error": f"Unknown action {name!r}", "suggestions": [], "hint": "Use list_actions."}
            )
        return self.stored(self._invoke(name, arguments))

    def stored(self, text: str) -> str:
        if len(text.encode()) <= INLINE:
            return text
        self.blobs.append(text)
        number = f"00000000-0000-7000-8000-{len(self.blobs):012d}"
        value = _parsed(text)
        if isinstance(value, list):
            return f"[blob:{number}] json_array | {len(value)} entries\n── head ──\n{text[:200]}"
        if isinstance(value, dict):
            return f"[blob:{number}] json_object | {len(value)} keys\n── keys ──\n{text[:200]}"
        return f"[blob:{number}] text | {len(text.splitlines())} lines\n── head ──\n{text[:200]}"

    def _list(self, arguments: dict[str, Any]) -> str:
        chosen = arguments.get("category")
        items = [
            {"qualified_name": name, "description": text, "input_schema": shape}
            for name, (text, shape) in self.actions.items()
            if not chosen or name.partition("__")[0] in chosen
        ]
        words = str(arguments.get("filter", "")).lower()
        items = [i for i in items if words in f"{i['qualified_name']} {i['description']}".lower()]
        offset = int(arguments.get("offset", 0))
        page = items[offset : offset + min(PAGE, int(arguments.get("limit", 20)))]
        following = {"next_offset": offset + len(page)} if offset + len(page) < len(items) else {}
        return _json({"items": page, "total": len(items), **following})

    def _inspect(self, blob_id: str, selector: str = "") -> str:
        text = self.blobs[int(blob_id[-12:]) - 1]
        value = _parsed(text)
        part = re.fullmatch(r"(slice|bytes|lines):(\d+)(?:\.\.|-)(\d+)", selector)
        if part is None:
            return f"{len(text)} bytes\n{text[:300]}\n1 values left · next: key:columns"
        kind, first, last = part.group(1), int(part.group(2)), int(part.group(3))
        if kind == "bytes":
            return text.encode()[first:last].decode(errors="ignore")
        every = value if kind == "slice" else text.splitlines()
        shown = every[first:last] if kind == "slice" else every[first - 1 : last]
        unit = "entries" if kind == "slice" else "lines"
        left = f"\n{max(0, len(every) - last)} {unit} left"
        return (_json(shown) if kind == "slice" else "\n".join(shown)) + left

    # -- the actions ------------------------------------------------------------------------------------------------

    def _invoke(self, name: str, given: dict[str, Any]) -> str:
        category, _, entry = name.partition("__")
        try:
            return str(getattr(self, f"_{category}")(entry, given))
        except (KeyError, ValueError, TypeError) as error:
            return _json({"error": f"{type(error).__name__}: {error}", "hint": "Correct the arguments."})

    def _file(self, entry: str, given: dict[str, Any]) -> str:
        path = str(given.get("path", "."))
        below = {name: text for name, text in self.files.items() if path == "." or name.startswith(path)}
        if entry == "list":
            names = sorted({name.removeprefix(path).strip("/").split("/")[0] for name in below})
            return _json({"entries": [{"name": name, "type": "file"} for name in names]})
        if entry == "glob":
            last = str(given["pattern"]).rsplit("/", 1)[-1]
            paths = [name for name in below if fnmatch.fnmatch(name.rsplit("/", 1)[-1], last)]
            return _json({"paths": paths, "total": len(paths)})
        if entry == "grep":
            flags = 0 if given.get("case_sensitive", True) else re.IGNORECASE
            found = [
                f"{name}:{number}:{line}"
                for name, text in below.items()
                for number, line in enumerate(text.splitlines(), 1)
                if re.search(given["pattern"], line, flags)
            ]
            return "\n".join(found) or f"── no match in {len(below)} files"
        if entry == "write":
            self.files[path] = given["content"]
            return _json({"bytes": len(given["content"]), "created": True})
        if path not in self.files:
            return _json({"error": f"no file {path!r}", "hint": "List the folder."})
        if entry == "edit":
            count = self.files[path].count(given["old_string"])
            if count != 1:
                return _json(
                    {"error": f"old_string is there {count} times", "hint": "Give more of its surroundings."}
                )
            self.files[path] = self.files[path].replace(given["old_string"], given["new_string"])
            return _json({"replacements": 1})
        lines = self.files[path].split("\n")
        start = int(given.get("offset", 1)) - 1
        return "\n".join(lines[start : start + int(given.get("limit", len(lines)))])

    def _table(self, entry: str, given: dict[str, Any]) -> str:
        import duckdb

        try:
            found = self.query(given)
        except duckdb.Error as error:
            return _json({"error": str(error), "hint": "Correct the SQL."})
        return str(found.to_json(orient="records", date_format="iso", double_precision=15))

    def query(self, given: dict[str, Any]) -> pd.DataFrame:
        """The rows of a query over the world's frames and files; raises `duckdb.Error`."""
        with _database().cursor() as connection:
            for alias, source in given["sources"].items():
                held = self.world.variables.get(source)
                frame = held if held is not None else pd.read_csv(io.StringIO(self.files[source]))
                connection.register(alias, as_table(frame))
            return connection.sql(given["sql"]).df()

    def _variable(self, entry: str, given: dict[str, Any]) -> str:
        held = self.world.variables[entry]
        if isinstance(held, pd.DataFrame):
            return _json(describe(held, 3, head=True))
        if isinstance(held, pd.Series):
            return _json(
                {
                    "type": "Series",
                    "shape": list(held.shape),
                    "dtype": str(held.dtype),
                    "head": list(held[:5]),
                }
            )
        return _json({"type": type(held).__name__, "value": held})

    def _function(self, entry: str, given: dict[str, Any]) -> str:
        function = next(one for one in self.world.functions if one.__name__ == entry)
        made = function(**given)
        return made if isinstance(made, str) else _json(made)

    def _memory_operation(self, entry: str, given: dict[str, Any]) -> str:
        self.memories[given["slug"]] = (f"{given['name']}: {given['description']}", given["body"])
        return _json({"remembered": given["slug"]})

    def _memory_entry(self, entry: str, given: dict[str, Any]) -> str:
        return self.memories[entry][1]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
