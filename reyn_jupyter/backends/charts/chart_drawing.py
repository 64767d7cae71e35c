"""A chart as plain data: what Altair is given, and the same in words.

Invariants: the rows have columns of our own names (`x`, `y`, `color` …), so that no name or value of the data is ever
read as a path, an expression or an address; titles and labels are text on one line, without secrets. The marks are
bounded, and whatever was left out, put together or binned is said in `notes`, on the chart and in its words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Encodings = Mapping[str, Mapping[str, Any]]

# The classes of Altair for the channels, by the keyword that takes them.
CLASSES = {
    "x": "X", "x2": "X2", "y": "Y", "y2": "Y2", "xOffset": "XOffset", "yOffset": "YOffset",
    "color": "Color", "row": "Row", "column": "Column",
}  # fmt: skip


@dataclass(frozen=True)
class ChartLayer:
    """One mark over the rows: its name and options as Altair has them, and its encodings."""

    mark: str
    options: Mapping[str, Any]
    encodings: Encodings


@dataclass(frozen=True)
class ChartTable:
    """The rows that are drawn, as text: the names of the columns, the first rows, how many more there are."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    more: int = 0


@dataclass(frozen=True)
class ChartDrawing:
    """All that a chart is made of.

    Attributes:
        layers: drawn over each other.
        values: the rows, plain JSON.
        title: what it shows; `notes` are sentences about what is not as the data are.
        width, height: pixels of the plot, of each one where there are several.
        words: the chart in a sentence or two.
        data_code: the lines of Python that compute the rows, as `data`.
    """

    layers: tuple[ChartLayer, ...]
    values: Sequence[Mapping[str, Any]]
    title: str
    notes: tuple[str, ...]
    width: int
    height: int
    words: str
    table: ChartTable
    data_code: tuple[str, ...] = field(default=())

    @property
    def record(self) -> dict[str, Any]:
        """What the process that draws is sent."""
        return {
            "layers": [[each.mark, dict(each.options), dict(each.encodings)] for each in self.layers],
            "values": list(self.values),
            "title": title_lines(self.title),
            "subtitle": [line for note in self.notes for line in title_lines(note)],
            "width": self.width,
            "height": self.height,
        }

    @property
    def code(self) -> str:
        """Python that draws the same chart with Altair."""
        made = [_layer_code(layer) for layer in self.layers]
        chart = (
            made[0] if len(made) == 1 else "alt.layer(\n" + "".join(f"    {each},\n" for each in made) + ")"
        )
        title = repr(" ".join(title_lines(self.title)))
        imports = [
            "import altair as alt",
            *(["import duckdb"] if any("duckdb." in x for x in self.data_code) else []),
        ]
        end = f"chart.properties(title={title}, width={self.width}, height={self.height})"
        return "\n".join([*imports, "", *self.data_code, f"chart = {chart}", end, ""])


def _layer_code(layer: ChartLayer) -> str:
    options = ", ".join(f"{name}={value!r}" for name, value in layer.options.items())
    channels = "".join(
        f"    {channel}=alt.{CLASSES[channel]}({', '.join(f'{key}={value!r}' for key, value in given.items())}),\n"
        for channel, given in layer.encodings.items()
    )
    return f"alt.Chart(data).mark_{layer.mark}({options}).encode(\n{channels})"


def title_lines(text: str, width: int = 90, most: int = 3) -> list[str]:
    """Return a text as lines that a title has room for; a cut ends with "…"."""
    import textwrap

    return textwrap.wrap(text, width, max_lines=most, placeholder=" …")
