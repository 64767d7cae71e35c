"""Tables in a fixed-width face: cut where there is much, whole where a report is read."""

from __future__ import annotations

from reyn_jupyter.notebook.render import to_text, view
from reyn_jupyter.notebook.render.blocks import Cell, Column, Grid
from reyn_jupyter.notebook.render.hosts.plain_text import text_table, text_width
from reyn_jupyter.sessions.result_objects import Card

SENTENCE = "a sentence that is longer than a column of a table can be and so goes on in the lines below it"


def grid(columns: int, text: str = "82 % (72 to 90) · n/a 6") -> Grid:
    names = (
        Column("check", header=True),
        *(Column(f"variant-{n}", "simulated", right=True) for n in range(columns)),
    )
    rows = (
        tuple(Cell(f"row {n}") if not place else Cell(text) for place in range(columns + 1)) for n in range(3)
    )
    return Grid("", names, tuple(rows))


def test_columns_that_do_not_fit_are_counted_each_in_its_number() -> None:
    assert text_table(grid(12))[-1].startswith("… 7 more columns: variant-5, variant-6")
    assert text_table(grid(6))[-1] == "… 1 more column: variant-5"


def test_a_table_that_is_shown_whole_goes_on_below_under_the_same_first_column() -> None:
    lines = text_table(grid(12), whole=True)
    assert all(text_width(line) <= 120 for line in lines)
    text = "\n".join(lines)
    assert all(f"variant-{n}" in text for n in range(12)) and "more column" not in text
    assert text.count("82 % (72 to 90) · n/a 6") == 36 and "…" not in text
    assert text.count("row 0") == text.count("check") == text.count("\n\n") + 1 > 1


def test_a_table_that_is_shown_whole_wraps_sentences_between_words() -> None:
    made = Grid("", (Column("claim", wide=True, header=True), Column("found"), Column("why", wide=True)),
                ((Cell(SENTENCE), Cell("36 %"), Cell(SENTENCE)), (Cell("short"), Cell("1 %"), Cell("so"))))  # fmt: skip
    assert "…" in "\n".join(text_table(made))
    lines = text_table(made, whole=True)
    start = lines[0].index("why")
    said = " ".join(line[start:].strip() for line in lines[2:-1])
    assert said == SENTENCE and "".join(lines).count("36 %") == 1
    assert lines[-1].startswith("short ") and lines[-1].endswith("so")


def test_wide_letters_and_words_longer_than_a_column_keep_to_their_width() -> None:
    made = Grid("", (Column("a", wide=True), Column("b", wide=True), Column("c", wide=True)),
                ((Cell("漢字の長い列" * 20), Cell("x" * 300), Cell("")),))  # fmt: skip
    assert all(text_width(line) <= 120 for line in text_table(made, whole=True))


def test_an_empty_table_and_one_of_a_single_column_are_shown_whole_too() -> None:
    assert text_table(Grid("nothing", (Column("a"),), ()), whole=True) == ["a", "─", "nothing"]
    assert text_table(Grid("", (), ()), whole=True) == text_table(Grid("", (), ()))


def test_lines_to_type_stand_below_each_other() -> None:
    said = to_text(view(Card("help", "Title", (), (), ("%reyn list", "%reyn help"))))
    assert said.rstrip().endswith("Try: %reyn list\n     %reyn help")
