"""Questions about a table: each is answered as pandas would, or refused with the word that has no meaning."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.models.offline.harness import Desk, Talk
from tests.models.offline.worlds import World

DAYS = [
    "2026-01-05",
    "2026-01-31",
    "2026-02-14",
    "2026-03-01",
    "2026-03-07",
    "2026-03-07",
    "2026-04-30",
    "2026-05-02",
]
BASKETS = pd.DataFrame(
    {
        "basket_id": [1, 2, 3, 4, 5, 6, 7, 7],
        "day": pd.to_datetime(DAYS),
        "buyer": [
            "May Flowers",
            "Top Shelf",
            "May Flowers",
            "Acme",
            "Acme",
            "Acme",
            "Top Shelf",
            "Top Shelf",
        ],
        "region": ["north", "south", "north", "east", "south", "north", "east", "east"],
        "quantity": [1, 12, 3, 4, 5, 2, 9, 9],
        "amount": [10.0, 300.0, None, 40.0, 55.5, 20.0, 90.0, 90.0],
        "status": ["paid", "open", "paid", "cancelled", "open", "paid", "paid", "paid"],
        "comment": ["Gift wrap", "", None, "urgent", "gift card", "URGENT call", None, None],
    }
)
BASKETS.loc[7] = BASKETS.loc[6]
WORLD = World("baskets", {}, {"baskets": BASKETS})


def ask(prompt: str) -> Talk:
    return Desk(WORLD).ask(prompt)


def cells(talk: Talk) -> list[list[str]]:
    """The rows of the table in an answer, without its head."""
    lines = [line for line in talk.text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("how many missing values are in baskets", 4),
        ("how many baskets have no comment", 4),
        ("how many baskets with missing comment", 3),
        ("missing values in amount in baskets", 1),
        ("how many duplicate rows are in baskets", 1),
        ("any duplicate basket_id in baskets?", 1),
        ("is basket_id unique in baskets?", 1),
        ("how many different buyers in baskets", 3),
        ("how many regions are in baskets", 3),
        ("what percent of baskets is paid", 62.5),
        ("percentage of the amount that comes from the east in baskets", 100 * 220 / 605.5),
        ("correlation between quantity and amount in baskets", BASKETS["quantity"].corr(BASKETS["amount"])),
        ("how many baskets are neither paid nor cancelled", 2),
        ("how many baskets not in north or south", 3),
        ("total amount of baskets in the north and east", 250),
        ("total amount for May Flowers in baskets", 10),
        ("how many baskets in January and March", 5),
        ("how many baskets from 5 to 31 January", 2),
        ("how many baskets between 14 February and 7 March 2026", 4),
        ("how many baskets before 1 March 2026", 3),
        ("how many baskets in q2 2026", 2),
        ("how many baskets on a weekend", 5),
        ("how many baskets with quantity of 9 or more", 3),
        ("how many baskets with amount not over 55.5", 4),
        ("how many baskets above the average amount", 3),
        ("how many baskets mention gift in the comment", 2),
        ("how many baskets have an amount of more than 1k", 0),
        ("how many baskets did May Flowers get", 2),
        ("how many baskets of at least 9 pieces", 3),
        ("how many baskets have a positive amount", 7),
        ("smallest amount above zero in baskets", 10),
    ],
)
def test_a_number_is_that_of_pandas(prompt: str, expected: float) -> None:
    talk = ask(prompt)
    assert "**" in talk.text, talk.text
    assert float(talk.text.split("**")[1]) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("top 2 buyers by total amount in baskets", [["Top Shelf", "480"], ["Acme", "115.5"]]),
        ("buyer with the lowest total amount in baskets", [["May Flowers", "10"]]),
        ("buyers in baskets with more than 2 baskets", [["Acme", "3"], ["Top Shelf", "3"]]),
        ("which buyers have an average amount over 100 in baskets", [["Top Shelf", "160"]]),
        (
            "buyers in order of total amount in baskets, lowest first",
            [["May Flowers", "10"], ["Acme", "115.5"]],
        ),
        ("number of rows per region in baskets", [["east", "3"], ["north", "3"], ["south", "2"]]),
        ("how many records per month in baskets", [["2026-01", "2"], ["2026-02", "1"], ["2026-03", "3"]]),
        ("number of entries per year in baskets", [["2026", "8"]]),
        ("list the regions in baskets", [["east"], ["north"], ["south"]]),
        ("mean and median quantity by region in baskets", [["east", "7.33333", "9"], ["north", "2", "2"]]),
    ],
)
def test_groups_are_ranked_filtered_and_listed(prompt: str, expected: list[list[str]]) -> None:
    talk = ask(prompt)
    if len(expected) == 1 and "| " not in talk.text:
        assert f"**{expected[0][0]}**" in talk.text
    else:
        assert cells(talk)[: len(expected)] == expected


def test_the_best_of_each_group_keeps_all_that_are_equal() -> None:
    talk = ask("for each region, the buyer with the most baskets in baskets")
    assert [row[:2] for row in cells(talk)] == [
        ["east", "Top Shelf"],
        ["north", "May Flowers"],
        ["south", "Acme"],
        ["south", "Top Shelf"],
    ]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("bottom 3 by amount in baskets", ["10", "20", "40"]),
        ("top 2 baskets by amount", ["300", "90"]),
        ("sort baskets by amount descending", ["300", "90", "90", "55.5", "40", "20", "10", "none"]),
        ("the three baskets with the lowest amount", ["10", "20", "40"]),
        ("baskets with amount over 89", ["300", "90", "90"]),
        ("baskets with amount over 299", ["300"]),
    ],
)
def test_rows_are_shown_whole(prompt: str, expected: list[str]) -> None:
    rows = cells(ask(prompt))
    assert [row[5] for row in rows] == expected
    assert {len(row) for row in rows} == {len(BASKETS.columns)}


def test_missing_values_per_column_have_a_row_each() -> None:
    found = {
        name.replace("\\", ""): count for name, count in cells(ask("missing values per column in baskets"))
    }
    assert found == {name: str(BASKETS[name].isna().sum()) for name in BASKETS.columns}


@pytest.mark.parametrize(
    ("prompt", "word"),
    [
        ("how many late baskets are there", "late"),
        ("how many outliers are in baskets", "outliers"),
        ("how many complaints are in baskets", "complaints"),
        ("total amount of baskets including cancelled", "including"),
        ("average amount for VIP buyers in baskets", "VIP"),
        ("total amount in baskets last month", "last"),
        ("total quantity of the items in baskets", "items"),
        ("running total of amount by month in baskets", "running"),
        ("total amount without counting duplicates twice in baskets", "twice"),
    ],
)
def test_a_word_without_a_meaning_is_named_in_the_refusal(prompt: str, word: str) -> None:
    text = ask(prompt).text
    assert text.startswith("I cannot answer that")
    assert f"“{word}”" in text
    assert "`amount`" in text


@pytest.mark.parametrize(
    "prompt",
    [
        "average of the monthly totals of amount in baskets",
        "lowest average amount by region in baskets",
        "how many baskets on average per month",
        "baskets over 300",
        "how many baskets in the north or paid",
        "how many baskets after March",
        "top 3 buyers in baskets",
        "which month had the highest amount in baskets",
        "share of paid baskets in the north",
        "total amount region in baskets",
        "how many quantity in baskets",
        "number of baskets per buyer over 2",
        "what was our best day in baskets",
        "worst buyer by amount in baskets",
        "top 2 buyers by amount in baskets",
        "average monthly amount in baskets",
        "which baskets are duplicated",
    ],
)
def test_what_could_mean_two_things_is_refused(prompt: str) -> None:
    assert ask(prompt).text.startswith("I cannot answer that")


@pytest.mark.parametrize(
    "prompt", ["baskets lifetime value", "show baskets with comment", "empty the baskets table"]
)
def test_a_description_or_a_count_is_no_answer_to_something_else(prompt: str) -> None:
    talk = ask(prompt)
    assert talk.text.startswith(("I cannot answer that", "I am the offline model"))


def test_a_misspelled_column_is_read_only_where_one_fits_and_the_answer_says_so() -> None:
    text = ask("total amuont in baskets").text
    assert "605.5" in text
    assert "I read “amuont” as `amount`" in text
    twins = World("twins", {}, {"t": pd.DataFrame({"price_a": [1], "price_b": [2]})})
    assert Desk(twins).ask("total price_c in t").text.startswith("I cannot answer that")


def test_a_part_of_a_name_that_fits_two_columns_names_neither() -> None:
    world = World("prices", {}, {"t": pd.DataFrame({"list_price": [1], "unit_price": [2]})})
    assert Desk(world).ask("total price in t").text.startswith("I cannot answer that")


def test_a_word_that_is_a_value_of_two_columns_needs_its_column() -> None:
    frame = pd.DataFrame({"home": ["Lund", "Oslo"], "work": ["Oslo", "Oslo"]})
    world = World("towns", {}, {"people": frame})
    assert "name the column" in Desk(world).ask("how many people in Oslo").text
    assert "**1**" in Desk(world).ask("how many people with home Oslo").text


def test_values_are_taken_in_every_letter_case_that_the_column_holds() -> None:
    frame = pd.DataFrame({"state": ["Open", "open", "OPEN", "shut"]})
    assert "**3**" in Desk(World("cases", {}, {"doors": frame})).ask("how many open doors").text


def test_two_tables_that_could_both_answer_are_both_named() -> None:
    frames = {"left": pd.DataFrame({"size": [1, 2]}), "right": pd.DataFrame({"size": [30, 40]})}
    text = Desk(World("two", {}, frames)).ask("total size").text
    assert text.startswith("I cannot answer that")
    assert "`left` and `right`" in text


def test_one_row_is_found_by_its_number() -> None:
    assert "**cancelled**" in ask("what is the status of basket 4?").text


def test_a_prefix_denies_a_yes_or_no_column() -> None:
    frame = pd.DataFrame({"name": ["a", "b", "c"], "active": [True, False, False]})
    assert "**2**" in Desk(World("members", {}, {"members": frame})).ask("how many inactive members").text


def test_a_word_is_searched_in_a_file() -> None:
    world = World("notes", {"notes.md": "The warehouse closes.\nAsk Paula.\n"}, {})
    assert "The warehouse closes." in Desk(world).ask("search warehouse in notes.md").text


def test_the_tables_at_hand_are_listed() -> None:
    assert "`baskets`" in ask("what tables do I have here?").text


LEVELS = BASKETS.rename(columns={"region": "Sales Region"}).set_index(["Sales Region", "status"])[
    ["quantity"]
]
BY_BUYER = BASKETS.set_index("buyer")[["quantity", "amount"]]
INDEXED = World("indexed", {}, {"levels": LEVELS, "spending": BY_BUYER})


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("mean quantity per Sales Region in levels", [["east", "7.33333"], ["north", "2"], ["south", "8.5"]]),
        ("number of rows per status in levels", [["cancelled", "1"], ["open", "2"], ["paid", "5"]]),
        (
            "total amount by buyer in spending",
            [["Acme", "115.5"], ["May Flowers", "10"], ["Top Shelf", "480"]],
        ),
    ],
)
def test_the_levels_of_an_index_are_columns(prompt: str, expected: list[list[str]]) -> None:
    assert cells(Desk(INDEXED).ask(prompt)) == expected


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("how many duplicate rows in spending", BY_BUYER.duplicated().sum()),
        ("how many duplicate rows in levels", LEVELS.duplicated().sum()),
        ("how many missing values in spending", 1),
        ("total quantity for May Flowers in spending", 4),
    ],
)
def test_a_row_of_an_indexed_frame_is_its_cells(prompt: str, expected: int) -> None:
    assert f"**{expected}**" in Desk(INDEXED).ask(prompt).text


def test_an_index_named_like_a_column_is_declined() -> None:
    twice = BASKETS.set_index("amount", drop=False)
    talk = Desk(World("twice", {}, {"twice": twice})).ask("total amount in twice")
    assert "the index of `twice` has the name of a column" in talk.text


def test_a_table_with_a_letter_wrong_is_asked_about_at_once() -> None:
    talk = ask("mean amount in baskats")
    assert "there is no table or variable `baskats`" in talk.text
    assert "Did you mean `baskets`?" in talk.text
    assert talk.actions == []


def test_a_table_that_is_nowhere_is_said_to_be_missing_among_many_tables() -> None:
    files = {f"prices_{at}.csv": "item,price\na,1\n" for at in range(4)}
    talk = Desk(World("many", files, {"baskets": BASKETS, "levels": LEVELS})).ask("mean price in pricelist")
    assert "there is no table or variable `pricelist`" in talk.text
    assert "`baskets`" in talk.text


def test_the_moments_of_a_column_have_one_format() -> None:
    moments = ["2026-01-01", "2026-01-01T08:00:00", "2026-01-02T10:00:00.5", None]
    frame = pd.DataFrame(
        {
            "at": pd.to_datetime(moments, format="ISO8601"),
            "hour": pd.to_datetime(["2026-01-01", "2026-01-01T08:00:00", None, None], format="ISO8601"),
            "day": pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-03", None]),
            "value": [1, 2, 3, 4],
        }
    )
    rows = cells(Desk(World("times", {}, {"t": frame})).ask("rows in t where value is over 0"))
    assert [row[0] for row in rows] == [
        "2026-01-01T00:00:00.0",
        "2026-01-01T08:00:00.0",
        "2026-01-02T10:00:00.5",
        "none",
    ]
    assert [row[1] for row in rows] == ["2026-01-01T00:00:00", "2026-01-01T08:00:00", "none", "none"]
    assert [row[2] for row in rows] == ["2026-01-01", "2026-01-02", "2026-01-03", "none"]


def test_an_adjective_that_is_not_said_of_a_column_is_declined() -> None:
    frame = pd.DataFrame({"flight": [8, 9], "price": [1.5, 2.5], "distance": [100, 90], "weight": [3, 4]})
    desk = Desk(World("adjectives", {}, {"flights": frame}))
    right = {"longest distance": 100, "cheapest price": 1.5, "heaviest weight": 4, "highest flight": 9}
    for question, value in right.items():
        assert f"**{value}**" in desk.ask(f"{question} in flights").text
    for question in (
        "longest flight",
        "longest price",
        "cheapest distance",
        "tallest weight",
        "price * distance where weight is 3",
    ):
        assert desk.ask(f"{question} in flights").text.startswith("I cannot answer that")
