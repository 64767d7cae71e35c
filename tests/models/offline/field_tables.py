"""Small frames with the columns of public data sets, and odd frames, made from a fixed seed.

The columns are those of palmerpenguins, gapminder, nycflights13 and vega-datasets; the values are made up. The frames
have what tables of new users have: missing values, a time zone, a month column beside a timestamp, two columns with
one name, values that are words of the grammar (`a`, `US`, `AS`), infinite numbers, and text that holds dates.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

ROWS = 240


def field_tables() -> dict[str, pd.DataFrame]:
    """The frames by name; new objects at every call."""
    dice = np.random.default_rng(5)
    return {
        "penguins": _penguins(dice),
        "gap": _gap(),
        "flights": _flights(dice),
        "weather": _weather(dice),
        "airlines": pd.DataFrame(
            {"carrier": ["AA", "AS", "UA", "US"], "name": ["American", "Alaska", "United", "US Air"]}
        ),
        "riots": _riots(dice),
        "cars": _cars(dice),
        "stocks": _stocks(dice),
        "seattle": _seattle(dice),
        **_odd_tables(dice),
    }


def _penguins(dice: np.random.Generator) -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "species": dice.choice(["Adelie", "Gentoo", "Chinstrap"], ROWS, p=[0.5, 0.3, 0.2]),
            "island": dice.choice(["Biscoe", "Dream", "Torgersen"], ROWS),
            "bill_length_mm": dice.normal(44, 5, ROWS).round(1),
            "bill_depth_mm": dice.normal(17, 2, ROWS).round(1),
            "flipper_length_mm": dice.integers(172, 232, ROWS).astype(float),
            "body_mass_g": dice.permutation(np.arange(ROWS) * 12 + 2700).astype(float),
            "sex": dice.choice(["male", "female"], ROWS),
            "year": dice.choice([2007, 2008, 2009], ROWS),
        }
    )
    frame.loc[[3, 50], ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g", "sex"]] = None
    frame.loc[[9, 60, 61], "sex"] = None
    return frame


def _gap() -> pd.DataFrame:
    countries = {
        "Germany": ("Europe", 67.5, 69e6),
        "France": ("Europe", 67.4, 42e6),
        "Japan": ("Asia", 63.0, 86e6),
        "China": ("Asia", 44.0, 556e6),
        "Swaziland": ("Africa", 41.4, 29e4),
        "Kenya": ("Africa", 42.3, 6.5e6),
        "Canada": ("Americas", 68.8, 14.8e6),
    }
    rows = [
        (
            country,
            continent,
            year,
            round(life + (year - 1952) / 5.5 * (country != "Swaziland"), 3),
            int(pop * (1 + (year - 1952) / 60)),
            round(900 + life * 90 + (year - 1952) * 55.5, 2),
        )
        for country, (continent, life, pop) in countries.items()
        for year in range(1952, 2008, 5)
    ]
    frame = pd.DataFrame(rows, columns=["country", "continent", "year", "lifeExp", "pop", "gdpPercap"])
    frame.loc[(frame["country"] == "Swaziland") & (frame["year"] == 2007), "lifeExp"] = 39.6
    return frame


def _flights(dice: np.random.Generator) -> pd.DataFrame:
    local = pd.Timestamp("2013-01-01 05:00") + pd.to_timedelta(dice.integers(0, 365 * 24, ROWS), unit="h")
    late = dice.normal(10, 40, ROWS).round()
    late[dice.choice(ROWS, 8, replace=False)] = np.nan
    return pd.DataFrame(
        {
            "year": local.year,
            "month": local.month,
            "day": local.day,
            "dep_time": np.where(np.isnan(late), np.nan, local.hour * 100.0),
            "dep_delay": late,
            "arr_delay": late * 1.2 - 4,
            "carrier": dice.choice(["AA", "AS", "UA", "US"], ROWS),
            "flight": dice.integers(1, 400, ROWS),
            "tailnum": [f"N{n}" for n in dice.integers(100, 160, ROWS)],
            "origin": dice.choice(["JFK", "LGA", "EWR"], ROWS),
            "dest": dice.choice(["LAX", "ORD", "ATL"], ROWS),
            "air_time": dice.integers(30, 400, ROWS).astype(float),
            "distance": dice.integers(100, 2500, ROWS),
            "hour": local.hour,
            "minute": 0,
            "time_hour": local.tz_localize(
                "America/New_York", nonexistent="shift_forward", ambiguous=True
            ).tz_convert("UTC"),
        }
    )


def _weather(dice: np.random.Generator) -> pd.DataFrame:
    at = pd.date_range("2013-01-01 06:00", periods=ROWS, freq="36h", tz="UTC")
    return pd.DataFrame(
        {
            "origin": dice.choice(["JFK", "LGA", "EWR"], ROWS),
            "year": 2013,
            "month": at.month,
            "day": at.day,
            "hour": at.hour,
            "temp": dice.normal(55, 15, ROWS).round(2),
            "humid": dice.uniform(20, 100, ROWS).round(2),
            "time_hour": at,
        }
    )


def _riots(dice: np.random.Generator) -> pd.DataFrame:
    ages = dice.permutation(np.arange(15, 75)).astype(float)
    return pd.DataFrame(
        {
            "first_name": [f"First{n}" for n in range(60)],
            "last_name": [f"Last{n}" for n in range(60)],
            "age": ages,
            "gender": dice.choice(["Male", "Female"], 60, p=[0.8, 0.2]),
            "race": dice.choice(["Black", "White", "Latino"], 60),
            "death_date": pd.to_datetime("1992-04-29") + pd.to_timedelta(dice.integers(0, 5, 60), unit="D"),
            "neighborhood": dice.choice(["Watts", "Downtown", "Compton"], 60, p=[0.5, 0.3, 0.2]),
        }
    )


def _cars(dice: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "Name": [f"model {n}" for n in range(80)],
            "Miles_per_Gallon": dice.normal(23, 6, 80).round(1),
            "Cylinders": dice.choice([4, 6, 8], 80),
            "Horsepower": dice.integers(50, 230, 80).astype(float),
            "Weight_in_lbs": dice.permutation(np.arange(1600, 5600, 50)),
            "Acceleration": dice.normal(15, 2, 80).round(1),
            "Year": pd.to_datetime(dice.choice(["1970-01-01", "1974-01-01", "1980-01-01"], 80)),
            "Origin": dice.choice(["USA", "Europe", "Japan"], 80),
        }
    )


def _stocks(dice: np.random.Generator) -> pd.DataFrame:
    days = pd.date_range("2004-01-01", "2006-12-01", freq="MS")
    frames = [
        pd.DataFrame(
            {"symbol": symbol, "date": days, "price": (dice.normal(1, 0.1, len(days)) * level).round(2)}
        )
        for symbol, level in (("MSFT", 25), ("GOOG", 300), ("AAPL", 60))
    ]
    return pd.concat(frames, ignore_index=True)


def _seattle(dice: np.random.Generator) -> pd.DataFrame:
    days = pd.date_range("2012-01-01", periods=800)
    top = dice.normal(16, 7, 800).round(1)
    return pd.DataFrame(
        {
            "date": days.strftime("%Y/%m/%d"),
            "precipitation": dice.choice([0.0, 1.5, 8.0], 800),
            "temp_max": top,
            "temp_min": top - dice.uniform(2, 12, 800).round(1),
            "wind": dice.uniform(0, 9, 800).round(1),
            "weather": dice.choice(["sun", "rain", "fog"], 800, p=[0.5, 0.4, 0.1]),
        }
    )


def _odd_tables(dice: np.random.Generator) -> dict[str, pd.DataFrame]:
    moments = [
        "2023-12-31 23:30",
        "2024-01-15 10:00",
        "2024-01-31 23:30",
        "2024-03-30 23:30",
        "2024-03-31 20:00",
        "2024-04-06 12:00",
        None,
    ]
    shop = pd.DataFrame(
        {
            "Bestellt am": pd.to_datetime(moments).tz_localize("UTC").tz_convert("Europe/Berlin"),
            "Umsatz (€)": [10.0, 20.5, 30.0, 50.0, None, 70.0, 5.0],
            "Größe": pd.Categorical(list("SMLSMLS"), categories=["S", "M", "L"], ordered=True),
            "Kunde": ["Müller", "Weiß", "Müller", "Öz", "Weiß", "Öz", None],
        }
    )
    gap = _gap()
    big = pd.DataFrame(
        {
            "g": ["a"] * 333 + ["b"] * 333 + ["c"] * 334,
            "x": dice.normal(size=1000),
            "t": pd.date_range("2001-10-01", periods=1000, freq="7h"),
        }
    )
    return {
        "shop": shop,
        "messy": pd.DataFrame(
            {
                "name": ["a", "B ", None, "d", ""],
                "value": [1.0, np.inf, 3.0, np.nan, 5.0],
                "date": ["2012/01/01", "2012/01/02", None, "2012/02/01", "2013/01/01"],
            }
        ),
        "dup": pd.DataFrame([[1, 2, 30], [4, 5, 60], [7, 8, 90]], columns=["a", "b", "a"]),
        "multi": gap.set_index(["continent", "country"]),
        "big": big,
        "wide": pd.DataFrame(dice.normal(size=(20, 120)).round(3), columns=[f"gene {n}" for n in range(120)]),
        "empty": pd.DataFrame({"a": pd.Series(dtype=float), "b": pd.Series(dtype=str)}),
        "staff": pd.DataFrame(
            {
                "name": ["Ana", "Bo", "Cy", "Di"],
                "birth_date": pd.to_datetime(["1980-01-01", "1999-05-05", "1970-07-07", "1990-02-02"]),
                "salary": [3000.0, 2500.0, 4000.0, None],
                "state": ["OR", "IN", "OR", "ME"],
            }
        ),
        "runs": pd.DataFrame(
            {"runner": ["x", "y", "z"], "time_s": [10.5, 12.0, 9.9], "speed_kmh": [30.0, 28.0, 33.0]}
        ),
    }
