"""The border: what a handler gave becomes parts within the bounds, and what was changed is said."""

from __future__ import annotations

from typing import Any

import pytest

from reyn_jupyter.outputs.delivery import deliver
from reyn_jupyter.outputs.parts import content_parts
from reyn_jupyter.outputs.parts.content_parts import (
    CheckedPart,
    ContentPart,
    ContentParts,
    check_parts,
    lone_value,
)
from tests.support.media_samples import png, png_bomb, wav


def checked(*parts: ContentPart) -> tuple[CheckedPart, ...]:
    return check_parts(ContentParts(parts))


def test_each_kind_of_content_is_told_apart() -> None:
    parts = checked(
        ContentPart.of_text("hello"),
        ContentPart("image/png", data=png(640, 480), name="plot.png"),
        ContentPart("audio/wav", data=wav(0.5)),
        ContentPart.of_json({"a": [1, None]}),
        ContentPart.link("https://example.org/report", "The report", "text/html"),
        ContentPart("application/pdf", data=b"%PDF-1.7"),
        ContentPart("text/csv", data=b"a,b\n1,2\n", uri="file:///orders.csv"),
        ContentPart("application/json", json=None),
    )
    kinds = ["text", "image", "audio", "json", "link", "bytes", "text", "json"]
    assert [part.kind for part in parts] == kinds
    assert (parts[1].width, parts[1].height, parts[1].name) == (640, 480, "plot.png")
    assert parts[2].seconds == 0.5
    assert (parts[6].text, parts[6].uri) == ("a,b\n1,2\n", "file:///orders.csv")
    assert not any(part.notes for part in parts)


def test_bytes_that_are_not_what_they_are_said_to_be_are_no_image() -> None:
    [html, renamed, sound] = checked(
        ContentPart("image/png", data=b"<html><script>alert(1)</script>"),
        ContentPart("image/png", data=b"GIF89a\x02\0\x03\0"),
        ContentPart("image/png", data=wav()),
    )
    assert (html.kind, html.mime) == ("bytes", "application/octet-stream")
    assert html.notes == ("it was said to be image/png, and its bytes are not",)
    assert (renamed.kind, renamed.mime, renamed.notes) == (
        "image",
        "image/gif",
        ("it was said to be image/png, and is image/gif",),
    )
    assert (sound.kind, sound.mime) == ("bytes", "application/octet-stream")


def test_an_image_that_unpacks_to_gigabytes_is_kept_and_never_drawn() -> None:
    [bomb, long] = checked(
        ContentPart("image/png", data=png_bomb()), ContentPart("image/png", data=png(100_000, 1))
    )
    assert (bomb.kind, bomb.notes) == ("bytes", ("60000×60000 is too large to be drawn",))
    assert long.kind == "bytes"


def test_svg_is_text_and_nothing_draws_it() -> None:
    source = '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'
    [part, given] = checked(
        ContentPart("image/svg+xml", data=source.encode()), ContentPart("image/svg+xml", text=source)
    )
    assert (part.kind, part.text, given.kind) == ("text", source, "text")


def test_types_and_names_that_are_none_are_said_and_cleaned() -> None:
    [part, name, link] = checked(
        ContentPart("image/png<b>", data=png()),
        ContentPart.of_text("x", name="safe\u202egnp.exe\n" + "y" * 500),
        ContentPart.link("javascript:alert(1)\n//x"),
    )
    assert (part.kind, part.mime) == ("bytes", "application/octet-stream")
    assert part.notes == ("its type was given as 'image/png<b>', which is no MIME type",)
    assert name.name.startswith("safe⟨U+202E⟩gnp.exe␊y") and len(name.name.encode()) <= 120
    assert (link.kind, link.uri) == ("link", "javascript:alert(1)␊//x")


def test_parts_bytes_and_all_of_them_together_have_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    many = checked(*(ContentPart.of_text(str(number)) for number in range(70)))
    assert len(many) == 65
    assert many[-1].notes == ("6 more parts were left out: a result has at most 64",)
    monkeypatch.setattr(content_parts, "MAX_PART_BYTES", 1 << 20)
    monkeypatch.setattr(content_parts, "MAX_TOTAL_BYTES", 2 << 20)
    big = ContentPart("application/zip", data=bytes(1 << 20))
    large = checked(big, ContentPart("application/zip", data=bytes((1 << 20) + 1)), big, big)
    assert [part.kind for part in large] == ["bytes", "omitted", "bytes", "omitted"]
    assert large[1].notes == ("it has 1,048,577 bytes, and a part may have 1 MiB",)
    assert large[3].notes == ("it passes the 2 MiB that all parts may have together",)


class Hostile(str):
    __slots__ = ()

    def strip(self, *_: Any) -> str:
        raise SystemExit

    def __repr__(self) -> str:
        raise SystemExit


def test_what_is_of_another_type_than_it_should_be_is_left_out() -> None:
    odd: Any = object()
    parts = checked(
        ContentPart("text/plain", text=odd),
        ContentPart("image/png", data=odd),
        ContentPart(odd, text="x"),
        ContentPart("text/plain", text="x", name=odd, uri=odd, audience=odd),
        ContentPart.of_text(Hostile("fine"), name=Hostile("n")),
        ContentPart.of_text("half \ud800"),
    )
    assert [part.kind for part in parts] == ["omitted", "omitted", "text", "text", "text", "text"]
    assert parts[0].notes == ("its text is object, not a string",)
    assert (parts[4].text, parts[5].text) == ("fine", "half \ufffd")


class Sly(ContentParts):
    @property
    def parts(self) -> Any:  # type: ignore[override]
        raise SystemExit

    def __iter__(self) -> Any:
        raise SystemExit


class SlyPart(ContentPart):
    @property
    def data(self) -> Any:  # type: ignore[override]
        raise SystemExit


async def test_an_object_that_answers_for_its_parts_is_not_asked() -> None:
    empty = object.__new__(ContentParts)
    odd = object.__new__(ContentParts)
    object.__setattr__(odd, "parts", [1, 2])
    sly = object.__new__(Sly)
    part = object.__new__(SlyPart)
    mixed = object.__new__(ContentParts)
    object.__setattr__(mixed, "parts", (part, 7, ContentPart.of_text("x")))
    for value in (empty, odd, mixed):
        assert all(each.kind == "text" for each in check_parts(value))
        assert (await deliver(value, store=None)).size < 10
    assert lone_value(mixed) == "x"
    assert isinstance(sly, ContentParts)


@pytest.mark.parametrize("held", [{}, {"text": "a", "data": b"b"}, {"text": "a", "json": None}])
def test_a_part_holds_one_thing(held: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="one of text, data and json"):
        ContentPart("text/plain", **held)
    wrong: Any = ["a text"]
    with pytest.raises(ValueError, match="not str"):
        ContentParts(wrong)
