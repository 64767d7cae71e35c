"""A Markdown answer as blocks: what it says stays, what could load or run does not."""

from __future__ import annotations

import pytest

from reyn_jupyter.notebook.render import to_html, to_text, view
from reyn_jupyter.notebook.render.blocks import Bullets, Code, Grid, Heading, Paragraph, Quote, Rule, Span
from reyn_jupyter.notebook.render.hosts.markdown_reader import markdown
from tests.notebook.render.samples import Reader, trace

ANSWER = """# Orders

The *mean* is **4** ~~5~~, from `orders.csv`.
Second line\\
broken here.

1. first
2. second
   - nested

> quoted

| region | mean |
|:-------|-----:|
| north  | 81.2 |
| a\\|b | |

```python
print("x")
```

---
"""


def test_each_construct_becomes_its_block() -> None:
    kinds = [type(block) for block in markdown(ANSWER, "trace.answer")]
    assert kinds == [Heading, Paragraph, Bullets, Quote, Grid, Code, Rule]


def test_inline_marks_nest_and_lines_join() -> None:
    [paragraph] = markdown("a ***b*** `c`\nd\\\ne", "")
    assert isinstance(paragraph, Paragraph)
    assert Span("b", ("emphasis", "strong")) in paragraph.spans
    assert Span("c", ("code",)) in paragraph.spans
    assert "".join(span.text for span in paragraph.spans) == "a b c d\ne"


def test_a_table_keeps_its_alignment_and_its_empty_cells() -> None:
    grid = next(block for block in markdown(ANSWER, "") if isinstance(block, Grid))
    assert [(column.name, column.right) for column in grid.columns] == [("region", False), ("mean", True)]
    assert [[cell.text for cell in row] for row in grid.rows] == [["north", "81.2"], ["a|b", ""]]


def test_a_column_of_numbers_stands_at_the_right_unless_its_dashes_say_otherwise() -> None:
    table = "|a|b|c|d|e|\n|---|---|:---|:--:|---|\n|x|1.5|2|3|4|\n|y|$1,020.25|3|4||\n|z|−7 %|4|5|n/a|"
    [grid] = markdown(table, "")
    assert isinstance(grid, Grid)
    assert [column.right for column in grid.columns] == [False, True, False, False, False]
    [words] = markdown("|a|\n|---|\n||", "")
    assert isinstance(words, Grid) and not words.columns[0].right


def test_a_numbered_list_keeps_its_start() -> None:
    [block] = markdown("7. seven\n8. eight", "")
    assert isinstance(block, Bullets) and block.start == 7
    assert '<ol start="7">' in to_html(view(trace(answer="7. seven\n8. eight")))


def test_html_draws_the_structure_and_text_keeps_it_readable() -> None:
    page = Reader(to_html(view(trace(answer=ANSWER))))
    tags = {tag for tag, _ in page.tags}
    assert {"strong", "em", "s", "code", "ol", "ul", "blockquote", "table", "pre", "hr", "br"} <= tags
    text = to_text(view(trace(answer=ANSWER)))
    for line in (
        "# Orders",
        "1. first",
        "2. second",
        "   • nested",
        "> quoted",
        "north   81.2",
        '    print("x")',
    ):
        assert line in text


def test_headings_of_an_answer_do_not_enter_the_notebook_s_table_of_contents() -> None:
    page = Reader(to_html(view(trace(answer="# Big\n\n###### Small"))))
    assert not [tag for tag, _ in page.tags if tag in ("h1", "h2", "h6")]
    levels = [attributes["aria-level"] for _, attributes in page.tags if "aria-level" in attributes]
    assert levels == ["3", "4", "6"]


@pytest.mark.parametrize(
    "text", ["", "   ", "[", "**", "```", "|", "> > > >", "\x00", "[a](", "![", "&#0;&lt;"]
)
def test_broken_markdown_is_still_an_answer(text: str) -> None:
    assert to_html(view(trace(answer=text))) and to_text(view(trace(answer=text)))


def test_an_answer_that_nests_too_deeply_is_shown_as_it_was_written() -> None:
    for answer in (">" * 40 + " deepest", "- " * 40 + "deepest"):
        assert "deepest" in to_text(view(trace(answer=answer)))


def test_an_entity_cannot_smuggle_markup() -> None:
    assert "&amp;lt;" not in to_html(view(trace(answer="&lt;script&gt;")))
    assert "<script>" in Reader(to_html(view(trace(answer="&lt;script&gt;")))).text
