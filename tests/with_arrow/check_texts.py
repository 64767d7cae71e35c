"""Where pyarrow is installed, pandas keeps texts in it, which holds no half character; what comes of a run shows."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.support.frames import frame_of_rows

HALF = "half \ud800 a character"


@pytest.mark.skipif(int(pd.__version__.partition(".")[0]) < 3, reason="pandas 2 keeps texts as objects")
def test_texts_are_kept_in_pyarrow_here() -> None:
    assert pd.Series(["a"]).dtype.storage == "pyarrow"


def test_a_run_with_half_a_character_gives_its_frames(tmp_path: Path) -> None:
    asked = call("invoke_action", action_name=HALF, args={})
    with closing(reyn.Session(tmp_path, model=ScriptedModel(asked, "No such thing."))) as session:
        trace = session.ask("do it")
        assert "half" in trace.call_log["error"][0] and len(trace.call_log) == 1
        assert len(session.history.df) == 1


def test_rows_of_a_person_show_as_they_are(tmp_path: Path) -> None:
    frame = frame_of_rows([{HALF: HALF, "number": 1}])
    assert frame.to_dict("records") == [{HALF: HALF, "number": 1}]


def test_rows_with_half_a_character_are_stored_and_come_back(tmp_path: Path) -> None:
    rows = [{"text": f"{HALF} {number}", "number": number} for number in range(5_000)]
    with closing(reyn.Session(tmp_path)) as session:

        @session.action
        def give() -> list[dict[str, object]]:
            """Give rows."""
            return rows

        result = session.invoke_action("function__give", {})
        assert result.ok and result.blob is not None
        assert result.blob.df["text"].tolist() == [row["text"] for row in rows]
