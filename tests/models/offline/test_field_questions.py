"""Questions of a new user about public data sets and odd frames: none is answered wrongly, and most are answered.

The truth of each is what pandas says, or a word that the refusal has to name. `FIELD` are questions that users asked;
`SIBLINGS` were made up afterwards, with other words, columns and frames.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from tests.models.offline.field_tables import field_tables
from tests.models.offline.grading import DECLINES
from tests.models.offline.harness import Desk
from tests.models.offline.worlds import World

T = field_tables()
WORLD = World("field", {}, T)
P, G, FL, W, R, C, S, SE, SH, B = (
    T[name]
    for name in ("penguins", "gap", "flights", "weather", "riots", "cars", "stocks", "seattle", "shop", "big")
)
WIDE, DAYS = T["wide"], pd.to_datetime(T["seattle"]["date"])
BERLIN = SH["Bestellt am"].dt.tz_localize(None)
GERMANY_2007 = G[(G.country == "Germany") & (G.year == 2007)]


@dataclass(frozen=True)
class Asks:
    """A question that has to be refused or asked back, with a word of the reason."""

    word: str


def by(series: pd.Series[Any]) -> dict[str, float]:
    return {str(key): float(value) for key, value in series.items()}


def months(frame: pd.DataFrame, when: pd.Series[Any], column: str, function: str) -> dict[str, float]:
    return by(frame.groupby(when.dt.strftime("%Y-%m"))[column].agg(function))


Truth = float | str | dict[str, float] | Asks | list[str]

FIELD: list[tuple[str, Truth]] = [
    ("how many rows in penguins have no missing values?", len(P.dropna())),
    ("how many complete rows are in penguins?", len(P.dropna())),
    ("how many columns in penguins have missing values?", int(P.isna().any().sum())),
    ("which column in penguins has the most missing values?", str(P.isna().sum().idxmax())),
    ("how many duplicate countries are in gap?", int(G.country.duplicated().sum())),
    ("number of duplicate rows in riots ignoring case", Asks("case")),
    ("what percentage of penguins have missing sex?", 100 * P.sex.isna().mean()),
    ("how many unique values per column in penguins?", by(P.nunique())),
    ("average year in gap", G.year.mean()),
    (
        "average body_mass_g of male Adelie penguins in penguins",
        P[(P.sex == "male") & (P.species == "Adelie")].body_mass_g.mean(),
    ),
    ("how many penguins have body_mass_g over 4 kg in penguins?", int((P.body_mass_g > 4000).sum())),
    ("total pop in 2007 in gap", int(G[G.year == 2007]["pop"].sum())),
    ("total pop per continent in gap", by(G.groupby("continent")["pop"].sum())),
    (
        "average lifeExp per continent in 2007 in gap",
        by(G[G.year == 2007].groupby("continent").lifeExp.mean()),
    ),
    ("max temp_max per month in seattle", months(SE, DAYS, "temp_max", "max")),
    ("max temp_max per year in seattle", by(SE.groupby(DAYS.dt.year).temp_max.max())),
    ("how many days with rain in seattle in 2013?", Asks("days")),
    (
        "how many rows in shop on 2024-03-31?",
        int((BERLIN.dt.date == pd.Timestamp("2024-03-31").date()).sum()),
    ),
    ("total Umsatz (€) per month in shop", months(SH, BERLIN, "Umsatz (€)", "sum")),
    ("rows in shop where Größe is M or Größe is L", "4 rows"),
    ("how many rows in shop with Größe greater than S?", Asks("greater than")),
    ("median value in messy", 4),
    ("how many missing values per column in messy?", by(T["messy"].isna().sum())),
    ("how many rows has dup?", 3),
    ("mean a in dup", Asks("several columns")),
    ("sum of a in dup", Asks("several columns")),
    ("mean a (2) in dup", Asks("several columns")),
    ("total b in dup", 15),
    ("describe dup", "3 rows"),
    ("describe multi", "`continent` and `country`"),
    ("average lifeExp per continent in multi", by(G.groupby("continent").lifeExp.mean())),
    ("average x per g in big", by(B.groupby("g").x.mean())),
    ("how many rows in big where x is over 2?", int((B.x > 2).sum())),
    ("describe wide", "120 columns"),
    ("mean gene 7 in wide", WIDE["gene 7"].mean()),
    ("describe empty", "0 rows"),
    ("mean a in empty", "none"),
    ("oldest 3 people in riots by age", Asks("people")),
    ("who is the youngest in riots?", R.loc[R.age.idxmin()].last_name),
    ("who is the oldest in riots?", R.loc[R.age.idxmax()].last_name),
    ("top 3 oldest in riots", list(R.nlargest(3, "age").first_name)),
    ("bottom 3 by age in riots", list(R.nsmallest(3, "age").first_name)),
    ("smallest age in riots", R.age.min()),
    ("youngest person in riots", Asks("person")),
    ("correlation between bill_length_mm and body_mass_g in penguins", P.bill_length_mm.corr(P.body_mass_g)),
    ("last 5 rows of stocks", list(S.tail(5).symbol)),
    ("price of GOOG in stocks in Jan 2005", S[(S.symbol == "GOOG") & (S.date == "2005-01-01")].price.iloc[0]),
    ("average price per year in stocks", by(S.groupby(S.date.dt.year).price.mean())),
    ("how many airlines are there?", 4),
    ("how many different tailnum in flights?", FL.tailnum.nunique()),
    (
        "average dep_delay per carrier in flights, worst first",
        list(FL.groupby("carrier").dep_delay.mean().sort_values(ascending=False).index),
    ),
    (
        "which carrier has the worst average arr_delay in flights?",
        str(FL.groupby("carrier").arr_delay.mean().idxmax()),
    ),
    (
        "which carrier has the best average arr_delay in flights?",
        str(FL.groupby("carrier").arr_delay.mean().idxmin()),
    ),
    (
        "top 3 carriers by average arr_delay in flights",
        list(FL.groupby("carrier").arr_delay.mean().nlargest(3).index),
    ),
    ("how many flights have arr_delay over 2 hours in flights?", Asks("hours")),
    ("how many flights were cancelled?", Asks("cancelled")),
    ("percentage of flights with dep_delay over 0 in flights", 100 * (FL.dep_delay > 0).mean()),
    ("average dep_delay of flights not delayed in flights", Asks("delayed")),
    ("how many flights left between 6 and 9 in flights?", Asks("left")),
    (
        "number of rows in weather where temp is between 30 and 40 and humid over 50",
        int((W.temp.between(30, 40) & (W.humid > 50)).sum()),
    ),
    ("latest time_hour in weather", str(W.time_hour.max())[:10]),
    ("first date in weather", "2013-01-01"),
    ("median age of women in riots", R[R.gender == "Female"].age.median()),
    ("how many white men in riots?", int(((R.race == "White") & (R.gender == "Male")).sum())),
    ("how many cars from Europe or Japan in cars?", int(C.Origin.isin(["Europe", "Japan"]).sum())),
    ("average Horsepower of cars built before 1975 in cars", Asks("built")),
    ("which car is the lightest by Weight_in_lbs in cars?", C.loc[C.Weight_in_lbs.idxmin()].Name),
    ("shortest distance in flights", int(FL.distance.min())),
    ("earliest death_date in riots", str(R.death_date.min())[:10]),
    ("cheapest price in stocks", S.price.min()),
    ("newest year in gap", 2007),
    ("most recent date in shop", "2024-04-06T14:00"),
    ("which species has the fewest penguins in penguins?", "Chinstrap"),
    ("which country has the lowest lifeExp in gap?", str(G.loc[G.lifeExp.idxmin()].country)),
    ("second highest price in stocks", float(S.price.drop_duplicates().nlargest(2).iloc[1])),
    *(
        (question, int(P.isna().any(axis=1).sum()))
        for question in (
            "how many rows have missing values in penguins?",
            "how many rows with missing values in penguins?",
            "number of penguins with missing values in penguins",
            "how many penguins have a missing value in penguins?",
            "how many penguins that have missing values in penguins",
            "number of incomplete rows in penguins",
        )
    ),
    ("rows with missing values in penguins", "5 rows"),
    ("number of rows per day in shop", by(SH.groupby(BERLIN.dt.strftime("%Y-%m-%d")).size())),
    (
        "how many rows in shop in January 2024?",
        int(((BERLIN.dt.year == 2024) & (BERLIN.dt.month == 1)).sum()),
    ),
    ("total Umsatz (€) in 2023 in shop", "none"),
    ("average Umsatz (€) on weekends in shop", SH[BERLIN.dt.day_of_week >= 5]["Umsatz (€)"].mean()),
    ("how many rows in shop before 2024-01-01?", 0),
    ("number of flights per month in flights", Asks("`month` or from `time_hour`")),
    ("number of flights in July in flights", Asks("`month` or from `time_hour`")),
    ("how many flights from JFK to LAX in January in flights?", Asks("`time_hour`")),
    ("number of flights per day of the week in flights", Asks("`time_hour`")),
    ("number of flights on Sunday in flights", Asks("`time_hour`")),
    ("how many Adelie in penguins?", int((P.species == "Adelie").sum())),
    ("share of each species in penguins", by(100 * P.species.value_counts(normalize=True))),
    (
        "average age by race in riots, highest first",
        list(R.groupby("race").age.mean().sort_values(ascending=False).index),
    ),
    ("how many values in sex are not missing in penguins?", int(P.sex.notna().sum())),
    ("ratio of males to females in penguins", Asks("ratio")),
    ("what percent of gap is Asia?", 100 * (G.continent == "Asia").mean()),
    ("how many countries are in gap?", G.country.nunique()),
    ("how many countries per continent in gap?", by(G.groupby("continent").country.nunique())),
    ("which countries have lifeExp below 40 in 2007 in gap?", "Swaziland"),
    ("how many rows in gap are from the 1950s?", Asks("1950s")),
    ("median x in big where g is a", B[B.g == "a"].x.median()),
    ("how many g in big are a?", 333),
    ("maximum t in big", str(B.t.max())[:10]),
    ("rows in big in 2001", f"{int((B.t.dt.year == 2001).sum())} rows"),
    ("variance of price in stocks", S.price.var()),
    ("average value in messy", "inf"),
    ("what type is time_hour in flights?", "datetime64"),
    ("date range of stocks", "2006-12-01"),
]

SIBLINGS: list[tuple[str, Truth]] = [
    (
        "how many penguins with body mass between 4 and 5 kg in penguins",
        int(P.body_mass_g.between(4000, 5000).sum()),
    ),
    ("how many cars with Weight_in_lbs over 2000 lbs in cars", int((C.Weight_in_lbs > 2000).sum())),
    ("how many cars with Weight_in_lbs over 1000 kg in cars", Asks("kg")),
    ("how many rows in riots older than 40", int((R.age > 40).sum())),
    ("how many flights older than 40 in flights", Asks("older than")),
    ("average lifeExp between 1980 and 1990 in gap", Asks("years")),
    (
        "average lifeExp where year is between 1980 and 1990 in gap",
        G[G.year.between(1980, 1990)].lifeExp.mean(),
    ),
    ("lifeExp of Germany and Japan in 2007 in gap", "| Germany | 77.5 |"),
    ("third lowest Weight_in_lbs in cars", int(C.Weight_in_lbs.nsmallest(3).iloc[2])),
    ("second largest Origin in cars", Asks("second")),
    ("how many cars with Cylinders 4 or 6 in cars", int(C.Cylinders.isin([4, 6]).sum())),
    ("how many cars where Cylinders is not 8 in cars", int((C.Cylinders != 8).sum())),
    ("how many distinct values of Origin in cars", 3),
    ("how many sex in penguins are male", int((P.sex == "male").sum())),
    ("how many g in big are a or b", 666),
    ("how many penguins without sex in penguins", int(P.sex.isna().sum())),
    ("number of rows without missing values in penguins", len(P.dropna())),
    ("how many nulls are in penguins", int(P.isna().sum().sum())),
    ("how many missing value in messy", 1),
    ("max value in messy", "inf"),
    ("rows in messy where value is over 4", "inf"),
    ("how many rows in 2012 in messy", 3),
    ("worst arr_delay in flights", FL.arr_delay.max()),
    ("worst delay in flights", Asks("`arr_delay`")),
    ("best Miles_per_Gallon in cars", Asks("best")),
    ("fastest by time_s in runs", "z"),
    ("slowest time_s in runs", 12),
    ("fastest speed_kmh in runs", 33),
    ("fastest runner in runs", Asks("`time_s`")),
    ("fastest car by Acceleration in cars", Asks("fastest")),
    ("who is the oldest in staff?", "Cy"),
    ("youngest by birth_date in staff", "Bo"),
    ("who has the highest salary in staff", "Cy"),
    ("sort riots by age, oldest first", list(R.sort_values("age", ascending=False).first_name[:5])),
    (
        "when was the price of GOOG highest in stocks",
        str(S.loc[S[S.symbol == "GOOG"].price.idxmax()].date)[:10],
    ),
    ("is the average price over 100 in stocks?", Asks("is")),
    ("hottest hour in weather", Asks("hottest")),
    ("average arr_delay for US in flights", FL[FL.carrier == "US"].arr_delay.mean()),
    ("average arr_delay for us in flights", FL[FL.carrier == "US"].arr_delay.mean()),
    ("average arr_delay of AS in flights", FL[FL.carrier == "AS"].arr_delay.mean()),
    ("how many staff in OR in staff?", 2),
    ("how many used cars in cars", Asks("used")),
    ("how many cars with 8 Cylinders in cars", int((C.Cylinders == 8).sum())),
    (
        "number of flights per month of time_hour in flights",
        by(FL.groupby(FL.time_hour.dt.strftime("%Y-%m")).size()),
    ),
    ("number of flights per month of time_hour and origin in flights", "| 2013-01 | EWR |"),
    ("number of flights per the column month in flights", by(FL.groupby("month").size())),
    ("number of flights with month 7 in flights", int((FL.month == 7).sum())),
    ("how many flights in 2013 in flights", Asks("`year` or from `time_hour`")),
    ("average temp in July in weather", Asks("`month` or from `time_hour`")),
    ("quantity per species in penguins", Asks("quantity")),
    ("top 2 countries by lifeExp in 2007 in gap", list(G[G.year == 2007].nlargest(2, "lifeExp").country)),
    ("top 2 countries by lifeExp in gap", Asks("several rows")),
    ("which country has the most pop in gap", Asks("several rows")),
    ("lifeExp of Germany in 2007 in gap", float(GERMANY_2007.lifeExp.iloc[0])),
    ("how many lifeExp over 70 in gap", int((G.lifeExp > 70).sum())),
    ("how many distinct years in gap", 12),
    (
        "mean lifeExp excluding Africa in 2007 in gap",
        G[(G.year == 2007) & (G.continent != "Africa")].lifeExp.mean(),
    ),
    ("latest Bestellt am for Müller in shop", "2024-02-01T00:30"),
    (
        "total Umsatz (€) in March 2024 in shop",
        SH[BERLIN.dt.strftime("%Y-%m") == "2024-03"]["Umsatz (€)"].sum(),
    ),
    ("how many rows on Sundays in shop", int((BERLIN.dt.day_of_week == 6).sum())),
    ("total Umsatz (€) last month in shop", Asks("last")),
    ("how many rows in wide where gene 7 is over 1", int((WIDE["gene 7"] > 1).sum())),
    ("mean gene 110 in wide", Asks("gene")),
    ("average temp in seattle", Asks("`temp_min`")),
    ("how many rows where precipitation is 0 in seattle", int((SE.precipitation == 0).sum())),
    ("average wind in June in seattle", SE[DAYS.dt.month == 6].wind.mean()),
    ("average price where symbol is not AAPL in stocks", S[S.symbol != "AAPL"].price.mean()),
    ("unique values of Origin in cars", ["Europe", "Japan", "USA"]),
    ("average price in the first half of 2005 in stocks", Asks("half")),
    ("price change of AAPL in stocks", Asks("change")),
    ("how many cars with Weight_in_lbs over 2000 in cars", int((C.Weight_in_lbs > 2000).sum())),
    (
        "how many cars with Weight_in_lbs between 2000 and 2100 in cars",
        int(C.Weight_in_lbs.between(2000, 2100).sum()),
    ),
    ("how many rows with gdpPercap under 2000 in gap", int((G.gdpPercap < 2000).sum())),
    ("how many penguins over 2000 in penguins", Asks("over")),
    ("price over 2000 in stocks", "No row"),
    ("average lifeExp not in 1952 in gap", G[G.year != 1952].lifeExp.mean()),
    ("average lifeExp not in 1952 or 1957 in gap", G[~G.year.isin([1952, 1957])].lifeExp.mean()),
    ("average price except in 2005 and 2006 in stocks", S[S.date.dt.year == 2004].price.mean()),
    (
        "average price in 2005 in January in stocks",
        S[(S.date.dt.year == 2005) & (S.date.dt.month == 1)].price.mean(),
    ),
    ("average price in January and March 2005 in stocks", Asks("year of each")),
    ("average price in January 2005 and 2006 in stocks", Asks("year of each")),
    (
        "how many rows from 2004-02-01 until 2004-04-01 in stocks",
        int(S.date.between("2004-02-01", "2004-04-01").sum()),
    ),
    ("average price not between 2005 and 2007 in stocks", Asks("years")),
    ("average Acceleration of the heaviest cars in cars", Asks("heaviest")),
    ("what was the highest price and when in stocks", Asks("when")),
    ("what percent of riots is Male in 1992 in riots", 100 * (R.gender == "Male").mean()),
    (
        "what percent of price is from GOOG in 2005 in stocks",
        100
        * S[(S.symbol == "GOOG") & (S.date.dt.year == 2005)].price.sum()
        / S[S.date.dt.year == 2005].price.sum(),
    ),
    ("average age by race sorted by race in riots", sorted(R.race.unique())),
    ("average age sorted by race in riots", Asks("race")),
    ("how many penguins where body_mass_g is not 2700 in penguins", int((P.body_mass_g != 2700).sum())),
    ("how many cars after 1970 in cars", int((C.Year.dt.year > 1970).sum())),
]


@cache
def answer(question: str) -> str:
    return Desk(WORLD).ask(question).text


def failure(question: str, truth: Truth) -> str:
    """Return what is wrong with an answer, or "" if it is right or declines."""
    text = answer(question).replace("\\", "")
    declined = text.startswith(DECLINES)
    if isinstance(truth, Asks):
        return (
            ""
            if declined and truth.word in text
            else f"{question}: should ask or decline with {truth.word!r}: {text[:200]}"
        )
    return "" if declined or _is_right(text, truth) else f"{question}: {truth!r} is not in: {text[:300]}"


def _is_right(text: str, truth: Truth) -> bool:
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")][2:]
    if isinstance(truth, dict):
        found = {row[0]: float(row[-1]) for row in lines if row[0] != "none" and row[-1] != "none"}
        return found.keys() == truth.keys() and all(
            np.isclose(found[key], truth[key], rtol=1e-4, atol=1e-5) for key in truth
        )
    if isinstance(truth, list):
        return [row[0] for row in lines[: len(truth)]] == truth
    if isinstance(truth, str):
        return truth in text
    shown = re.findall(r"\*\*(\S+?)\*\*", text)
    return any(_number(each) is not None and np.isclose(float(each), truth, rtol=1e-4) for each in shown)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def test_no_question_of_a_new_user_is_answered_wrongly() -> None:
    assert [wrong for question, truth in FIELD if (wrong := failure(question, truth))] == []


def test_no_sibling_of_these_questions_is_answered_wrongly() -> None:
    assert [wrong for question, truth in SIBLINGS if (wrong := failure(question, truth))] == []


def test_most_questions_of_a_new_user_are_answered() -> None:
    answered = [question for question, _ in FIELD if not answer(question).startswith(DECLINES)]
    assert len(answered) / len(FIELD) >= 0.7


def test_a_refusal_names_what_was_not_understood() -> None:
    refused = {
        question: answer(question)
        for question, _ in (*FIELD, *SIBLINGS)
        if answer(question).startswith(DECLINES)
    }
    assert [
        question for question, text in refused.items() if "“" not in text and "several rows" not in text
    ] == []


def test_a_word_without_a_meaning_makes_every_question_a_refusal() -> None:
    """Whatever the question and the place of the word: no part of a question is silently dropped."""
    answered = []
    for number, (question, _) in enumerate(SIBLINGS):
        words = question.split()
        words.insert(1 + number % (len(words) - 1), "purple")
        text = answer(" ".join(words))
        answered += [" ".join(words)] if not text.startswith(DECLINES) else []
    assert answered == []


def test_another_adjective_turns_the_order_around_only_if_the_column_decides_it() -> None:
    table = pd.DataFrame(
        {"age": [1, 2], "born": [1999, 1998], "delay": [5, 6], "speed": [7, 8], "size": [9, 10]}
    )
    desk = Desk(World("ends", {}, {"things": table}))
    expected = {
        "oldest age": 2,
        "youngest age": 1,
        "oldest born": 1998,
        "youngest born": 1999,
        "worst delay": 6,
        "best delay": 5,
        "slowest delay": 6,
        "fastest speed": 8,
        "slowest speed": 7,
        "best size": None,
        "oldest size": None,
        "fastest size": None,
        "latest age": None,
        "worst speed": None,
    }
    wrong = []
    for words, value in expected.items():
        text = desk.ask(f"{words} in things").text
        right = f"**{value}**" in text if value is not None else "say which" in text
        wrong += [] if right else [f"{words}: {text[:200]}"]
    assert wrong == []
