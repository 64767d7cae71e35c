"""A run in a real kernel: one card, updated in place, and an object behind it."""

from __future__ import annotations

import pytest

from tests.kernel.kernel_support import Kernel

STREAMING = """
from reyn_jupyter.models.base import Response

class Streaming(ScriptedModel):
    async def complete(self, request, on_text=None):
        for _ in range(100):
            on_text("word ")
            await asyncio.sleep(0.01)
        return Response("word " * 100)

publisher = get_ipython().display_pub
working, shown = publisher.publish, []

def publish(*args, **given):
    shown.append((args[0] if args else given["data"]).get("text/plain", ""))
    return working(*args, **given)

class Pausing(ScriptedModel):
    async def complete(self, request, on_text=None):
        async with asyncio.timeout(60):
            for text, until in (("half an ", "half an"), ("answer", "half an answer")):
                on_text(text)
                while until not in "".join(shown):
                    await asyncio.sleep(0.02)
        return Response("half an answer")
"""


@pytest.mark.parametrize(
    "code", ["%%reyn\nhello", "x = %reyn ask hello", "%reyn ask hello -o x", "%%reyn -o x\nhello"]
)
def test_a_run_has_exactly_one_output(kernel: Kernel, code: str) -> None:
    kernel.run("says('Hello to you.')")
    cell = kernel.run(code)
    assert "Hello to you." in cell.text
    assert len(cell.outputs) == 1
    assert {each["transient"]["display_id"] for each in cell.updates} == {
        cell.outputs[0]["transient"]["display_id"]
    }


def test_the_returned_trace_is_silent_once_and_then_shows(kernel: Kernel) -> None:
    kernel.run("says('Hello to you.', 'Once more.')")
    assert len(kernel.run("%%reyn\nhello").outputs) == 1
    assert kernel.value("type(_).__name__, _.answer") == "('Trace', 'Hello to you.')"
    kernel.run("x = %reyn ask again")
    assert "Once more." in kernel.run("x").text
    assert len(kernel.run("x").outputs) == 1


TABLE = """
import pandas as pd
orders = pd.DataFrame({"region": ["north", "south"], "day": pd.to_datetime(["2024-01-01", "2024-01-02"])})
query = {"sql": "SELECT * FROM orders", "sources": {"orders": "orders"}}
says(call("invoke_action", action_name="table__query", args=query), "Two orders.", "Two, as I said.")
"""


@pytest.mark.parametrize(
    "code", ["%%reyn\ngo", "%reyn ask go", "%%reyn -o res\ngo", "res = %reyn ask go", "%reyn ask go -o res"]
)
def test_an_answer_that_is_a_table_comes_back_as_its_frame(kernel: Kernel, code: str) -> None:
    assert kernel.run(TABLE).error is None
    cell = kernel.run(code)
    assert "Two orders." in cell.text and len(cell.outputs) == 1
    name = "res" if "res" in code else "_"
    assert kernel.value(f"type({name}).__name__, {name}.answer, {name}.sql, {name}.trace.status") == (
        "('ResultFrame', 'Two orders.', 'SELECT * FROM orders', 'ok')"
    )
    assert kernel.value(f"{name}.day.dtype.kind, list({name}.region)") == "('M', ['north', 'south'])"
    shown = kernel.run(name)
    assert "2024-01-02" in shown.text and "Two orders." not in shown.text and len(shown.outputs) == 1
    assert "Two orders." in kernel.run(f"{name}.trace").text


def test_an_answer_without_a_table_comes_back_as_its_run(kernel: Kernel) -> None:
    assert kernel.run(TABLE).error is None
    kernel.run("%%reyn\ngo")
    kernel.run("%%reyn -o res\nand now?")
    assert kernel.value("type(res).__name__, res.answer") == "('Trace', 'Two, as I said.')"


def test_a_second_display_in_the_same_cell_shows(kernel: Kernel) -> None:
    kernel.run("says('Hello to you.')")
    cell = kernel.run("x = %reyn ask hello\ndisplay(x)\ndisplay(x)")
    assert len(cell.outputs) == 2


def test_a_card_holds_html_without_script_beside_text(kernel: Kernel) -> None:
    kernel.run("says('<script>alert(1)</script> ![x](http://evil.example/pixel.png)')")
    data = kernel.run("%%reyn\nhello").updates[-1]["data"]
    assert {"application/vnd.reyn.trace+json", "text/html", "text/plain"} <= set(data)
    assert "<script" not in data["text/html"] and "<img" not in data["text/html"]


def test_streamed_text_is_coalesced_to_ten_updates_a_second(kernel: Kernel) -> None:
    kernel.run(STREAMING + "\nreyn.session().parts.model = Streaming()")
    cell = kernel.run("%%reyn\nhello")
    assert 3 <= len(cell.updates) <= 10 * cell.seconds + 2
    assert any("the answer so far" in text for text in cell.drawn)
    assert "the answer so far" not in cell.text


def test_what_was_held_back_is_shown_when_it_goes_quiet(kernel: Kernel) -> None:
    kernel.run(STREAMING + "\nreyn.session().parts.model = Pausing()\npublisher.publish = publish")
    cell = kernel.run("%%reyn\nhello")
    kernel.run("publisher.publish = working")
    seen = [text for text in cell.drawn if "the answer so far" in text]
    assert "half an answer" not in seen[0] and "half an answer" in seen[-1]


def test_cells_continue_one_conversation_and_the_card_says_so(kernel: Kernel) -> None:
    kernel.run("says('One.', 'Two.', 'Three.')")
    assert "turn" not in kernel.run("%%reyn\nfirst").text
    assert "turn 2" in kernel.run("%%reyn\nsecond").text
    assert "turn" not in kernel.run("%%reyn --new\nthird").text


def test_running_a_cell_again_replaces_its_turn_and_says_what_went_along(kernel: Kernel) -> None:
    kernel.run("says('One.', 'Two.', 'One again.', 'Two again.')")
    kernel.run("%%reyn\nfirst", cell="a")
    kernel.run("%%reyn\nsecond", cell="b")
    again = kernel.run("%%reyn\nfirst, better", cell="a")
    assert "no turn before it went along, 1 later turn did not" in again.text
    assert "turn 1" in again.text
    assert kernel.value("[turn.prompt for turn in session.parts.conversation.turns]") == (
        "['first, better', 'second']"
    )
    assert "later turn" not in kernel.run("%%reyn\nsecond", cell="b").text


def test_a_background_run_returns_at_once_and_its_card_goes_on_in_place(kernel: Kernel) -> None:
    kernel.run("says(write('new.txt', 'x'), 'All done.', delay=0.2)")
    started = kernel.run("run = %reyn ask --bg write it", answers=["y"])
    assert len(started.outputs) == 1 and "Started in the background" in started.drawn[0]
    cell = started.outputs[0]["transient"]["display_id"]
    updates = kernel.later(" · sent ")
    assert {each["msg_type"] for each in updates} == {"update_display_data"}
    assert {each["content"]["transient"]["display_id"] for each in updates} == {cell}
    last = updates[-1]["content"]["data"]["text/plain"]
    assert "nobody is there to ask: the run is in the background" in last
    assert kernel.value("run.result(60).status, run.done, run.trace.answer") == "('ok', True, 'All done.')"
    assert not (kernel.workspace / "new.txt").exists()


def test_a_background_run_shows_once_and_then_as_one_line(kernel: Kernel) -> None:
    kernel.run("says('Done.', delay=0.2)")
    assert len(kernel.run("%%reyn --bg -o run\nhello").outputs) == 1
    kernel.later(" · sent ")
    kernel.run("ended = run.result(60)")
    assert kernel.run("run").text.startswith("In the background: hello  [ended]")


def test_a_background_run_is_stopped_by_cancel(kernel: Kernel) -> None:
    kernel.run("async def hang(request):\n    await asyncio.sleep(60)\nsays(hang)")
    kernel.run("run = %reyn ask --bg hello")
    kernel.later("waiting for scripted")
    kernel.run("run.cancel()")
    assert (
        "What it did until then is kept" in kernel.later("◼ interrupted")[-1]["content"]["data"]["text/plain"]
    )
    assert kernel.value("run.result(60).status") == "interrupted"


def test_a_background_run_may_call_functions_of_the_notebook(kernel: Kernel) -> None:
    kernel.run(
        "import threading\n@reyn.action\ndef where() -> str:\n    '''Tell the thread.'''\n"
        "    return threading.current_thread().name\n"
        "says(call('invoke_action', action_name='function__where', args={}), 'Done.')"
    )
    kernel.run("run = %reyn ask --bg where --approve all")
    kernel.later(" · sent ")
    assert "MainThread" in kernel.value("run.result(60).calls[0].finished.output")


def test_a_dry_run_calls_nothing_and_says_what_it_would(kernel: Kernel) -> None:
    kernel.run("says('never')")
    cell = kernel.run("%%reyn --dry\nhow many?")
    assert len(cell.outputs) == 1 and "Nothing was sent" in cell.text
    for said in ("list_actions", "system prompt", "first request", "at most 9", "nothing: no provider"):
        assert said in cell.text
    assert kernel.value("len(session.parts.model.requests)") == "0"


def test_a_budget_stops_between_calls_and_keeps_the_partial_run(kernel: Kernel) -> None:
    kernel.run(
        "from reyn_jupyter.models.base import Response, ToolCall\n"
        "dear = Response(tool_calls=(ToolCall('', 'list_actions', '{}'),), cost=0.04)\n"
        "says(otherwise=dear)"
    )
    cell = kernel.run("%%reyn --budget 0.1\nspend")
    assert "stopped at a limit" in cell.text and "0.1 US dollars" in cell.text and "--budget" in cell.text
    assert kernel.value("_.status, len(_.calls), round(_.cost, 2)") == "('limit', 3, 0.12)"


def test_without_a_price_a_budget_is_refused_not_ignored(kernel: Kernel) -> None:
    kernel.run("says(call('list_actions'), 'Done.')")
    assert "the budget cannot be kept" in kernel.run("%%reyn --budget 1\nspend").text


def test_a_megabyte_of_odd_text_is_sent_whole_and_shown_small(kernel: Kernel) -> None:
    kernel.run("says('Read.')")
    text = "{x} ${y} 'single' \"double\" 🦉 \\n %s\n" * 30_000
    cell = kernel.run(f"%%reyn\n{text}")
    assert len(cell.outputs) == 1 and "Read." in cell.text
    assert kernel.value("len(session.parts.model.requests[-1].messages[-1].content)") == str(len(text) - 1)
    assert all(len(each["data"]["text/html"]) < 32 * 1024 for each in (*cell.outputs, *cell.updates))


def test_a_model_that_is_not_configured_is_said_on_the_card(kernel: Kernel) -> None:
    cell = kernel.run("%%reyn -m strong\nhello")
    assert len(cell.outputs) == 1
    assert "No model is configured for the tier strong" in cell.text and "strong:" in cell.text


COUNTING = """
from reyn_jupyter import Session
from tests.support.courier import probe

async def count(args, context):
    async with asyncio.timeout(60):
        for number in range(1, 41):
            context.report(f"item {number}", number, 40, partial=list(range(number)))
            if number == 10:
                while "item 10 (10 of 40)" not in "".join(shown):
                    await asyncio.sleep(0.02)
    return "all items"
"""


def test_a_card_shows_how_far_a_call_is_while_it_runs(kernel: Kernel) -> None:
    kernel.run(STREAMING + COUNTING)
    kernel.run(
        "own = Session('.', store='memory', categories=(probe(count),))\n"
        "own.parts.model = ScriptedModel(call('invoke_action', action_name='probe__it', args={}), 'Counted.')\n"
        "get_ipython().display_pub.publish = publish\nshown.clear()"
    )
    try:
        cell = kernel.run(
            "from reyn_jupyter.notebook.displays.updating_display import LiveCard\n"
            "card = LiveCard(get_ipython(), own)\nx = card.finish(own.ask('count', on_event=card))"
        )
    finally:
        kernel.run("get_ipython().display_pub.publish = working")
    assert any("item 10 (10 of 40)" in text and "25 %" in text for text in cell.drawn)
    assert "Counted." in cell.text and "25 %" not in cell.text and len(cell.outputs) == 1
