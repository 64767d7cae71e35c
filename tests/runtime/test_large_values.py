"""Large values are told from small ones, and looked through off the loop."""

from __future__ import annotations

import threading

import pandas

from reyn_jupyter.runtime.large_values import is_large, look_through


def test_large_values_are_told_from_small_ones_without_looking_at_all_of_them() -> None:
    circle: list[object] = ["x"]
    circle.append(circle)
    assert not is_large({"text": "x" * 1000, "rows": [[1, 2]] * 100, "frame": pandas.DataFrame()})
    for large in ("x" * 100_000, [0] * 100_000, {"x" * 100_000: 1}, [["x" * 1000] * 10] * 100, circle):
        assert is_large({"given": large}) and is_large(large)


async def test_a_large_value_is_looked_through_in_another_thread_and_a_small_one_here() -> None:
    here = threading.current_thread()
    assert await look_through("x" * 100_000, threading.current_thread) is not here
    assert await look_through("x", threading.current_thread) is here
