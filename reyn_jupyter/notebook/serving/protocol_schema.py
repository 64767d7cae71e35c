"""The JSON Schema of the protocol, from which the TypeScript types are made: ``python -m …serving.protocol_schema``."""

from __future__ import annotations

import json
import sys
from typing import Any, get_args

from pydantic import TypeAdapter, create_model
from pydantic.json_schema import GenerateJsonSchema

from reyn_jupyter.notebook.render.blocks import Block
from reyn_jupyter.notebook.serving import protocol
from reyn_jupyter.notebook.serving.operation import ServedOperation, WireMessage, operations

_MESSAGES = (
    "Snapshot",
    "Hello",
    "Welcome",
    "ViewRequest",
    "Cancel",
    "SentCells",
    "ViewAnswer",
    "ViewFailure",
    "ViewProgress",
    "ViewEvent",
)


class _ForTypes(GenerateJsonSchema):
    """Without titles of fields, which would each become a type of its own.

    Whatever has a default is always sent; only a `TypedDict` leaves out what it may.
    """

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:
        return bool(field.get("required", total)) if field["type"] == "typed-dict-field" else True


def schema() -> dict[str, Any]:
    """Return one schema whose properties are every message, and under ``Operations`` each operation's two sides."""
    sides: dict[str, Any] = {name: (_sides(operation), ...) for name, operation in operations().items()}
    table = create_model("Operations", __base__=WireMessage, **sides)
    fields: dict[str, Any] = {name: (getattr(protocol, name), ...) for name in _MESSAGES}
    everything = create_model("Protocol", __base__=WireMessage, Operations=(table, ...), **fields)
    made = TypeAdapter(everything).json_schema(mode="serialization", schema_generator=_ForTypes)
    blocks = {"anyOf": [{"$ref": f"#/$defs/{each.__name__}"} for each in get_args(Block)]}
    named: dict[str, Any] = _named(made, blocks, {"$ref": "#/$defs/Block"})
    named["$defs"]["Block"] = blocks
    return named


def _named(value: Any, union: dict[str, Any], name: dict[str, str]) -> Any:
    """Return a schema in which a union is called by its name wherever it stands."""
    if isinstance(value, list):
        return [_named(each, union, name) for each in value]
    if isinstance(value, dict):
        return name if value == union else {key: _named(each, union, name) for key, each in value.items()}
    return value


def _sides(operation: ServedOperation) -> type[WireMessage]:
    title = "".join(part.title() for part in operation.name.split(".")) + "Operation"
    sides: dict[str, Any] = {"args": (operation.arguments, ...), "answer": (operation.answer, ...)}
    return create_model(title, __base__=WireMessage, **sides)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(schema(), indent=1) + "\n")
