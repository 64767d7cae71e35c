"""Five little worlds that the offline requests are asked in: files, frames and functions, made from fixed seeds.

Every world is used by these tests alone, so what is measured here was not practised on in a notebook.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

Function = Callable[..., Any]


@dataclass(frozen=True)
class World:
    """A workspace: files by path, the notebook's variables, and the functions that the person registered."""

    name: str
    files: dict[str, str]
    variables: dict[str, Any]
    functions: tuple[Function, ...] = ()

    def write(self, root: Path) -> None:
        """Write the files below `root`."""
        for path, text in self.files.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")

    def gold(self, expression: str) -> Any:
        """Evaluate a gold expression over the world's frames, CSV files included by their stem."""
        tables = {
            Path(path).stem: pd.read_csv(io.StringIO(text))
            for path, text in self.files.items()
            if path.endswith(".csv")
        }
        functions = {function.__name__: function for function in self.functions}
        return eval(expression, {"pd": pd, **tables, **functions, **self.variables})


def _csv(header: str, rows: list[tuple[Any, ...]]) -> str:
    return "\n".join([header, *(",".join(str(cell) for cell in row) for row in rows)]) + "\n"


def _day(dice: random.Random, year: int = 2024) -> str:
    return f"{year}-{dice.randint(1, 12):02d}-{dice.randint(1, 28):02d}"


def bmi(weight_kg: float, height_m: float) -> float:
    """Body mass index from a weight in kilograms and a height in metres."""
    return round(weight_kg / height_m**2, 2)


def clinic() -> World:
    dice = random.Random(101)
    visits = [
        (
            9000 + i,
            f"P{dice.randint(1, 40):03d}",
            dice.choice(["North", "South", "Harbour"]),
            dice.choice(["Abe", "Brandt", "Costa", "Dvorak"]),
            _day(dice),
            dice.randint(5, 60),
            round(dice.uniform(20, 180), 2),
        )
        for i in range(220)
    ]
    patients = [
        (
            f"P{i:03d}",
            f"{dice.choice(['Ada', 'Ben', 'Cleo', 'Dan', 'Eva', 'Finn'])} {dice.choice(['Ames', 'Bloch', 'Curt'])}",
            dice.randint(1935, 2015),
            dice.choice(["Lund", "Ystad", "Kivik"]),
            dice.choice(["yes", "no"]),
        )
        for i in range(1, 41)
    ]
    protocol = (
        "# Intake protocol\n\n1. Check the referral.\n2. Take blood pressure twice, five minutes apart.\n"
        "3. Anyone over 80 sees a nurse first.\n4. Record allergies before any prescription.\n"
    )
    staffing = (
        "Costa is on leave in May.\nBrandt covers Harbour on Fridays.\nThe on-call phone is extension 4417.\n"
    )
    return World(
        "clinic",
        {
            "visits.csv": _csv("visit_id,patient_id,clinic,doctor,visit_date,minutes,fee", visits),
            "patients.csv": _csv("patient_id,name,birth_year,city,smoker", patients),
            "notes/protocol.md": protocol,
            "notes/staffing.txt": staffing,
        },
        {},
        (bmi,),
    )


def late_fee(days: int, rate: float = 0.25) -> float:
    """The fine for a book that came back some days late, at a rate a day."""
    return round(days * rate, 2)


def shelf_code(author: str, year: int) -> str:
    """The code on a book's spine, from its author and year."""
    return f"{author[:3].upper()}-{year % 100:02d}"


def library() -> World:
    dice = random.Random(202)
    nouns = ["Harbour", "Winter", "Lantern", "Orchard", "Signal", "Marsh", "Atlas", "Ferry", "Mirror", "Salt"]
    titles = [f"The {a} and the {b}" for a in nouns for b in nouns if a < b][:36]
    books = pd.DataFrame(
        {
            "title": titles,
            "author": [dice.choice(["Okafor", "Lindqvist", "Moreau", "Tanaka", "Reyes"]) for _ in titles],
            "genre": [dice.choice(["crime", "poetry", "history", "science"]) for _ in titles],
            "pages": [dice.randint(80, 900) for _ in titles],
            "year": [dice.randint(1950, 2023) for _ in titles],
            "copies": [dice.randint(1, 6) for _ in titles],
        }
    )
    loans = pd.DataFrame(
        {
            "loan_id": range(1, 91),
            "title": [dice.choice(titles) for _ in range(90)],
            "member": [dice.choice(["Ilse", "Jonas", "Kemal", "Lucia", "Mei", "Noor"]) for _ in range(90)],
            "loan_date": pd.to_datetime([_day(dice) for _ in range(90)]),
            "days_kept": [dice.randint(1, 60) for _ in range(90)],
        }
    )
    config = json.dumps(
        {"branch": "Eastgate", "max_loans": 8, "opening": {"mon": "10-18", "sat": "10-14"}}, indent=2
    )
    return World(
        "library",
        {
            "README.md": "# Eastgate branch\n\nCatalogue and loans.\nContact: desk@eastgate.example\n",
            "rules.txt": "A loan lasts 21 days.\nReference books stay in the house.\nFood is not allowed upstairs.\n",
            "config.json": config + "\n",
            "exports/members.csv": _csv(
                "member,joined,fines",
                [
                    (name, f"20{dice.randint(10, 23)}-0{dice.randint(1, 9)}-11", dice.randint(0, 40))
                    for name in ["Ilse", "Jonas", "Kemal", "Lucia", "Mei", "Noor"]
                ],
            ),
        },
        {"books": books, "loans": loans, "opening_year": 1987},
        (late_fee, shelf_code),
    )


def kwh_to_co2(kwh: float, factor: float = 0.233) -> float:
    """Kilograms of CO2 for an amount of electricity in kWh."""
    return round(kwh * factor, 3)


def energy() -> World:
    dice = random.Random(303)
    buildings = ["Foundry", "Granary", "Mill", "Tower", "Annex"]
    meters = [
        (
            f"M{dice.randint(1, 15):02d}",
            dice.choice(buildings),
            dice.randint(0, 5),
            round(dice.uniform(5, 400), 1),
            _day(dice),
        )
        for _ in range(260)
    ]
    area = [(name, dice.randint(400, 5200), dice.choice(["Ghent", "Bruges"])) for name in buildings]
    log = [
        f"2024-03-{1 + i // 6:02d} {8 + i % 6:02d}:00 {'ERROR' if i % 9 == 4 else 'WARNING' if i % 5 == 2 else 'INFO'} "
        f"{f'meter M{i % 15:02d} did not answer' if i % 9 == 4 else f'batch {i} loaded'}"
        for i in range(60)
    ]
    tariffs = pd.DataFrame({"band": ["day", "night", "peak"], "price_per_kwh": [0.31, 0.19, 0.44]})
    return World(
        "energy",
        {
            "data/meters.csv": _csv("meter_id,building,floor,kwh,reading_date", meters),
            "data/buildings.csv": _csv("building,area_m2,city", area),
            "logs/import.log": "\n".join(log) + "\n",
            "settings.yaml": "timezone: Europe/Brussels\nretries: 4\nunits: kwh\n",
            "docs/handover.md": "# Handover\n\nMeter M07 was replaced in June.\nAsk Greta about the tariffs.\n",
        },
        {"tariffs": tariffs},
        (kwh_to_co2,),
    )


def convert_currency(amount: float, rate: float) -> float:
    """An amount of money in another currency, at an exchange rate."""
    return round(amount * rate, 2)


def slugify(text: str) -> str:
    """A short form of a text for a web address: lower case, with hyphens."""
    return "-".join(text.lower().split())


def shop() -> World:
    dice = random.Random(404)
    names = ["kettle", "lamp", "rug", "stool", "vase", "clock", "mug", "tray"]
    sales = pd.DataFrame(
        {
            "product": [dice.choice(names) for _ in range(320)],
            "quantity": [dice.randint(1, 9) for _ in range(320)],
            "unit_price": [round(dice.uniform(4, 95), 2) for _ in range(320)],
            "store": [dice.choice(["Oslo", "Turku", "Aarhus", "Malmo"]) for _ in range(320)],
            "sold_on": pd.to_datetime([_day(dice) for _ in range(320)]),
            "returned": [dice.random() < 0.12 for _ in range(320)],
        }
    )
    products = pd.DataFrame(
        {
            "product": names,
            "category": ["kitchen", "light", "textile", "furniture", "decor", "decor", "kitchen", "kitchen"],
            "cost": [18.5, 22.0, 41.0, 27.5, 12.25, 19.9, 3.4, 7.75],
        }
    )
    return World(
        "shop",
        {
            "report.md": "# Quarterly report\n\nDraft. Revenue grew in Turku.\nThe clock recall is closed.\n",
            "src/clean.py": "def clean(frame):\n    # TODO: drop duplicates\n    return frame.dropna()\n",
            "src/plots.py": "def plot(frame):\n    # TODO: label the axes\n    return frame.plot()\n",
            "todo.txt": "order more mugs\ncall the rug supplier\npay invoice 2231\n",
        },
        {"sales": sales, "products": products, "vat_rate": 0.25},
        (convert_currency, slugify),
    )


def wing_index(wing_mm: float, mass_g: float) -> float:
    """The wing length for the mass of a bird."""
    return round(wing_mm / mass_g, 3)


def birds() -> World:
    dice = random.Random(505)
    ringed = [
        (
            f"R{1000 + i}",
            dice.choice(["dunlin", "plover", "knot", "turnstone"]),
            dice.choice(["Skerry", "Lagoon", "Point"]),
            dice.randint(100, 175),
            round(dice.uniform(38, 190), 1),
            _day(dice, 2023),
            dice.choice(["f", "m"]),
        )
        for i in range(150)
    ]
    counts = pd.DataFrame(
        {
            "site": [site for site in ("Skerry", "Lagoon", "Point") for _ in range(4)],
            "species": ["dunlin", "plover", "knot", "turnstone"] * 3,
            "n": [dice.randint(3, 240) for _ in range(12)],
        }
    )
    temps = pd.Series([round(dice.uniform(-2, 24), 1) for _ in range(30)], name="temps")
    return World(
        "birds",
        {
            "ringing.csv": _csv("ring,species,site,wing_mm,mass_g,ringed_on,sex", ringed),
            "sites.csv": _csv(
                "site,latitude,longitude,protected",
                [("Skerry", 58.1, 11.3, "yes"), ("Lagoon", 57.9, 11.8, "no"), ("Point", 57.6, 11.6, "yes")],
            ),
            "notes/day1.txt": "Wind from the west.\nTwo peregrines over the Lagoon.\nNet 3 torn.\n",
            "notes/day2.txt": "Calm and foggy.\nNo peregrines.\nNet 3 mended, net 5 lost.\n",
            "methods.md": "# Methods\n\nMist nets at dawn. Wings are measured flattened, in millimetres.\n",
        },
        {"counts": counts, "temps": temps, "threshold": 0.8},
        (wing_index,),
    )


WORLDS = {world.name: world for world in (clinic(), library(), energy(), shop(), birds())}
