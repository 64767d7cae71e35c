"""`%reyn ask`: what its options take."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest

from reyn_jupyter.router.request.router_options import Discovery


@pytest.mark.parametrize("way", get_args(Discovery))
def test_a_question_takes_every_way_of_discovery_that_the_settings_know(
    run: Callable[[str], str], way: str
) -> None:
    said = run(f'%reyn ask --dry --discovery {way} "which files are here?"')
    assert "tokens" in said
