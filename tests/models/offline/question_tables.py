"""The two frames and three files that the 150 questions are asked of, made from a fixed seed.

They are full of traps: values that read like the grammar ("Average Joe Gym", "May Flowers", a region *north* and a
customer *North Star Cafe*), missing amounts, repeated rows, blank and missing comments, and a product that no file
prices.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from tests.models.offline.worlds import World

SEED = 7
ORDERS = 494  # before six of them are repeated
PRICES = {
    "Desk": 180.0,
    "Standing Desk": 420.0,
    "Chair": 95.0,
    "Lamp": 32.5,
    "Desk Lamp": 41.0,
    "Nameplate": 12.0,
    "Open Shelf": 140.0,
    "Monitor Arm": 68.0,
}
_CUSTOMERS = """Northwind Traders, North Star Cafe, Eastgate Foods, Westfield & Sons, Southpaw Sports, Open Doors Ltd,
Average Joe Gym, May Flowers, June Baker, Top Drawer Ltd, Retail Rocket, Maximo Bros, Old Mill Inn, Acme Corp,
Birch Clinic,
Blue Harbor, Cedar School, Delta Print, Ember Studio, Falcon Freight, Garnet Hotel, Harvest Kitchen, Iris Optics,
Juniper Law, Kestrel Media, Larch Dental, Mosaic Tiles, Nimbus Labs, Oakridge Farm, Pioneer Books, Quartz Watches,
Raven Security, Sable Salon, Tidal Surf, Umber Pottery, Vertex Design,
Willow Care, Xenon Lights, Yarrow Tea, Zephyr Travel"""
NAMES = [name.strip() for name in _CUSTOMERS.split(",")]
COMMENTS = [
    "urgent",
    "URGENT - call first",
    "not urgent",
    "gift wrap please",
    "gift card inside",
    "leave at the door",
    "north entrance",
    "paid in cash",
    "customer will call",
    "fragile",
    "wrong colour, exchange asked",
    "repeat order",
    "open on arrival to check",
    "second half in June",
]
NOTES = """# Notes

- The warehouse in Lyon closes on Fridays at noon.
- Ask Paula about the new packaging for the lamps.
- TODO: check the returns form with legal
- Wholesale customers get an invoice at the end of the month.
- TODO: delete the comment column before sending the file out
- Desk legs: the supplier changed the screws in April.
- The second warehouse opens in September.
"""
REPORT = """Half-year report 2026
Prepared by: Ines Moreau
Scope: January to June

The target for the half year was 300000.
Returns were handled by the warehouse team.
Cancelled orders are listed but were not shipped.
Two complaints about packaging were received.
The next report is due on 15 January 2027.
"""


def _texts(frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    kind = "str" if int(pd.__version__.split(".")[0]) >= 3 else object
    return frame.astype(dict.fromkeys(columns, kind))


def _orders(dice: np.random.Generator) -> pd.DataFrame:
    weights = dice.gamma(3.0, size=len(NAMES))
    who = np.concatenate(
        [np.arange(len(NAMES)), dice.choice(len(NAMES), size=ORDERS - len(NAMES), p=weights / weights.sum())]
    )
    dice.shuffle(who)
    days = pd.date_range("2026-01-01", "2026-06-30")
    month_weight = np.array([1.0, 0.8, 1.35, 1.1, 1.5, 0.95])[days.month - 1]
    day = days[dice.choice(len(days), size=ORDERS, p=month_weight / month_weight.sum())]
    product = dice.choice(list(PRICES), size=ORDERS, p=[0.17, 0.08, 0.2, 0.15, 0.13, 0.09, 0.1, 0.08])
    quantity = dice.integers(1, 16, size=ORDERS)
    price = np.array([PRICES[name] for name in product])
    amount = np.round(quantity * price * dice.uniform(0.8, 1.2, size=ORDERS), 2)
    region = dice.choice(["north", "south", "east", "west"], size=ORDERS, p=[0.31, 0.22, 0.27, 0.2])
    status = dice.choice(["paid", "open", "cancelled"], size=ORDERS, p=[0.62, 0.24, 0.14])
    comments = np.array([*COMMENTS, "", None], dtype=object)
    comment = dice.choice(comments, size=ORDERS, p=[0.05] * len(COMMENTS) + [0.12, 0.18])
    picks = dice.choice(ORDERS, size=12 + 5 + 6, replace=False)
    gone, odd, twice = picks[:12], picks[12:17], picks[17:]
    amount[gone] = np.nan
    amount[odd] = [48250.0, 39999.99, 27500.5, 61000.0, -315.75]
    frame = pd.DataFrame(
        {
            "order_id": np.arange(1001, 1001 + ORDERS),
            "day": day,
            "customer": np.array(NAMES)[who],
            "region": region,
            "product": product,
            "quantity": quantity,
            "amount": amount,
            "status": status,
            "comment": comment,
        }
    )
    frame = frame.iloc[np.concatenate([np.arange(ORDERS), twice])]
    frame = frame.iloc[dice.permutation(len(frame))].reset_index(drop=True)
    return _texts(frame, ["customer", "region", "product", "status", "comment"])


def _customers(dice: np.random.Generator) -> pd.DataFrame:
    days = dice.choice(365 * 8, size=len(NAMES), replace=False)
    since = pd.to_datetime("2017-01-01") + pd.to_timedelta(days, unit="D")
    segment = dice.choice(["retail", "wholesale"], size=len(NAMES), p=[0.6, 0.4])
    segment[NAMES.index("Retail Rocket")] = "wholesale"
    active = dice.random(len(NAMES)) < 0.8
    frame = pd.DataFrame({"customer": NAMES, "segment": segment, "since": since, "active": active})
    return _texts(frame, ["segment"]).iloc[dice.permutation(len(NAMES))].reset_index(drop=True)


def question_world() -> World:
    """The frames `orders` and `customers`, and the files beside them; new objects at every call."""
    dice = np.random.default_rng(SEED)
    orders = _orders(dice)
    prices = [f"{name},{price}" for name, price in PRICES.items() if name != "Monitor Arm"]
    files = {
        "notes.md": NOTES,
        "report.txt": REPORT,
        "prices.csv": "\n".join(["product,price", *prices, "Whiteboard,210.0"]) + "\n",
    }
    return World("questions", files, {"orders": orders, "customers": _customers(dice)})
