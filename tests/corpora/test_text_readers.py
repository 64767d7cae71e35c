"""Markdown by headings, code by blocks, notebooks by cells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from reyn_jupyter.corpora.document import Document, UnreadableError
from reyn_jupyter.corpora.text_readers import code_reader, markdown_headings, read_markdown, read_notebook
from tests.support.document_samples import notebook


def outline(document: Document) -> list[tuple[str, int]]:
    return [(" › ".join(each.heading), each.first) for each in document.sections]


def test_markdown_is_cut_at_headings_of_both_kinds_and_not_inside_code() -> None:
    text = "intro\n\n# A\n\ntext\n\n```\n# no heading\n```\n\n## B #\nb\n\nC\n===\n\nc\n- x\n---\n"
    document = read_markdown(text)
    assert outline(document) == [("", 1), ("A", 3), ("A › B", 11), ("C", 14)]
    assert "# no heading" in document.sections[1].text


@given(st.text("#=-a \t\r\n>`"))
def test_no_heading_of_any_text_is_overlooked(text: str) -> None:
    tokens = MarkdownIt("commonmark").parse(text)
    lines = [each.map[0] for each in tokens if each.type == "heading_open" and each.level == 0 and each.map]
    assert [line for line, _, _ in markdown_headings(text)] == lines


def test_front_matter_becomes_facts_and_keeps_the_lines_true() -> None:
    document = read_markdown("---\nyear: 2025\ntags: [a, b]\ndate: 2025-01-31\nodd: {a: {}}\n---\n# T\nx")
    assert document.facts == {"year": 2025, "tags": ["a", "b"], "date": "2025-01-31"}
    assert outline(document) == [("T", 7)]


@pytest.mark.parametrize(
    "front", ["a: [", "- 1\n- 2", "a: &x [*x]", "[" * 3000, "!!python/object:os.system {}"]
)
def test_front_matter_that_is_none_costs_nothing_but_its_facts(front: str) -> None:
    assert read_markdown(f"---\n{front}\n---\n# T\nx").sections[-1].heading == ("T",)


def test_python_is_cut_at_functions_classes_and_methods() -> None:
    text = (
        '"""Doc."""\nimport a\n\n@a.b\ndef one():\n    return 1\n\nX = 1\n\nclass Two:\n    """T."""\n\n'
        "    def three(self):\n        def inner(): ...\n"
    )
    assert outline(code_reader("python")(text)) == [
        ("", 1),
        ("one", 4),
        ("", 8),
        ("Two", 10),
        ("Two › three", 13),
    ]


def test_python_that_cannot_be_parsed_and_other_languages_are_cut_at_what_begins_a_block() -> None:
    assert outline(code_reader("python")("import a\n\ndef one(:\n  pass\n")) == [("", 1), ("def one", 3)]
    go = "package main\n\n// Adds.\nfunc Add(a int) int {\n\treturn a\n}\n\ntype T struct {\n}\n"
    assert outline(code_reader("go")(go))[1:] == [("func Add(a int) int", 3), ("type T struct", 8)]


def test_cells_stand_under_the_headings_before_them() -> None:
    document = read_notebook(
        notebook(("markdown", "# Load\nwhy"), ("code", "x = 1"), ("code", ""), ("markdown", "## Plot"))
    )
    assert [(each.first, each.heading, each.unit) for each in document.sections] == [
        (1, ("Load",), "cell"),
        (2, ("Load",), "cell"),
        (4, ("Load", "Plot"), "cell"),
    ]


def test_a_notebook_whose_outputs_hold_what_is_no_number_is_read() -> None:
    written = notebook(("markdown", "# Load")).replace(
        '"metadata": {}', '"metadata": {"y": [NaN, -Infinity]}', 1
    )
    assert read_notebook(written).sections


@pytest.mark.parametrize("text", ["{", "[]", '{"cells": 3}', "[" * 100_000])
def test_what_is_no_notebook_is_refused(text: str) -> None:
    with pytest.raises(UnreadableError, match="no notebook"):
        read_notebook(text)


@pytest.mark.parametrize(
    "line", ["# a" + " " * 5_000_000 + "b", "# " + "# " * 2_000_000, "public " * 700_000, "-" * 5_000_000]
)
def test_a_line_of_megabytes_costs_no_more_than_its_length(line: str) -> None:
    text = f"x\n{line}\n"
    assert read_markdown(text).sections and code_reader("java")(text).sections
