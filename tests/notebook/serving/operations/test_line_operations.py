"""The text pane's side of the kernel: windows of lines, searches, pieces of long lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from reyn_jupyter.notebook.serving.operations import line_operations as serving_lines
from reyn_jupyter.outputs import line_index as line_index
from tests.notebook.serving.blob_requests import Refused, Viewer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    made = Viewer(tmp_path_factory.mktemp("workspace"), store="memory")
    yield made
    made.close()


def expected_lines(text: str) -> list[str]:
    """The line rule: only a newline ends a line, one carriage return before it goes, a last newline makes no line."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def window(viewer: Viewer, blob: str, first: int = 1, count: int = 500) -> list[str]:
    return [line["text"] for line in viewer.ask("lines.window", blob=blob, first=first, count=count)["lines"]]


texts = some.text(alphabet=some.sampled_from("ab\n\n\r\t é漢\u2028\x0b\U0001f600"), max_size=300)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=texts, first=some.integers(1, 20), small=some.booleans())
def test_a_window_holds_what_splitting_the_text_gives(
    viewer: Viewer, text: str, first: int, small: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if small:
            patch.setattr(line_index, "CHUNK", 64)
        blob = viewer.keep_text(text)
        lines = expected_lines(text)
        answer = viewer.ask("lines.window", blob=blob, first=first, count=7)
        assert answer["total"] == len(lines)
        assert [line["text"] for line in answer["lines"]] == lines[first - 1 : first + 6]
        assert not any(line["more"] for line in answer["lines"])


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=some.binary(max_size=400))
def test_bytes_that_are_no_text_show_replacement_characters(viewer: Viewer, data: bytes) -> None:
    blob = viewer.keep_raw(data)
    assert window(viewer, blob) == expected_lines(data.decode(errors="replace"))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    line=some.text(alphabet="aé漢\U0001f600", max_size=400),
    ending=some.sampled_from(["", "\n", "\r\nx", "\nx\ny"]),
)
def test_the_pieces_of_a_long_line_are_the_line(viewer: Viewer, line: str, ending: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serving_lines, "PIECE", 64)
        text = f"before\n{line or 'x'}{ending}"
        blob = viewer.keep_text(text)
        pieces, offset, seen = "", 0, 0
        while offset is not None:
            piece = viewer.ask("lines.whole", blob=blob, line=2, offset=offset)
            assert piece["offset"] == offset
            assert (piece["previous"] is None) == (offset == 0)
            pieces, offset, seen = pieces + piece["text"], piece["next"], seen + 1
        assert pieces.removesuffix("\r") == (line or "x")
        assert seen >= len(line.encode()) // 64


def test_a_line_that_is_cut_says_how_long_it_is(viewer: Viewer) -> None:
    blob = viewer.keep_text("short\n" + "é" * 5_000_000 + "\nlast")
    shown = viewer.ask("lines.window", blob=blob)
    assert shown["total"] == 3
    assert [len(line["text"]) for line in shown["lines"]] == [5, serving_lines.SHOWN, 4]
    assert [line["more"] for line in shown["lines"]] == ["", "10.0 MB in all", ""]
    assert shown["lines"][1]["text"] == "é" * (serving_lines.SHOWN - 1) + "…"
    middle = viewer.ask("lines.whole", blob=blob, line=2, offset=5_000_001)
    assert (middle["offset"], set(middle["text"])) == (5_000_000, {"é"})
    assert middle["caption"] == "Line 2, bytes 5,000,000 to 5,065,536 of 10,000,000"
    with pytest.raises(Refused, match=r"no line 9: the text has 3 lines"):
        viewer.ask("lines.whole", blob=blob, line=9)


def test_an_empty_text_has_no_lines(viewer: Viewer) -> None:
    blob = viewer.keep_text("")
    assert viewer.ask("lines.window", blob=blob) == {"first": 1, "total": 0, "lines": []}
    assert viewer.ask("lines.find", blob=blob, text="x") == {"matches": [], "next": None}


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    text=some.text(alphabet="aAbBé\n漢", max_size=300),
    wanted=some.text(alphabet="aAbBé漢", min_size=1, max_size=3),
    ignore=some.booleans(),
    block=some.sampled_from([16, 64, 1 << 20]),
)
def test_a_search_finds_the_lines_that_python_finds(
    viewer: Viewer, text: str, wanted: str, ignore: bool, block: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serving_lines, "BLOCK", block)
        blob = viewer.keep_text(text)
        found = viewer.ask("lines.find", blob=blob, text=wanted, ignore_case=ignore)
        pattern = re.compile(re.escape(wanted), re.IGNORECASE if ignore else 0)
        expected = [
            (number, len(line[: match.start()].encode()))
            for number, line in enumerate(expected_lines(text), 1)
            if (match := pattern.search(line))
        ]
        assert [(each["line"], each["offset"]) for each in found["matches"]] == expected
        assert found["next"] is None


def test_a_search_goes_on_where_it_ended(viewer: Viewer) -> None:
    blob = viewer.keep_text("".join(f"{'hit' if number % 3 == 0 else 'miss'}\n" for number in range(5000)))
    found: list[dict[str, Any]] = []
    start: int | None = 0
    while start is not None:
        page = viewer.ask("lines.find", blob=blob, text="HIT", start=start, limit=400)
        found += page["matches"]
        start = page["next"]
    assert [each["line"] for each in found] == list(range(1, 5001, 3))


def test_one_long_line_has_many_matches(viewer: Viewer) -> None:
    blob = viewer.keep_text(("x" * 9_990 + "needle 漢,") * 300)
    found = viewer.ask("lines.find", blob=blob, text="needle 漢")["matches"]
    assert [each["line"] for each in found] == [1] * 300
    assert [each["offset"] for each in found] == [9_990 + 10_001 * number for number in range(300)]


def test_a_regular_expression_finds_lines_and_a_wrong_one_says_why(viewer: Viewer) -> None:
    blob = viewer.keep_text("alpha 1\nbeta\ngamma 22\n")
    found = viewer.ask("lines.find", blob=blob, text=r"\d+$", regex=True)
    assert [each["line"] for each in found["matches"]] == [1, 3]
    with pytest.raises(Refused, match=r"not a usable pattern.*RE2"):
        viewer.ask("lines.find", blob=blob, text="(", regex=True)


def test_a_byte_is_found_in_its_line(viewer: Viewer) -> None:
    blob = viewer.keep_text("ab\ncdef\n")
    places = [viewer.ask("lines.at", blob=blob, byte=byte) for byte in (0, 2, 3, 6, 7, 999)]
    assert [(place["line"], place["offset"]) for place in places] == [
        (1, 0),
        (1, 2),
        (2, 0),
        (2, 3),
        (2, 4),
        (2, 4),
    ]
    empty = viewer.keep_text("")
    assert viewer.ask("lines.at", blob=empty, byte=5) == {"line": 1, "offset": 0}


def test_no_window_shows_a_part_of_a_secret(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_API_KEY", "correct-horse-battery-staple")
    viewer.session.parts.services.redactor.refresh()
    inside = "correct-horse-battery-staple"
    key = "\n".join(
        ["-----BEGIN RSA PRIVATE KEY-----", *["MIIEpAIBAAKCAQEA" * 4] * 12, "-----END RSA PRIVATE KEY-----"]
    )
    blob = viewer.keep_text(
        "x" * (serving_lines.SHOWN - 10) + inside + "\n" + key + "\nafter\n" + "y" * 65_520 + inside
    )
    shown = [window(viewer, blob, first, 1)[0] for first in range(1, 18)]
    assert shown[0].startswith("xxx")
    assert shown[15] == "after"
    pieces = [
        viewer.ask("lines.whole", blob=blob, line=17, offset=offset)["text"] for offset in (0, 65_525, 65_530)
    ]
    everything = "\n".join([*shown, *pieces])
    for part in ("correct", "horse", "battery", "staple", "MIIE"):
        assert part not in everything
