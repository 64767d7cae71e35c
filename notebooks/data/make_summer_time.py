"""Make summer_time.csv from the time zone database of this machine: python make_summer_time.py

One row is one summer time in one place: the first day on which clocks at noon stand ahead of standard time, and
the first day on which they no longer do. Nothing is sampled or invented; the same release of the database gives
the same file, byte for byte.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

DATABASE = Path("/usr/share/zoneinfo")  # where Linux and macOS keep it
HERE = Path(__file__).parent
FIRST, LAST = date(1980, 1, 1), date(2024, 12, 31)
COLUMNS = ("region", "country", "city", "year", "starts", "ends", "days", "shift_minutes", "utc_offset")
REGIONS = ("Africa", "America", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")


def places() -> Iterator[tuple[str, str]]:
    """Zone and country of every place whose clocks have had a history of their own since 1970."""
    names = dict(rows("iso3166.tab"))
    for codes, _, zone, *_ in rows("zone1970.tab"):
        if zone.count("/") == 1 and zone.startswith(REGIONS):
            yield zone, names[codes.split(",")[0]]


def rows(name: str) -> Iterator[list[str]]:
    for line in (DATABASE / name).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            yield line.split("\t")


def summers(zone: str) -> Iterator[dict[str, object]]:
    """Every summer time of a zone that began and ended between FIRST and LAST."""
    clock, starts, shift, offset = ZoneInfo(zone), None, 0, 0.0
    for days in range((LAST - FIRST).days + 1):
        day = FIRST + timedelta(days=days)
        noon = datetime.combine(day, time(12), clock)
        ahead = int((noon.dst() or timedelta()).total_seconds() // 60)
        if ahead > 0 and starts is None:
            # One that was under way on the first day began before it, so its length is not known.
            starts, shift = day, ahead if days else 0
            offset = (noon.utcoffset() or timedelta()).total_seconds() / 3600
        elif ahead <= 0 and starts is not None:
            if shift:
                yield {
                    "year": starts.year,
                    "starts": starts.isoformat(),
                    "ends": day.isoformat(),
                    "days": (day - starts).days,
                    "shift_minutes": shift,
                    "utc_offset": f"{offset:g}",
                }
            starts = None


def main() -> None:
    found = [
        {
            "region": zone.split("/")[0],
            "country": country,
            "city": zone.split("/")[1].replace("_", " "),
            **summer,
        }
        for zone, country in places()
        for summer in summers(zone)
    ]
    found.sort(key=lambda row: (row["region"], row["country"], row["city"], row["starts"]))
    with (HERE / "summer_time.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
    print(f"{len(found):,} summers in {len({row['city'] for row in found})} cities")


if __name__ == "__main__":
    main()
