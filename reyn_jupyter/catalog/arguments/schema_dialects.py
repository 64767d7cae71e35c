"""Translation of schemas of any JSON Schema draft from 4 to 2020-12 into draft 2020-12.

Invariants: a translated schema means what the original means in its own draft; where ``$schema`` names no draft, it is
2020-12, with the forms of older drafts, of OpenAPI 3.0 and of type names in programming languages understood where
2020-12 has no meaning for them. A schema that is 2020-12 already comes out as the very object. What has no such form is
left as it is, for the validator to name. Pure: no reference is followed, and nothing is fetched.
Source: JSON Schema, release notes of drafts 4 to 2020-12.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Any
from urllib.parse import unquote

from reyn_jupyter.catalog.text_normalization import quoted


class SchemaError(ValueError):
    """A schema is no sound JSON Schema; `path` says where in it, as far as that is known."""

    def __init__(self, message: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.path = path


class UnknownDialectError(SchemaError):
    """A schema names a dialect that is none of the known drafts."""


class Dialect(IntEnum):
    """A draft of JSON Schema; later drafts compare as greater."""

    DRAFT_04 = 4
    DRAFT_06 = 6
    DRAFT_07 = 7
    DRAFT_2019_09 = 2019
    DRAFT_2020_12 = 2020


_DIALECTS: Mapping[str, Dialect] = {
    "json-schema.org/draft-04/schema": Dialect.DRAFT_04,
    "json-schema.org/draft-06/schema": Dialect.DRAFT_06,
    "json-schema.org/draft-07/schema": Dialect.DRAFT_07,
    "json-schema.org/draft/2019-09/schema": Dialect.DRAFT_2019_09,
    "json-schema.org/draft/2020-12/schema": Dialect.DRAFT_2020_12,
    "json-schema.org/schema": Dialect.DRAFT_2020_12,  # "the latest"
    "spec.openapis.org/oas/3.1/dialect/base": Dialect.DRAFT_2020_12,
}
_KNOWN_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_MEANT_TYPES = {
    "dict": "object", "hashmap": "object", "map": "object", "struct": "object", "json": "object",
    "list": "array", "tuple": "array", "arraylist": "array", "set": "array",
    "str": "string", "char": "string", "text": "string", "date": "string",
    "float": "number", "double": "number", "decimal": "number",
    "int": "integer", "long": "integer", "short": "integer", "byte": "integer", "bigint": "integer",
    "bool": "boolean", "none": "null", "undefined": "null",
}  # fmt: skip
_SCHEMAS_BY_NAME = frozenset(
    {"properties", "$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies"}
)
_SCHEMAS = frozenset(
    {"items", "additionalItems", "additionalProperties", "not", "if", "then", "else", "contains"}
    | {"propertyNames", "unevaluatedItems", "unevaluatedProperties"}
)
_LISTS_OF_SCHEMAS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems", "items"})
# Keywords by the draft that brought them; an older draft ignores them.
_BROUGHT: Mapping[Dialect, frozenset[str]] = {
    Dialect.DRAFT_06: frozenset({"const", "contains", "propertyNames"}),
    Dialect.DRAFT_07: frozenset({"if", "then", "else"}),
    Dialect.DRAFT_2019_09: frozenset(
        {"dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties"}
        | {"minContains", "maxContains", "$anchor", "$recursiveRef", "$recursiveAnchor"}
    ),
    Dialect.DRAFT_2020_12: frozenset({"prefixItems", "$dynamicRef", "$dynamicAnchor"}),
}
# What stands beside `$ref` up to draft 7 without meaning anything.
_ASSERTIONS = (
    (_SCHEMAS_BY_NAME - {"$defs", "definitions"}) | _SCHEMAS | _LISTS_OF_SCHEMAS
    | {"type", "enum", "const", "required", "nullable", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"multipleOf", "minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"}
    | {"minProperties", "maxProperties"}
)  # fmt: skip


_OTHER_FORMS = re.compile(
    r'"(?:\$schema|\$recursiveRef|\$recursiveAnchor|dependencies|nullable)": '
    r'|"items": \[|"\$id": "#|"exclusiveM(?:in|ax)imum": [tf]|"required": [^\[]|"properties": n'
    r'|"type": (?:"(?!(?:object|array|string|number|integer|boolean|null)")|\[)'
)


def dialect_of(schema: Mapping[str, Any]) -> Dialect:
    """Return the draft that a schema is written in, by its ``$schema``; 2020-12 where it names none.

    Raises:
        UnknownDialectError: it names another one.

    >>> dialect_of({"$schema": "http://json-schema.org/draft-07/schema#"}).name
    'DRAFT_07'
    """
    named = schema.get("$schema")
    if named is None:
        return Dialect.DRAFT_2020_12
    text = named.strip().lower() if isinstance(named, str) else ""
    found = _DIALECTS.get(text.removeprefix("http://").removeprefix("https://").rstrip("#").rstrip("/"))
    if found is None:
        raise UnknownDialectError(
            f"names the dialect {quoted(named)}, which is none of the JSON Schema drafts 4, 6, 7, 2019-09 and 2020-12",
            ("$schema",),
        )
    return found


def needs_translation(text: str) -> bool:
    """Return whether a schema, as JSON text with Python's spacing, may be in another form than 2020-12.

    It spares most schemas of a large catalog the translation, and says yes too often rather than too rarely.

    >>> needs_translation('{"type": "object"}'), needs_translation('{"type": "dict"}')
    (False, True)
    """
    return _OTHER_FORMS.search(text) is not None


def translate_schema(schema: Mapping[str, Any], types: dict[str, str] | None = None) -> Mapping[str, Any]:
    """Return a schema in draft 2020-12; the same object where it is that already.

    Args:
        schema: of any draft, with JSON Schema's types, or those of BFCL ("dict", "float", "tuple", "any") or of a
            programming language.
        types: gets JSON Pointer (RFC 6901) → the word that stood for a type; of several types, the words as JSON.

    Raises:
        UnknownDialectError: ``$schema`` names a dialect that is not known.

    >>> types = {}
    >>> translate_schema({"type": "dict", "properties": {"x": {"type": "float"}}}, types)["type"], types
    ('object', {'/type': 'dict', '/properties/x/type': 'float'})
    >>> translate_schema({"items": [{"type": "string"}], "minimum": 0, "exclusiveMinimum": True})
    {'prefixItems': [{'type': 'string'}], 'exclusiveMinimum': 0}
    """
    dialect = dialect_of(schema)
    made = _Translator(schema, dialect, {} if types is None else types).part(schema, "")
    return schema if made == schema else made


class _Translator:
    """The translation of one schema.

    Args:
        root: the schema that references point into.
        dialect: the draft that it is in.
        types: gets the words that stood for types.
    """

    def __init__(self, root: Mapping[str, Any], dialect: Dialect, types: dict[str, str]) -> None:
        self._root = root
        self._types = types
        self._has_siblings = dialect >= Dialect.DRAFT_2019_09
        ignored: set[str] = set()
        for draft, keywords in _BROUGHT.items():
            if dialect < draft:
                ignored |= keywords
        self._ignored = frozenset(ignored)
        self._identifier = "id" if dialect == Dialect.DRAFT_04 else "$id"

    def part(self, schema: Any, pointer: str) -> Any:
        """Return one schema within the root, translated."""
        if not isinstance(schema, Mapping):
            return schema
        made: dict[str, Any] = {}
        lone_ref = not self._has_siblings and isinstance(schema.get("$ref"), str)
        for key, value in schema.items():
            if key == "$schema" or key in self._ignored or (lone_ref and key in _ASSERTIONS):
                continue
            here = f"{pointer}/{_escape(str(key))}"
            if key in _SCHEMAS_BY_NAME and isinstance(value, Mapping):
                made[key] = {
                    name: self.part(inner, f"{here}/{_escape(str(name))}") for name, inner in value.items()
                }
            elif key in _SCHEMAS and isinstance(value, Mapping):
                made[key] = self.part(value, here)
            elif key in _LISTS_OF_SCHEMAS and isinstance(value, list | tuple):
                made[key] = [self.part(inner, f"{here}/{place}") for place, inner in enumerate(value)]
            elif key == "type":
                self._put_type(made, value, here)
            elif key == "$ref" and isinstance(value, str):
                made[key] = self._reference(value)
            elif key == "$recursiveRef":
                made["$ref"] = value
            elif key == self._identifier and isinstance(value, str):
                name, text = ("$anchor", value[1:]) if value[:1] == "#" and value[1:] else ("$id", value)
                made[name] = text
            elif key != "$recursiveAnchor":
                made[key] = value
        return _in_todays_words(made)

    def _put_type(self, made: dict[str, Any], value: Any, here: str) -> None:
        if isinstance(value, str) and value not in _KNOWN_TYPES:
            self._types[here] = value
            if meant := _meant(value):
                made["type"] = meant
        elif isinstance(value, list | tuple) and not _KNOWN_TYPES.issuperset(map(str, value)):
            self._types[here] = json.dumps(value, default=str)
            found = [_meant(each) for each in value]
            if None not in found:
                made["type"] = list(dict.fromkeys(found))
        else:
            made["type"] = value

    def _reference(self, ref: str) -> str:
        """Return a reference to a place of the root, where that place has another name in 2020-12."""
        if "tems" not in ref and "dependencies" not in ref:
            return ref
        before, mark, pointer = ref.partition("#/")
        if not mark:
            return ref
        at: Any = self._root
        steps = []
        for step in pointer.split("/"):
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            inner = _step(at, name)
            steps.append(step if not isinstance(at, Mapping) else _renamed(at, name, step))
            at = inner
        return f"{before}#/{'/'.join(steps)}"


def _step(part: Any, name: str) -> Any:
    if isinstance(part, Mapping):
        return part.get(name)
    if isinstance(part, list | tuple) and name.isdecimal() and len(name) < 8 and int(name) < len(part):
        return part[int(name)]
    return None


def _renamed(part: Mapping[str, Any], name: str, step: str) -> str:
    """Return a step of a pointer as the translated part has it."""
    if name == "dependencies":
        return "dependentSchemas"
    if isinstance(part.get("items"), list | tuple) and "prefixItems" not in part:
        return {"items": "prefixItems", "additionalItems": "items"}.get(name, step)
    return step


def _meant(word: object) -> str | None:
    """Return the type that a word stands for; None for one that stands for any value."""
    plain = word.lower() if isinstance(word, str) else ""
    return _MEANT_TYPES.get(plain, plain if plain in _KNOWN_TYPES else None)


def _in_todays_words(schema: dict[str, Any]) -> dict[str, Any]:
    """Say what older drafts and OpenAPI 3.0 say in other keywords, of one schema without those inside it."""
    if isinstance(schema.get("items"), list) and "prefixItems" not in schema:
        after = schema.pop("additionalItems", None)
        schema["prefixItems"] = schema.pop("items")
        if after is not None:
            schema["items"] = after
        if not schema["prefixItems"]:  # which 2020-12 does not have
            del schema["prefixItems"]
    for bound, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(schema.get(bound), bool) and schema.pop(bound) and limit in schema:
            schema[bound] = schema.pop(limit)
    if schema.get("nullable") is True and isinstance(schema.get("type"), str) and "enum" not in schema:
        schema["type"] = [schema["type"], "null"]
        del schema["nullable"]
    for key in ("properties", "required"):
        if schema.get(key, ()) is None:
            del schema[key]
    if isinstance(schema.get("dependencies"), dict):
        _split_dependencies(schema)
    if isinstance(schema.get("properties"), dict):
        _lift_required(schema, schema["properties"])
    return schema


def _split_dependencies(schema: dict[str, Any]) -> None:
    """Say with two keywords what up to draft 7 was said with one."""
    for name, needed in schema.pop("dependencies").items():
        if isinstance(needed, str):  # draft 3
            needed = [needed]
        key = "dependentRequired" if isinstance(needed, list | tuple) else "dependentSchemas"
        if isinstance(schema.setdefault(key, {}), dict):
            schema[key] = {name: needed, **schema[key]}


def _lift_required(schema: dict[str, Any], properties: dict[str, Any]) -> None:
    """Move the "required" of single parameters, as in draft 3, to the list of the schema that holds them."""
    listed = schema.get("required", [])
    for name, part in properties.items():
        if isinstance(part, dict) and isinstance(part.get("required"), bool):
            properties[name] = {key: value for key, value in part.items() if key != "required"}
            if part["required"] and isinstance(listed, list):
                listed = [*listed, *({name} - set(map(str, listed)))]
    if listed:
        schema["required"] = listed


def _escape(token: str) -> str:
    return token.replace("~", "~0").replace("/", "~1")
