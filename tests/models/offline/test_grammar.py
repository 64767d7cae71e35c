"""What the offline model understands, one sentence of its grammar at a time, over little worlds in memory."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.models.offline.harness import Desk
from tests.models.offline.worlds import WORLDS, Function, World


def ask(world: str, prompt: str) -> str:
    return Desk(WORLDS[world]).ask(prompt).text


@pytest.mark.parametrize(
    ("world", "prompt", "expected"),
    [
        ("clinic", "list the files", "`visits.csv`"),
        ("energy", "find all .csv files", "`data/meters.csv`"),
        ("shop", 'search for "supplier"', "todo.txt:2:"),
        ("clinic", "read notes/protocol.md", "Check the referral"),
        ("library", "print lines 2-3 of rules.txt", "Food is not allowed upstairs."),
        ("clinic", "how many rows does visits.csv have?", "**220**"),
        ("library", "describe loans", "90 rows and 5 columns"),
        ("clinic", "what is in visits.csv?", "`visits.csv` has 220 rows and these columns:"),
        ("clinic", "what does visits.csv contain?", "First rows:"),
        ("clinic", "print visits.csv", "```\nvisit"),
        ("birds", "what is threshold?", "0.8"),
        ("energy", "call kwh_to_co2 with kwh=1000", "**233**"),
        ("library", "late_fee(12)", "**3**"),
        ("shop", "what does slugify do?", "with hyphens"),
        ("shop", "what can you do?", "`file__read`"),
    ],
)
def test_each_verb_of_the_grammar_is_understood(world: str, prompt: str, expected: str) -> None:
    assert expected in ask(world, prompt)


@pytest.mark.parametrize(
    ("prompt", "gold"),
    [
        ("mean unit_price in sales", "sales.unit_price.mean()"),
        (
            "median quantity in sales for Turku and Oslo",
            "sales[sales.store.isin(['Turku', 'Oslo'])].quantity.median()",
        ),
        ("how many sales were not returned?", "(~sales.returned).sum()"),
        ("number of distinct products in sales", "sales['product'].nunique()"),
        ("total quantity in sales in March 2024", "sales[sales.sold_on.dt.month == 3].quantity.sum()"),
        ("how many sales after 2024-11-01?", "(sales.sold_on > '2024-11-01').sum()"),
        ("count sales with quantity at least 8", "(sales.quantity >= 8).sum()"),
        ("how many sales with unit_price between 20 and 30", "sales.unit_price.between(20, 30).sum()"),
    ],
)
def test_a_question_about_a_frame_is_answered_as_pandas_would(prompt: str, gold: str) -> None:
    expected = float(WORLDS["shop"].gold(gold))
    stated = float(ask("shop", prompt).split("**")[1])
    assert stated == pytest.approx(expected, rel=1e-5)


def test_groups_become_a_table_with_one_row_each() -> None:
    text = ask("shop", "revenue = quantity * unit_price by store in sales, highest first")
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")][2:]
    revenue = WORLDS["shop"].gold("(sales.quantity * sales.unit_price).groupby(sales.store).sum()")
    assert rows == list(revenue.sort_values(ascending=False).index)


def test_two_files_are_joined_on_the_column_they_share() -> None:
    text = ask(
        "clinic", "join visits.csv with patients.csv on patient_id and give me the average fee per city"
    )
    assert all(city in text for city in ("Lund", "Ystad", "Kivik"))


def test_a_column_that_is_not_there_is_no_reason_to_answer_another_question() -> None:
    text = ask("clinic", "what is the mean heart rate per clinic in visits.csv?")
    assert text.startswith("I cannot answer that")
    assert "heart" in text
    assert "`fee`" in text


def test_a_replacement_uses_the_edit_and_changes_nothing_else() -> None:
    desk = Desk(WORLDS["energy"])
    talk = desk.ask("change retries: 4 to retries: 6 in settings.yaml")
    assert talk.actions == ["file__edit"]
    assert desk.files["settings.yaml"] == "timezone: Europe/Brussels\nretries: 6\nunits: kwh\n"


def test_a_word_for_every_place_declines_an_edit_unless_it_is_in_the_quoted_text() -> None:
    desk = Desk(WORLDS["energy"])
    before = desk.files["settings.yaml"]
    assert "file__edit" not in desk.ask('replace every "kwh" with "mwh" in settings.yaml').actions
    assert desk.files["settings.yaml"] == before
    desk.ask('change "kwh" to "all of it" in settings.yaml')
    assert "units: all of it" in desk.files["settings.yaml"]


def test_a_text_is_written_to_a_new_file() -> None:
    desk = Desk(WORLDS["shop"])
    desk.ask('write "restock vases" to ideas.txt')
    assert desk.files["ideas.txt"] == "restock vases\n"


def test_what_is_remembered_is_recalled_later() -> None:
    desk = Desk(WORLDS["birds"])
    desk.ask("remember that the ferry to Skerry leaves at 05:40")
    assert "05:40" in desk.ask("what do you remember about the ferry?").text
    assert desk.ask("what do you remember about the boat insurance?").text.startswith("I cannot answer that")


def test_a_missing_argument_is_asked_for_and_never_made_up() -> None:
    text = ask("clinic", "call bmi with weight_kg=82")
    assert text.startswith("I cannot answer that")
    assert "height_m" in text


def test_outside_the_grammar_it_says_what_it_is_and_shows_three_ready_lines() -> None:
    text = ask("clinic", "will it rain in Lund tomorrow?")
    assert text.startswith("I am the offline model, not a language model")
    lines = [line for line in text.splitlines() if line.startswith("%reyn invoke ")]
    assert len(lines) == 3
    assert not any("delete" in line for line in lines)


def test_only_the_first_answer_of_a_conversation_says_that_it_is_the_offline_model() -> None:
    desk = Desk(WORLDS["clinic"])
    assert "offline model" in desk.ask("read notes/staffing.txt").text
    assert "offline model" not in desk.ask("how many visits are in visits.csv?").text


def test_the_last_text_of_a_conversation_counts() -> None:
    desk = Desk(WORLDS["shop"])
    desk.ask("how many sales were returned?")
    assert desk.ask("number of sales per store").text.count("|") > 8


def test_every_action_is_listed_before_it_is_called() -> None:
    for world, prompt in (
        ("clinic", "mean fee in visits.csv"),
        ("library", "late_fee(3)"),
        ("shop", "read report.md"),
    ):
        talk = Desk(WORLDS[world]).ask(prompt)
        assert talk.calls[0][0] == "list_actions"
        shown = "".join(
            text for (name, _), text in zip(talk.calls, talk.seen, strict=True) if name == "list_actions"
        )
        assert all(f'"{action}"' in shown for action in talk.actions)


def test_with_every_action_as_a_tool_of_its_own_the_answers_are_the_same() -> None:
    for prompt in (
        "mean fee per clinic in visits.csv",
        "read notes/staffing.txt",
        "bmi(70, 1.75)",
    ):
        flat = Desk(WORLDS["clinic"], flat=True).ask(prompt)
        assert flat.text == Desk(WORLDS["clinic"]).ask(prompt).text
        assert all(name != "list_actions" for name, _ in flat.calls)


def test_a_long_result_is_opened_before_it_is_told() -> None:
    desk = Desk(WORLDS["birds"])
    talk = desk.ask("rows per species and sex and site in ringing.csv")
    assert any(name == "inspect" for name, _ in talk.calls)
    assert talk.text.count("\n| ") == 24 + 2


def test_the_levels_of_an_index_are_described_as_columns_with_their_names() -> None:
    levels = pd.MultiIndex.from_product([["north", "south"], [2025, 2026]], names=["region", "year"])
    described = Desk(
        World("levels", {}, {"sales": pd.DataFrame({"amount": [1, 2, 3, 4]}, index=levels)})
    ).ask("describe sales")
    assert "4 rows and 1 column, indexed by `region` and `year`." in described.text
    assert "| north | 2025 | 1 |" in described.text and "index: {" not in described.text


def test_a_wide_frame_is_described_although_its_description_was_stored() -> None:
    frame = pd.DataFrame({f"measure_{number}": [number] for number in range(30)})
    talk = Desk(World("wide", {}, {"wide": frame})).ask("describe wide")
    assert "1 row and 30 columns" in talk.text
    assert "measure\\_29" in talk.text


def test_a_long_file_says_how_much_of_it_is_left() -> None:
    world = World("long", {"long.txt": "\n".join(f"line {number}" for number in range(1, 501))}, {})
    text = Desk(world).ask("read long.txt").text
    assert "line 200\n" in text
    assert "… 300 lines left" in text


def test_more_rows_than_are_shown_are_counted() -> None:
    frame = pd.DataFrame({"key": [f"k{number}" for number in range(120)], "amount": range(120)})
    text = Desk(World("many", {}, {"many": frame})).ask("total amount by key in many").text
    assert "… and 70 more rows" in text


def test_a_frame_is_passed_to_a_function_by_reference() -> None:
    def rows_in(df: object) -> int:
        """How many rows a frame has."""
        return 0

    desk = Desk(World("reference", {}, {"orders": pd.DataFrame({"a": [1]})}, (rows_in,)))
    desk.schemas["function__rows_in"] = {
        "type": "object", "properties": {"df": {"x-reference": True}}, "required": ["df"],
    }  # fmt: skip
    talk = desk.ask("call rows_in with df=orders")
    assert talk.calls[-1][1]["args"] == {"df": {"$var": "orders"}}


def test_among_hundreds_of_functions_the_one_that_is_meant_is_found_and_called() -> None:
    def many(number: int) -> Function:
        def function(value: float) -> float:
            return value

        function.__name__, function.__doc__ = f"measure_{number}", f"Measure number {number}."
        return function

    def triangle_area(base: float, height: float) -> float:
        """The area of a triangle from its base and its height."""
        return base * height / 2

    world = World("many", {}, {}, (*(many(number) for number in range(300)), triangle_area))
    talk = Desk(world).ask("Find the area of a triangle with a base of 10 units and a height of 5 units.")
    assert talk.calls[-1] == (
        "invoke_action",
        {"action_name": "function__triangle_area", "args": {"base": 10, "height": 5}},
    )
    assert "**25**" in talk.text
