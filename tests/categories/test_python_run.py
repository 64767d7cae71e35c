"""Python in the person's namespace: what a call gives, what it says of the names, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reyn_jupyter as reyn
from reyn_jupyter.backends.code_run import BoundedText
from reyn_jupyter.backends.name_changes import NamesBefore
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.sessions.runs.undo import NothingToUndoError
from tests.categories.notebook_support import Hostile
from tests.security.security_support import invoke


class Notebook:
    """A session with Python switched on, whose person says yes."""

    def __init__(self, root: Path, **names: Any) -> None:
        self.names: dict[str, Any] = names
        self.questions: list[Question] = []
        self.session = reyn.Session(root, store="memory", namespace=self.names)
        self.session.python("on")
        self.session.parts.ask_person = self._yes

    def _yes(self, question: Question) -> Answer:
        self.questions.append(question)
        return "once"

    def run(self, code: str) -> Any:
        """Run code by hand, and return its value."""
        return self.session.invoke_action("python__run", {"code": code}).value

    def error(self, code: str) -> str:
        result = self.session.invoke_action("python__run", {"code": code})
        assert result.error is not None
        return str(result.payload)

    def ask(self, *codes: str) -> tuple[Trace, str]:
        """Let a model run code, a piece a step; return the trace and what it read."""
        model = ScriptedModel(*(invoke("python__run", code=code) for code in codes), "done")
        trace = self.session.ask("go", model=model, new=True)
        assert trace.answer == "done", trace.error
        messages = model.requests[-1].messages
        return trace, "\n".join(each.content for each in messages if each.role == "tool")


@pytest.fixture
def notebook(tmp_path: Path) -> Callable[..., Notebook]:
    return lambda **names: Notebook(tmp_path, **names)


def test_the_value_of_a_last_expression_and_what_was_printed_come_back(notebook: Any) -> None:
    book = notebook(a=2)
    assert book.run("print('hello')\na * 21") == {"value": 42, "printed": "hello\n"}
    assert book.run("import sys\nsys.stderr.write('oh'); None")["printed_to_stderr"] == "oh"
    assert book.run("None") == {"note": "It ran, printed nothing, and made or changed no name."}


def test_a_table_is_the_result_itself_with_a_note_of_the_names(notebook: Any) -> None:
    book = notebook(orders=pd.DataFrame({"region": ["north", "south"], "value": [1, 2]}))
    result = book.session.invoke_action("python__run", {"code": "big = orders[orders.value > 1]\nbig"})
    assert isinstance(result.value, pd.DataFrame) and result.value.value.tolist() == [2]
    assert "made big (DataFrame, 1 row × 2 columns: region, value)" in result.payload
    assert "reyn_note" not in book.names["big"].attrs
    trace, _ = book.ask("orders.sort_values('value', ascending=False)")
    assert trace.df.value.tolist() == [2, 1]


def test_names_are_told_by_type_and_size_alone(notebook: Any) -> None:
    Hostile.calls.clear()
    book = notebook(kept=[1], table=pd.DataFrame({"a": [1]}), old=1, Hostile=Hostile)
    told = book.run(
        "kept.append(2)\ntable = 'text'\ndel old\nthing = Hostile()\n_private = 1\napi_key = 'x' * 40"
    )
    assert told == {
        "made": {"thing": "Hostile"},
        "changed": {"table": "DataFrame, 1 row × 1 column: a → str, 4 characters"},
        "changed_in_place": {"kept": "list, 1 element → list, 2 elements"},
        "removed": {"old": "int"},
        "names_not_shown": 2,
    }
    assert Hostile.calls == []


def test_an_error_says_its_type_and_its_line_and_keeps_what_was_printed(notebook: Any) -> None:
    book = notebook()
    said = book.error("x = 1\nprint('before')\ndef f():\n    return missing\nf()")
    assert "NameError: name 'missing' is not defined" in said
    assert "line 5: f()" in said and "line 4: return missing" in said
    assert "before" in said and "site-packages" not in said
    assert book.names["x"] == 1


@pytest.mark.parametrize(
    "code",
    [
        "exit()",
        "raise SystemExit(3)",
        "raise BaseException('odd')",
        "class E(Exception):\n    def __str__(self): raise E\nraise E",
    ],
)
def test_nothing_that_code_raises_ends_the_session(notebook: Any, code: str) -> None:
    book = notebook()
    assert book.error(code)
    assert book.run("1 + 1") == {"value": 2}


@pytest.mark.parametrize(
    "code", ["1 +", "%matplotlib inline", "!ls", "await something()", "return 1", "(" * 500]
)
def test_what_is_no_python_is_refused_before_anybody_is_asked(notebook: Any, code: str) -> None:
    book = notebook()
    _, read = book.ask(code)
    assert "It is not run:" in read and book.questions == []


def test_the_question_shows_the_whole_code_and_offers_no_always(notebook: Any) -> None:
    book = notebook()
    code = "\n".join(f"a{number} = {number}" for number in range(300)) + "\nsecret_ending = 1"
    book.ask(code)
    (question,) = book.questions
    shown = [line.text for line in question.detail.lines]
    assert [line for line in code.split("\n") if line not in shown] == []
    assert [choice.answer for choice in question.choices] == ["once", "deny"]


def test_code_that_says_no_is_not_run(notebook: Any) -> None:
    book = notebook()
    book.session.parts.ask_person = lambda question: "deny"
    _, read = book.ask("x = 1")
    assert "Denied" in read and "x" not in book.names


def test_undo_takes_new_names_away_and_restores_others(notebook: Any) -> None:
    book = notebook(orders=[1, 2], gone="here", kept=[1])
    book.ask("total = sum(orders)\norders = 'nothing'\ndel gone\nkept.append(2)")
    card = book.session.undo()
    assert book.names == book.names | {"orders": [1, 2], "gone": "here", "kept": [1, 2]}
    assert "total" not in book.names
    said = str(card)
    assert "removed: total" in said and "restored: orders and gone" in said
    assert "changed in place and not restored: kept" in said
    with pytest.raises(NothingToUndoError):
        book.session.undo()


def test_undo_leaves_what_the_person_changed_since(notebook: Any) -> None:
    book = notebook(a=1)
    book.ask("a = 2\nb = 3")
    book.names["b"] = "mine"
    assert "changed since, so they stay: b" in str(book.session.undo())
    assert book.names["a"] == 1 and book.names["b"] == "mine"


def test_undo_walks_back_run_by_run_and_step_by_step(notebook: Any) -> None:
    book = notebook()
    first, _ = book.ask("a = 1", "b = 2")
    book.ask("c = 3")
    book.session.undo(f"{first.run}:2")
    assert "b" not in book.names and book.names["a"] == 1 and book.names["c"] == 3
    book.session.undo()
    assert "c" not in book.names


def test_undo_restores_files_and_names_of_one_run(notebook: Any, tmp_path: Path) -> None:
    book = notebook()
    model = ScriptedModel(
        invoke("file__write", path="a.txt", content="x"), invoke("python__run", code="n = 1"), "ok"
    )
    book.session.ask("go", model=model)
    assert "1 file removed" in str(book.session.undo())
    assert not (tmp_path / "a.txt").exists() and "n" not in book.names


def test_code_cannot_call_the_session_from_within(notebook: Any) -> None:
    book = notebook()
    book.names["session"] = book.session
    assert "WouldDeadlockError" in book.error("session.ask('again')")


def test_a_secret_that_code_prints_is_masked_for_the_model(
    notebook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_API_KEY", "correct-horse-battery")
    book = notebook()
    _, read = book.ask("import os\nprint(os.environ['DEMO_API_KEY'])")
    assert "printed" in read and "correct-horse" not in read


@given(st.lists(st.text(max_size=40), max_size=30), st.integers(2, 60))
def test_a_bounded_stream_keeps_beginning_and_end_and_counts_the_rest(texts: list[str], most: int) -> None:
    stream, whole = BoundedText(most), "".join(texts)
    for text in texts:
        stream.write(text)
    half = most // 2
    if len(whole) <= 2 * half:
        assert stream.text == whole
    else:
        head, gap, tail = stream.text[:half], stream.text[half:-half], stream.text[-half:]
        assert (head, tail) == (whole[:half], whole[-half:])
        assert f"{len(whole) - 2 * half:,} characters" in gap


_NAMES = st.dictionaries(
    st.sampled_from("abcdefgh"), st.one_of(st.integers(), st.lists(st.integers())), max_size=8
)


@given(_NAMES, _NAMES, st.sets(st.sampled_from("abcdefgh")))
def test_undo_gives_back_exactly_the_names_that_were_there(before: Any, made: Any, removed: Any) -> None:
    names = dict(before)
    held = NamesBefore(names, lambda name, value: True)
    names.update(made)
    for name in removed:
        names.pop(name, None)
    undo = held.changes().undo
    if undo is not None:
        undo.revert()
    assert names.keys() == before.keys() and all(names[name] is before[name] for name in before)
