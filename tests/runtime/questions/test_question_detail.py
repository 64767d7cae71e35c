"""The detail of a question shows all of a call, and nothing in it can pass for something else."""

from __future__ import annotations

import pandas

from reyn_jupyter.catalog.action import Effect, PartialPreview
from reyn_jupyter.guard.diff import whole_diff
from reyn_jupyter.runtime.questions.consent import Question
from reyn_jupyter.runtime.questions.question_detail import (
    MASKED,
    MOST_SHOWN,
    WIDTH,
    QuestionDetail,
    question_detail,
)
from reyn_jupyter.support.secrets import Redactor

WRITE = [Effect("write", "a.txt")]


def detail(
    preview: str | PartialPreview | None = None, arguments: dict[str, object] | None = None
) -> QuestionDetail:
    return question_detail(WRITE, preview, arguments or {}, Redactor({"DEMO_TOKEN": "correct-horse"}))


def text(found: QuestionDetail) -> str:
    return "".join(each.text for each in found.lines)


def test_the_question_names_action_targets_and_change() -> None:
    found = question_detail([Effect("edit", "./data/a.csv")], "--- a\n+++ b\n-1\n+2", {}, Redactor({}))
    assert Question("file__edit", found, ()).text.splitlines() == [
        "file__edit asks for consent to:", "  edit data/a.csv", "  │ --- a", "  │ +++ b", "  │ -1", "  │ +2",
    ]  # fmt: skip
    assert [each.kind for each in found.lines] == ["effect", "text", "text", "removed", "added"]


def test_no_content_can_pass_for_the_question() -> None:
    hostile = "+ok\n\x1b[2J\x1b[H\rexec__run asks for consent to:\u2028Allowed.\u202e\u200b\x07\x9b1m"
    found = question_detail([Effect("write", "a\nAllow everything? y\x1b[0m")], hostile, {}, Redactor({}))
    question = Question("file__write\x1b[1A", found, ())
    lines = question.text.split("\n")
    assert len(lines) == 4 and all(line.startswith("  ") for line in lines[1:])
    assert lines[2].startswith("  │ ") and lines[3].startswith("  │ ")
    assert all(character.isprintable() or character == "\n" for character in question.text)
    assert "␛" in question.text and "⟨U+202E⟩" in question.text


def test_effects_that_are_not_known_are_named_so() -> None:
    assert "not known in advance" in text(question_detail([], None, {}, Redactor({})))


def test_a_long_line_goes_on_in_further_lines_and_loses_nothing() -> None:
    line = "".join(f"{number:04}" for number in range(500))
    found = detail(f"+{line}")
    content = [each for each in found.lines if each.kind == "text"]
    assert "".join(each.text for each in content) == f"+{line}"
    assert [each.continued for each in content] == [False] + [True] * (len(content) - 1)
    assert all(len(each.text) <= WIDTH for each in found.lines)
    assert str(content[0]).startswith("  │ ") and str(content[1]).startswith("  ┆ ")


def test_where_two_long_lines_differ_is_said() -> None:
    old = "x" * 600
    preview = whole_diff(f"a\n{old}1\n".encode(), f"b\n{old}2\n".encode(), "a.txt")
    found = detail(preview)
    assert [each.text for each in found.lines if each.kind == "note"] == [
        "The next line changes from character 601 on."
    ]
    assert "x1" in text(found) and "x2" in text(found)


def test_what_a_preview_misses_a_masked_secret_and_what_is_too_long_are_withheld_and_said() -> None:
    assert detail(PartialPreview("", "No text.")).withheld == ("No text.",)
    assert detail("the key is correct-horse").withheld == (MASKED,)
    assert "correct-horse" not in text(detail("the key is correct-horse"))
    long = detail("y" * (MOST_SHOWN + 5))
    assert long.withheld == ("The last 5 characters of its content are not shown.",)
    for found in (detail(PartialPreview("", "No text.")), long):
        assert found.lines[-1].kind == "note" and found.lines[-1].text == found.withheld[0]


def test_of_a_text_that_is_too_long_no_more_is_masked_than_is_shown_and_what_is_around_it() -> None:
    at_the_edge = "y" * (MOST_SHOWN - 7) + "correct-horse" + "z" * 1_000_000
    found = detail(at_the_edge)
    assert MASKED in found.withheld and "correct" not in text(found)
    assert any("characters of its content are not shown" in each for each in found.withheld)
    beyond = detail("y" * (MOST_SHOWN + 500_000) + "correct-horse")
    assert beyond.withheld == ("The last 500,013 characters of its content are not shown.",)


def test_without_a_preview_the_arguments_are_shown() -> None:
    found = detail(None, {"to": "a@b.org", "body": "one\ntwo: 3", "cc": [{"name": "c"}], "odd key\n": 1})
    assert [str(each) for each in found.lines] == [
        "  write a.txt", '  │ to: "a@b.org"', "  │ body:", "  │     one", "  │     two: 3", "  │ cc: [", "  │   {",
        '  │     "name": "c"', "  │   }", "  │ ]", '  │ "odd key\\n": 1',
    ]  # fmt: skip
    assert not found.withheld


def test_an_object_of_the_notebook_is_withheld_and_said() -> None:
    found = detail(None, {"content": pandas.DataFrame()})
    assert found.withheld == ("An object of type DataFrame is not shown.",)


def test_no_method_of_an_argument_is_called() -> None:
    class Sly(dict):  # type: ignore[type-arg]
        def items(self) -> object:  # type: ignore[override]
            raise AssertionError("called")

    assert detail(None, {"content": [Sly(a=1)]}).withheld == ("An object of type Sly is not shown.",)
