"""How a line after `%reyn` is read: words, quotes, options, literal text; and what is said when it cannot be."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from reyn_jupyter.notebook import verbs
from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line.invoke_line import quote_word
from reyn_jupyter.notebook.magic_line.options import (
    Option,
    Options,
    Positional,
    Rest,
    fields_by_word,
    parse,
    parse_leading,
    quote,
    split,
    usage,
)


class Sample(Options):
    name: Annotated[str, Positional()]
    others: Annotated[tuple[str, ...], Rest()] = ()
    count: Annotated[int, Option("-n", "N"), Field(ge=1, le=9)] = 1
    kind: Annotated[Literal["red", "green"], Option()] = "red"
    from_: Annotated[str | None, Option(takes="STEP"), Field(alias="from")] = None
    fast: Annotated[bool, Option()] = False


class Text(Options):
    model: Annotated[str | None, Option("-m")] = None
    new: Annotated[bool, Option()] = False


def failure(text: str) -> str:
    with pytest.raises(ReynError) as caught:
        parse(Sample, text)
    return str(caught.value)


def test_words_options_and_flags_may_stand_in_any_order() -> None:
    expected = parse(Sample, "first second --count 3 --fast --from 2")
    assert parse(Sample, "--fast --from=2 first -n 3 second") == expected
    assert (expected.name, expected.others, expected.count, expected.from_, expected.fast) == (
        "first", ("second",), 3, "2", True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a 'b c' \"d e\"", ["a", "b c", "d e"]),
        ("""--json '{"sql": "SELECT 1"}'""", ["--json", '{"sql": "SELECT 1"}']),
        ("path=C:\\new\\table $HOME `x` # y", ["path=C:\\new\\table", "$HOME", "`x`", "#", "y"]),
        ("text='it is'", ["text=it is"]),
        (r'''content="say \"hi\""''', ['content=say "hi"']),
        (r""""a\\b" "a\nb" "C:\new" 'a\"b' a\b""", [r"a\b", r"a\nb", r"C:\new", r"a\"b", r"a\b"]),
        ("'' a\"\"", ["", "a"]),
        ("", []),
    ],
)
def test_only_quotes_mean_anything(line: str, words: list[str]) -> None:
    assert split(line) == words


@given(
    st.lists(
        st.text(st.characters(exclude_characters="'", exclude_categories=["Cs"]), min_size=1), max_size=5
    )
)
def test_any_word_survives_in_single_quotes(words: list[str]) -> None:
    assert split(" ".join(f"'{word}'" for word in words)) == words


@given(st.lists(st.text(), max_size=5))
def test_any_words_come_back_from_the_quotes_that_they_are_put_in(words: list[str]) -> None:
    assert split(" ".join(quote(word) for word in words)) == words
    assert split(" ".join(quote_word(word) for word in words)) == words


@given(st.text(), st.text())
def test_a_quoted_value_before_a_question_comes_back(value: str, question: str) -> None:
    options, rest = parse_leading(Text, f"--model={quote(value)} -- {question}x")
    assert options.model == value and rest.endswith("x")


def test_two_dashes_end_the_options() -> None:
    assert parse(Sample, "first -- --fast").others == ("--fast",)


def test_negative_numbers_are_words() -> None:
    assert parse(Sample, "first -2 -1").others == ("-2", "-1")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "NAME is missing."),
        ("x --cuont 3", "There is no option --cuont. Did you mean --count?"),
        ("x --count", "--count needs a value."),
        ("x --count --fast", "--count needs a value."),
        ("x --kind", "--kind needs a value. Choose from red, green."),
        ("x --count many", "--count cannot be 'many': it must be a whole number."),
        ("x --count 0", "--count cannot be '0': it must be at least 1."),
        ("x --count 10", "--count cannot be '10': it must be at most 9."),
        ("x --kind gren", "--kind cannot be 'gren'. Did you mean green?"),
        ("x --kind blue", "--kind cannot be 'blue'. Choose from red, green."),
        ("x -n 3 --count 4", "--count is given twice. Leave one of the two out."),
        ("x --fast --fast", "--fast is given twice."),
        ("'x", "A quote is not closed. Close it, or put the other kind around it."),
    ],
)
def test_what_is_wrong_is_said_in_one_line(line: str, said: str) -> None:
    assert failure(line).startswith(said)
    assert "\n" not in failure(line)


def test_an_option_that_takes_several_values_may_be_repeated() -> None:
    class Several(Options):
        model: Annotated[str | None, Option("-m", "A,B")] = None

    assert parse(Several, "-m one -m two --model=three").model == "one,two,three"


def test_an_option_is_given_once_before_a_question_too() -> None:
    with pytest.raises(ReynError, match="-m is given twice"):
        parse_leading(Text, "-m light -m strong how many?")


def test_help_is_given_whatever_else_is_missing() -> None:
    assert parse(Sample, "--help").help and parse(Sample, "a b -h").help


@pytest.mark.parametrize(
    "text",
    [
        'how many {rows} has "orders.csv"?',
        "what's in it?",
        "$HOME ${x} `ls` \\n %s 100%",
        "emoji 🦉 and ünïcödé",
        "a --flag in the middle -m too",
        "- a dash first",
        "-5 degrees",
        "'one' and 'two'",
    ],
)
def test_a_question_is_literal_text(text: str) -> None:
    options, rest = parse_leading(Text, text)
    assert rest == text and options == Text()


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('-m light "how many?"', "how many?"),
        ("--model=light how many?", "how many?"),
        ("--model 'light' --  --new is a flag", "--new is a flag"),
        ("-m light what's up?", "what's up?"),
    ],
)
def test_options_before_a_question_are_read_and_the_question_is_not(line: str, text: str) -> None:
    options, rest = parse_leading(Text, line)
    assert options.model == "light" and not options.new and rest == text


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_question_comes_through_after_two_dashes(text: str) -> None:
    _, rest = parse_leading(Text, f"-- {text}")
    stripped = text.strip()
    assert rest == stripped or stripped == f"{stripped[:1]}{rest}{stripped[:1]}"


@given(st.text())
def test_no_line_fails_in_any_other_way(line: str) -> None:
    for read in (lambda: parse(Sample, line), lambda: parse_leading(Text, line)):
        try:
            read()
        except ReynError as error:
            assert str(error)


@pytest.mark.parametrize("name", verbs.names())
def test_every_verb_explains_itself(name: str) -> None:
    verb = verbs.find(name)
    assert verb is not None and verb.name == name
    assert (
        verb.summary and verb.examples and all(each.startswith(("%reyn", "%%reyn")) for each in verb.examples)
    )
    assert usage(name, verb.options).startswith(f"%reyn {name}")
    words = fields_by_word(verb.options)
    assert {"-o", "--help", "--debug"} <= set(words)
    for word, field in words.items():
        described = verb.options.model_fields[field].description or field in Options.model_fields
        assert described, f"{name} {word} has no description"
        assert not word.endswith("-") and "_" not in word
