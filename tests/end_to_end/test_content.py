"""Results of parts the whole way: handler → blobs → model request, over a real connection through LiteLLM → card."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Category, Operation, Purity, Tool
from reyn_jupyter.models.base import Request, media_taken
from reyn_jupyter.models.cassettes.cassette import CassettePlayer, CassetteRecorder
from reyn_jupyter.models.providers.litellm_model import LiteLLMModel
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.notebook.render import to_html, to_text, view
from reyn_jupyter.outputs.parts.content_parts import ContentPart, ContentParts
from reyn_jupyter.runtime.action_error import ActionError
from tests.support.openai_server import Answer, Call, OpenAIServer, Received
from tests.support.report_category import PLOT, TONE, report_category

SEES = frozenset({"image", "audio"})


def call_of(*names: str) -> Answer:
    return Answer(
        calls=tuple(Call("invoke_action", {"action_name": f"report__{name}", "args": {}}) for name in names)
    )


@pytest.fixture(scope="module")
def running() -> Iterator[OpenAIServer]:
    from reyn_jupyter.models.providers import litellm_loader

    litellm_loader.load()
    with OpenAIServer() as server:
        yield server


@pytest.fixture
def server(running: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> OpenAIServer:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-0123456789abcdefghijklmnop")
    running.clear()
    running.otherwise = Answer("ok")
    return running


@pytest.fixture
def session(workspace: Path, server: OpenAIServer) -> Callable[..., reyn.Session]:
    def make(model: str = "openai/gpt-4o-mini", **entry: Any) -> reyn.Session:
        config = {"models": {"standard": {"model": model, "api_base": server.url, **entry}}}
        return reyn.Session(workspace, config=config, categories=(report_category(),))

    return make


def contents(received: Received, kind: str) -> list[Any]:
    """Every content of a kind in a request, wherever it stands."""
    listed = [each["content"] for each in received.body["messages"] if isinstance(each["content"], list)]
    return [part[kind] for content in listed for part in content if part["type"] == kind]


def test_a_model_that_can_see_gets_the_image_after_the_results_and_the_record_no_bytes(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    server.script(call_of("sales", "text"), Answer("A rise in May."))
    s = session()
    trace = s.ask("how are the sales?")
    assert trace.answer == "A rise in May."
    messages = server.requests[1].body["messages"]
    assert [each["role"] for each in messages[-4:]] == ["assistant", "tool", "tool", "user"]
    result, other, seen = messages[-3:]
    assert isinstance(result["content"], str) and "Sales by month" in result["content"]
    assert other["content"] == "one text alone"
    url = f"data:image/png;base64,{base64.b64encode(PLOT).decode()}"
    assert seen["content"][2] == {"type": "image_url", "image_url": {"url": url}}
    assert contents(server.requests[1], "input_audio") == []  # it sees, and does not hear
    blob = s.blob(trace.calls[0].finished.blob)  # type: ignore[union-attr]
    assert f"[blob:{blob.part_entries[1].blob}]" in seen["content"][1]["text"]

    record = json.dumps([event.messages for event in trace.events if hasattr(event, "messages")])
    assert base64.b64encode(PLOT).decode()[:60] not in record
    [attached] = next(each for each in json.loads(record)[1] if "attachments" in each)["attachments"]
    assert attached["sha256"] == blob.part_entries[1].sha256
    assert attached["blob_id"] == blob.part_entries[1].blob
    sent = {item["name"]: item["bytes"] for item in trace.sent.contents}
    assert sent["report__sales"] == len(trace.calls[0].finished.output.encode()) + len(PLOT)  # type: ignore[union-attr]


def test_a_model_that_hears_gets_the_sound(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    server.script(call_of("sales"))
    session("openai/test", media=["audio"]).ask("how does it sound?")
    [sound] = contents(server.requests[1], "input_audio")
    assert base64.b64decode(sound["data"]) == TONE and sound["format"] == "wav"
    assert contents(server.requests[1], "image_url") == []


@pytest.mark.parametrize(("model", "entry"), [("openai/test", {}), ("openai/gpt-4o-mini", {"media": []})])
def test_a_model_that_cannot_see_gets_a_sentence_and_may_inspect(
    session: Callable[..., reyn.Session], server: OpenAIServer, model: str, entry: dict[str, Any]
) -> None:
    def look(received: Received) -> Answer:
        blob = received.body["messages"][-1]["content"].partition("[blob:")[2][:36]
        return Answer(calls=(Call("inspect", {"blob_id": blob, "selector": "part:4/key:total"}),))

    server.script(call_of("sales"), look)
    session(model, **entry).ask("how are the sales?")
    assert contents(server.requests[1], "image_url") == []
    assert '[image/png "sales.png", 320×200' in server.requests[1].body["messages"][-1]["content"]
    assert server.requests[2].body["messages"][-1]["content"] == "12"


def test_what_is_for_the_person_alone_is_not_sent(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    server.script(call_of("private"))
    session().ask("what is it?")
    assert contents(server.requests[1], "image_url") == []
    assert "for the person alone" in server.requests[1].body["messages"][-1]["content"]


def test_later_turns_hold_its_sentence_and_not_the_image(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    server.script(call_of("picture"), Answer("red"), Answer("still red"))
    s = session()
    s.ask("what colour?")
    assert len(contents(server.requests[1], "image_url")) == 1
    s.ask("sure?")
    assert contents(server.requests[2], "image_url") == []
    kept = next(each for each in server.requests[2].body["messages"] if each["role"] == "tool")
    assert "[shrunk: " in kept["content"] and "1 images or sounds" in kept["content"]


def test_images_count_in_the_estimate_of_tokens(workspace: Path) -> None:
    counts = []
    for media in (SEES, frozenset()):
        model = ScriptedModel(
            call("invoke_action", action_name="report__picture", args={}), "red", media=media
        )
        s = reyn.Session(workspace, store="memory", categories=(report_category(),))
        trace = s.ask("what colour?", model=model)
        requested = trace.steps[1].requested
        assert requested is not None
        counts.append(requested.estimated_tokens)
    assert counts[0] - counts[1] == 1 + 320 * 200 // 750


def test_a_recording_of_a_model_that_sees_is_replayed_and_equal_images_have_equal_keys(
    workspace: Path, tmp_path: Path
) -> None:
    def ask(model: Any) -> str:
        s = reyn.Session(workspace, store="memory", categories=(report_category(),))
        trace = s.ask("what colour?", model=model)
        assert trace.error is None, trace.error
        return trace.answer

    seen: list[Request] = []

    def see(request: Request) -> str:
        seen.append(request)
        return "red"

    path = tmp_path / "seen.jsonl"
    inner = ScriptedModel(call("invoke_action", action_name="report__picture", args={}), see, media=SEES)
    recorder = CassetteRecorder(inner, path, lambda text: False)
    assert ask(recorder) == "red"
    assert seen[0].messages[-1].attachments[0].data == PLOT
    player = CassettePlayer(path, lambda text: False)
    assert media_taken(player) == {"image"}
    assert ask(player) == "red"


SECRET = 'quo"ted\\\\back-slash-horse-battery'


def hidden_secrets() -> Category:
    """Parts whose texts, names and addresses hold a secret, where they are cut among other places."""
    schema = {"type": "object", "properties": {}, "additionalProperties": False}

    async def give(args: Any, context: Any) -> Any:
        named = [
            ContentPart(
                "image/png",
                data=PLOT,
                name="n" * start + SECRET,
                uri="https://a.example/" + "u" * end + SECRET,
            )
            for start, end in ((0, 0), (100, 1960), (110, 300), (60, 320), (115, 340))
        ]
        texts = [ContentPart.of_text("t" * start + SECRET + "\n" * 900) for start in (0, 60, 90, 100, 340)]
        figures = ContentPart.of_json({SECRET: "j" * 90 + SECRET, "many": ["x" * 900 + SECRET]})
        return ContentParts(
            [*named, *texts, figures, ContentPart.link("https://a.example/" + SECRET, SECRET)]
        )

    tool = Tool("give_hidden", give, Purity.READ)
    return Category("hidden", "Hold secrets.", (Operation("give", "Give parts.", schema, tool),))


def test_no_part_of_a_secret_in_a_name_an_address_or_a_text_leaves(
    workspace: Path, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_PASSWORD", SECRET)

    def look(received: Received) -> Answer:
        texts = [each["content"] for each in received.body["messages"] if each["role"] == "tool"]
        blob = texts[0].partition("[blob:")[2][:36]
        asked = [{"blob_id": blob}, *({"blob_id": blob, "selector": f"part:{n}"} for n in range(1, 12))]
        return Answer(calls=tuple(Call("inspect", each) for each in asked))

    server.script(Answer(calls=(Call("invoke_action", {"action_name": "hidden__give", "args": {}}),)), look)
    entry = {"model": "openai/gpt-4o-mini", "api_base": server.url}
    s = reyn.Session(workspace, config={"models": {"standard": entry}}, categories=(hidden_secrets(),))
    trace = s.ask("what is there?")
    sent = json.dumps([received.body for received in server.requests], ensure_ascii=False)
    assert len(contents(server.requests[1], "image_url")) == 5
    record = json.dumps([asdict(event) for event in trace.events], default=str, ensure_ascii=False)
    card = view(trace, redact=s.parts.services.redactor.text)
    for text in (sent, record, to_text(card), to_html(card)):
        for piece in ("horse", "batt", "back-sl", "ted\\"):
            assert piece not in text, text[max(0, text.index(piece) - 200) :][:300]


def test_a_replay_on_a_model_that_sees_takes_the_image_from_the_record(workspace: Path) -> None:
    s = reyn.Session(workspace, categories=(report_category(),))
    first = call("invoke_action", action_name="report__picture", args={})
    s.ask("what colour?", model=ScriptedModel(first, "I cannot see."))
    seeing = ScriptedModel(first, "red", media=SEES)
    assert s.replay(model=seeing).answer == "red"
    assert seeing.requests[1].messages[-1].attachments[0].data == PLOT


def test_a_result_so_far_may_be_parts(workspace: Path) -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}

    async def fail(args: Any, context: Any) -> Any:
        context.report("half", partial=ContentParts([ContentPart("image/png", data=PLOT, name="half.png")]))
        raise ActionError("It broke.")

    category = Category(
        "odd", "Fail.", (Operation("fail", "Fail.", schema, Tool("fail", fail, Purity.READ)),)
    )
    s = reyn.Session(workspace, store="memory", categories=(category,))
    seeing = ScriptedModel(call("invoke_action", action_name="odd__fail", args={}), "half", media=SEES)
    trace = s.ask("go", model=seeing)
    finished = trace.calls[0].finished
    assert finished is not None and finished.partial and finished.content_kind == "parts"
    assert '"half.png\\", 320×200' in finished.output
    assert seeing.requests[1].messages[-1].attachments[0].data == PLOT


def test_without_figures_of_the_provider_an_image_counts_by_its_pixels(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    server.script(call_of("picture"), Answer("red", usage=False))
    trace = session().ask("what colour?")
    replied = trace.steps[1].replied
    assert replied is not None and replied.estimated
    texts = sum(len(json.dumps(each)) for each in server.requests[1].body["messages"][:-1])
    tools = len(json.dumps(server.requests[1].body["tools"]))
    assert replied.prompt_tokens < (texts + tools) // 4 + 320 * 200 // 750 + 20


def test_a_model_says_what_it_takes(running: OpenAIServer) -> None:
    assert media_taken(LiteLLMModel("openai/gpt-4o-mini")) == {"image"}
    assert media_taken(LiteLLMModel("openai/nobody-knows-this")) == set()
    assert media_taken(LiteLLMModel("openai/nobody-knows-this", media=["image"])) == {"image"}
    assert media_taken(ScriptedModel()) == set()
    from reyn_jupyter.models.offline import OfflineModel

    assert media_taken(OfflineModel()) == set()


def test_python_has_the_parts_of_a_result_and_of_a_run(
    session: Callable[..., reyn.Session], server: OpenAIServer
) -> None:
    s = session()
    result = s.invoke_action("report__sales")
    assert [part.mime for part in result.parts] == [
        "text/plain", "image/png", "audio/wav", "application/json", "text/html",
    ]  # fmt: skip
    assert result.value[1].data == PLOT
    from IPython.display import Image

    assert Image(result.parts[1].data).format == "png"
    assert result.trace is not None and [part.data for part in result.trace.parts if part.data] == [
        PLOT,
        TONE,
    ]
    assert result.blob is not None and result.blob.parts[3].json["total"] == 12
    assert s.invoke_action("report__text").value == "one text alone"
    assert s.invoke_action("report__figures").value == {"total": 12}
    assert s.invoke_action("report__figures").parts == ()
