"""The process in which charts are drawn: `python -m` of this module, started by `backends.charts.renderer`.

Invariant: Altair and the native renderer meet data alone here, in a process with bounded memory, no files and no
environment of the person's, which can be killed.
"""

from __future__ import annotations

import os
import sys
import time
from importlib import import_module
from typing import Any

from reyn_jupyter.support.programs.child_process import ChildMessage, serve

_FIRST: dict[str, Any] = {
    "layers": [["bar", {}, {"x": {"field": "x", "type": "nominal"}}]],
    "values": [{"x": "a"}],
    "title": ["a"],
    "subtitle": [],
    "width": 10,
    "height": 10,
}


def main() -> None:
    """Serve until the parent is gone."""
    os.environ["TZ"] = "UTC"  # moments are drawn as they are written
    time.tzset()
    # Altair loads jsonschema, and that a grammar of addresses, most of the time until the first chart. Where it cannot
    # be imported, jsonschema does without one check of a format, which no spec asks for.
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
    answer = import_module("reyn_jupyter.backends.charts.vega_lite").answer
    # The renderer's own engine takes its time to start.
    answer(ChildMessage({"drawing": _FIRST, "longest": 1 << 20}))
    serve(answer, lambda: None)


if __name__ == "__main__":
    main()
