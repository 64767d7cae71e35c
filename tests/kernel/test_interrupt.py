"""Interrupting the cell stops the run, cleans up, and leaves a kernel that goes on."""

from __future__ import annotations

import json

from tests.kernel.kernel_support import Kernel

HANG = """
cleaned = []

async def hang(request):
    try:
        await asyncio.sleep(60)
    finally:
        cleaned.append("yes")
"""


def test_an_interrupt_while_the_model_hangs_ends_the_run_and_keeps_what_it_did(kernel: Kernel) -> None:
    kernel.run(
        HANG
        + "says(call('invoke_action', action_name='file__read', args={'path': 'notes.txt'}), hang, 'Back again.')"
    )
    cell = kernel.run("%%reyn\nread, then hang", interrupt_at="Step 2: waiting")
    assert cell.error is None and cell.reply["status"] == "ok"
    assert len(cell.outputs) == 1
    assert "◼ interrupted" in cell.text and "Before that it ran file__read." in cell.text
    assert (
        kernel.value("cleaned, _.status, len(_.calls), _.call_log.shape[0]")
        == "(['yes'], 'interrupted', 1, 1)"
    )
    assert "Back again." in kernel.run("%%reyn\ngo on").text


def test_after_an_interrupt_every_tool_call_of_the_history_has_a_result(kernel: Kernel) -> None:
    kernel.run(
        "@reyn.action\ndef slow() -> str:\n    '''Take long.'''\n    time.sleep(30)\n    return 'x'\n"
        "listing = call('invoke_action', action_name='file__list', args={})\n"
        "says([call('invoke_action', action_name='function__slow', args={}), listing], 'Back.')"
    )
    cell = kernel.run("%%reyn --approve all\nhang in a function", interrupt_at="running function__slow")
    assert "◼ interrupted" in cell.text and cell.error is None
    assert "Back." in kernel.run("%%reyn\ngo on").text
    sent = json.loads(
        kernel.value("__import__('json').dumps(session.parts.model.requests[-1].wire['messages'])")
    )
    asked = [call["id"] for message in sent for call in message.get("tool_calls", ())]
    answered = [message["tool_call_id"] for message in sent if message["role"] == "tool"]
    assert len(asked) == 2 and sorted(asked) == sorted(answered)


def test_interrupting_a_call_by_hand_says_so_in_one_line(kernel: Kernel) -> None:
    kernel.run(
        "@reyn.action\ndef loop() -> str:\n    '''Take long.'''\n    print('in it', flush=True)\n    time.sleep(30)\n"
        "    return 'x'"
    )
    cell = kernel.run("%reyn invoke function__loop", interrupt_at="in it")
    assert cell.error == "Interrupted. What was done until then is in the record: %reyn trace last"
    assert "◼ interrupted" in kernel.run("%reyn trace last").text


def test_an_interrupt_ends_a_loop_around_the_verb_too(kernel: Kernel) -> None:
    kernel.run(
        "@reyn.action\ndef nap() -> str:\n    '''Wait.'''\n    print('zz', flush=True)\n    time.sleep(30)"
    )
    cell = kernel.run(
        "for _ in range(3):\n    try:\n        get_ipython().run_line_magic('reyn', 'invoke function__nap')\n"
        "    except Exception:\n        pass",
        interrupt_at="zz",
    )
    assert cell.printed.count("zz") == 1
    assert cell.error is not None and cell.error.startswith("Interrupted.")


def test_interrupting_the_question_denies_it_and_stops_the_run(kernel: Kernel) -> None:
    kernel.run("says(write('new.txt', 'x'), 'Done.')")
    cell = kernel.run("%%reyn\nwrite it", answers=[], interrupt_at="asks for consent")
    assert "◼ interrupted" in cell.text and cell.error is None
    assert not (kernel.workspace / "new.txt").exists()
    assert kernel.value("1 + 1") == "2"


def test_a_view_that_fails_stops_the_run_and_is_said_in_one_line(kernel: Kernel) -> None:
    # Without search nothing comes between the start of the run and the model.
    kernel.run("%reyn config action_retrieval.embedding_class null")
    kernel.run(HANG + "says(hang)")
    cell = kernel.run(
        "publisher = get_ipython().display_pub\nworking = publisher.publish\n"
        "def broken(*args, **kwargs):\n    raise OSError('nobody listens any more')\n"
        "publisher.publish = broken\n"
        "try:\n    get_ipython().run_line_magic('reyn', 'ask hello')\n"
        "finally:\n    publisher.publish = working"
    )
    assert cell.error == "OSError: nobody listens any more. %reyn debug shows where it happened."
    assert kernel.value("cleaned, session.trace().status") == "(['yes'], 'interrupted')"
