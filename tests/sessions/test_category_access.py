"""What a session gives its categories beside files: secrets, models, an embedder, earlier runs, trust."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Category, Effect
from reyn_jupyter.models.base import Message, ModelError, Request, Response, Usage
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.runtime.access.session_access import Completion
from reyn_jupyter.runtime.action_error import ActionError, PermissionDeniedError
from reyn_jupyter.runtime.questions.consent import Question
from reyn_jupyter.runtime.record.events import PermissionDecided
from reyn_jupyter.runtime.services import Services, ToolContext
from tests.runtime.call.test_inner_calls import asked, flow, turned
from tests.support.trusting import trust
from tests.support.waiting import until

VALUE = "correct-horse-battery"
NAME = "RATES_API_KEY"
Handler = Callable[[Any, ToolContext], Any]


def session(workspace: Path, *categories: Category, **options: Any) -> reyn.Session:
    return reyn.Session(workspace, categories=categories, **options)


async def use_key(args: Any, context: ToolContext) -> dict[str, Any]:
    secret = await context.services.secrets.get(NAME)
    return {"secret": secret, "header": f"Bearer {secret.reveal()}", "length": len(secret.reveal())}


# Secrets.


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, VALUE)


@pytest.mark.usefixtures("key")
def test_a_secret_is_asked_for_by_its_name_and_never_leaves_by_its_value(workspace: Path) -> None:
    questions: list[Question] = []
    made = session(workspace, flow("rates", use_key))
    trace = turned(made, "rates__run", ask=asked(questions, "once"))
    (question,) = questions
    assert f"secret {NAME}" in question.text and VALUE not in question.text
    assert question.patterns == (f"rates__run(secret:{NAME})",)
    output = trace.calls[0].finished.output
    assert VALUE not in output and "[redacted:" in output
    kept = "".join(file.read_text() for file in (workspace / ".reyn" / "runs").iterdir())
    assert VALUE not in kept and f"secret {NAME}" in kept


@pytest.mark.usefixtures("key")
def test_a_category_reads_no_secret_unasked(workspace: Path) -> None:
    made = session(workspace, flow("rates", use_key))
    denied = turned(made, "rates__run", ask=asked([], "deny"))
    assert denied.calls[0].denied and VALUE not in denied.calls[0].finished.output
    nobody = made.start(
        "go", model=ScriptedModel(call("invoke_action", action_name="rates__run", args={}), "No.")
    )
    assert nobody.result(60).calls[0].denied


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ({"allow": [f"rates__run({NAME})"]}, True),
        ({"allow": ["rates__*(OTHER_KEY)"]}, False),
        ({"allow": [f"rates__run({NAME})"], "deny": [f"*({NAME})"]}, False),
    ],
)
def test_a_rule_allows_or_denies_a_name(workspace: Path, rules: dict[str, Any], allowed: bool) -> None:
    made = session(workspace, flow("rates", use_key), config={"permissions": rules})
    trace = turned(made, "rates__run", ask=asked([], "deny"))
    assert trace.calls[0].ok is allowed


@pytest.mark.usefixtures("key")
def test_a_secret_that_the_tool_named_before_the_call_is_asked_about_once(workspace: Path) -> None:
    questions: list[Question] = []
    named = flow("rates", use_key, tool={"effects": lambda args, _: [Effect("secret", NAME)]})
    turned(session(workspace, named), "rates__run", ask=asked(questions, "once"))
    assert len(questions) == 1


def test_the_sessions_own_value_goes_before_the_environments_and_is_covered_from_the_start(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAME, "of-the-environment")
    made = session(workspace, flow("rates", use_key), secrets={NAME: VALUE})
    assert VALUE not in made.parts.redactor.text(f"key {VALUE}")
    assert made.invoke_action("rates__run").value["length"] == len(VALUE)
    assert NAME not in repr(made) and VALUE not in repr(vars(made.parts.services))
    assert os.environ[NAME] == "of-the-environment"


@pytest.mark.parametrize("name", ["NOT_SET_HERE", "A=B", "", "a" * 300, "$(id)", "PATH\n"])
def test_a_name_without_a_value_is_said(workspace: Path, name: str) -> None:
    async def ask(args: Any, context: ToolContext) -> str:
        return (await context.services.secrets.get(name)).reveal()

    payload = session(workspace, flow("rates", ask)).invoke_action("rates__run").payload
    assert "secret" in payload["error"] and payload["hint"]


def test_a_value_too_short_to_be_covered_is_refused(workspace: Path) -> None:
    made = session(workspace, flow("rates", use_key), secrets={NAME: "1234567"})
    assert made.invoke_action("rates__run").payload["code"] == "secret_too_short"


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("allowed", [True, False])
def test_a_start_gets_a_secret_where_a_rule_allows_it(workspace: Path, allowed: bool) -> None:
    made: list[reyn.Session] = []
    heard: list[Any] = []

    async def start() -> None:
        try:
            heard.append(len((await made[0].parts.services.secrets.get(NAME)).reveal()))
        except PermissionDeniedError as error:
            heard.append(error.hint)

    async def three(args: Any, context: ToolContext) -> int:
        async def work() -> None:
            await start()

        await context.services.spawn(work(), "work")
        return 3

    rules = {"permissions": {"allow": [f"rates__*(secret:{NAME})"] if allowed else []}}
    made.append(session(workspace, flow("rates", three, start=start), config=rules))
    assert made[0].invoke_action("rates__run").value == 3
    hint = f'A rule allows it: permissions: {{allow: ["rates__start(secret:{NAME})"]}}.'
    assert heard == [len(VALUE)] * 2 if allowed else heard == [hint] * 2


def test_a_handler_whose_call_is_over_gets_no_secret(workspace: Path) -> None:
    left: list[Any] = []

    async def leave(args: Any, context: ToolContext) -> str:
        async def later() -> None:
            try:
                while True:
                    await asyncio.sleep(0.01)
                    left.append(await context.services.secrets.get(NAME))
            except ActionError as error:
                left.append(error.message)

        left.append(asyncio.create_task(later()))
        return "gone"

    made = session(workspace, flow("rates", leave), secrets={NAME: VALUE})
    turned(made, "rates__run", approve="all")
    until(lambda: isinstance(left[-1], str))
    assert "the call is over" in left[-1]


# Models.


class Hosted:
    """A model on a host, which counts what it was asked and says how much it takes."""

    label, tier, real = "acme/large", "standard", False

    def __init__(self, host: str | None = "api.acme.example", cost: float | None = 0.01) -> None:
        self.host = host
        self.cost = cost
        self.requests: list[Request] = []

    async def complete(self, request: Request, on_text: Any = None) -> Response:
        self.requests.append(request)
        return Response(f"said {VALUE}", (), "stop", Usage(30, 12), self.cost, self.label)


async def summed_up(args: Any, context: ToolContext) -> Completion:
    return await context.services.models.complete(f"sum up {VALUE}", system="Be short.")


def test_a_model_is_asked_as_a_step_of_the_calls_inner_run_without_secrets(workspace: Path) -> None:
    model = Hosted(host=None)
    made = session(workspace, flow("sum", summed_up), model=model, secrets={NAME: VALUE})
    result = made.invoke_action("sum__run")
    assert VALUE not in str(model.requests) and VALUE not in result.value.text
    assert (result.value.tokens, result.value.cost, result.value.model) == (42, 0.01, "acme/large")
    trace = made.trace()
    (inner,) = trace.inner.values()
    assert inner.steps[0].replied is not None and inner.steps[0].replied.prompt_tokens == 30
    assert [each["role"] for each in inner.steps[0].requested.messages] == ["system", "user"]
    assert (trace.tokens, trace.cost) == (42, 0.01)
    assert made.parts.spent.tokens == 42
    assert VALUE not in "".join(file.read_text() for file in (workspace / ".reyn" / "runs").iterdir())


class Turning(Hosted):
    """The model of a turn that calls `sum__run` so many times, and answers its prompts."""

    def __init__(self, calls: int, **options: Any) -> None:
        super().__init__(**options)
        self._calls = calls

    async def complete(self, request: Request, on_text: Any = None) -> Response:
        answer = await super().complete(request)
        if not request.tools.specs or self._calls == 0:
            return answer
        self._calls -= 1
        invoke = call("invoke_action", action_name="sum__run", args={})
        return Response("", (await _tool_call(invoke),), "tool_calls", answer.usage, answer.cost, self.label)


async def _tool_call(step: Any) -> Any:
    scripted = ScriptedModel(step)
    return (await scripted.complete(Request("m", (Message("user", "x"),)))).tool_calls[0]


def test_a_turns_limits_count_what_its_calls_use(workspace: Path) -> None:
    model = Turning(calls=3, host=None)
    made = session(workspace, flow("sum", summed_up), config={"router": {"limits": {"turn_tokens": 100}}})
    trace = made.ask("go", model=model)
    assert trace.status == "limit" and "100 tokens" in (trace.error or "")
    assert trace.tokens == 42 * len(model.requests) and len(model.requests) == 3


def test_a_model_call_within_a_call_is_a_step_of_the_turn(workspace: Path) -> None:
    async def often(args: Any, context: ToolContext) -> int:
        for number in range(10):
            await context.services.models.complete(str(number))
        return 10

    model = Turning(calls=3, host=None)
    made = session(workspace, flow("sum", often), config={"router": {"limits": {"max_steps": 4}}})
    trace = made.ask("go", model=model)
    assert "the limit of 4 steps is reached" in trace.calls[0].finished.error
    assert trace.status == "limit" and len(trace.replies) == 4 + 1  # one more, to sum up
    assert len(trace.steps) == 2


def test_a_budget_in_dollars_bounds_what_calls_use(workspace: Path) -> None:
    made = session(workspace, flow("sum", summed_up))
    trace = made.ask("go", model=Turning(calls=9, host=None), budget=0.045)
    assert trace.status == "limit" and trace.cost == pytest.approx(0.05)


def test_a_model_on_another_host_than_the_turns_own_is_asked_about(workspace: Path) -> None:
    async def strong(args: Any, context: ToolContext) -> str:
        return (await context.services.models.complete("hello", model="strong")).text

    made = session(workspace, flow("sum", strong), config={"models": {"strong": "openai/gpt-4o"}})
    questions: list[Question] = []
    trace = turned(made, "sum__run", ask=asked(questions, "deny"))
    assert "network api.openai.com" in questions[0].text
    assert trace.calls[0].denied and not trace.inner


def test_a_call_by_hand_is_consent_to_the_host_of_the_sessions_model_and_it_is_recorded(
    workspace: Path,
) -> None:
    other = Hosted()
    made = session(workspace, flow("sum", summed_up), model=other)
    assert made.invoke_action("sum__run").error is None and len(other.requests) == 1
    decided = [each for each in made.trace().events if isinstance(each, PermissionDecided)]
    assert decided[-1].effects == ("network api.acme.example",)


def test_the_host_of_the_turns_own_model_is_not_asked_about_again(workspace: Path) -> None:
    model = Turning(calls=1, host="api.acme.example")
    trace = session(workspace, flow("sum", summed_up)).ask("go", model=model, ask=asked([], "deny"))
    assert trace.calls[0].ok and len(trace.replies) == 3


def test_a_model_that_fails_is_said_in_its_own_words(workspace: Path) -> None:
    class Failing(Hosted):
        async def complete(self, request: Request, on_text: Any = None) -> Response:
            raise ModelError("auth", "The key was refused.", "Set another.")

    made = session(workspace, flow("sum", summed_up), model=Failing(host=None))
    payload = made.invoke_action("sum__run").payload
    assert (payload["error"], payload["hint"]) == ("The key was refused.", "Set another.")
    (inner,) = made.trace().inner.values()
    assert inner.steps[0].replied is not None and inner.steps[0].replied.error == "The key was refused."


def test_outside_a_call_a_model_of_this_machine_alone_is_asked(workspace: Path) -> None:
    made: list[reyn.Session] = []

    async def work() -> str:
        try:
            return (await made[0].parts.services.models.complete("hello")).text
        except ActionError as error:
            return error.message

    async def run(args: Any, context: ToolContext) -> str:
        return await context.services.spawn(work(), "work")

    made.append(session(workspace, flow("task", run), model=Hosted(host=None)))
    assert made[0].invoke_action("task__run").value.startswith("said") and made[0].parts.spent.tokens == 42
    made[0] = session(workspace, flow("task", run), model=Hosted())
    assert "nobody can be asked" in made[0].invoke_action("task__run").value


# The embedder, earlier runs, trust.


def test_texts_are_embedded_as_the_search_does(workspace: Path) -> None:
    async def embed(args: Any, context: ToolContext) -> tuple[int, ...]:
        vectors = await context.services.embedder.embed(["one", "two"])
        return tuple(vectors.shape)

    made = session(workspace, flow("embed", embed))
    assert made.invoke_action("embed__run").value == (2, 384)
    off = session(workspace, flow("embed", embed), config={"action_retrieval": {"embedding_class": None}})
    assert off.invoke_action("embed__run").payload["error"] == "There is no embedder here."


def test_an_embedder_of_a_provider_is_asked_about(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-" + "a" * 40)

    async def embed(args: Any, context: ToolContext) -> Any:
        return await context.services.embedder.embed(["one"])

    config = {"action_retrieval": {"embedding_class": "light"}}
    questions: list[Question] = []
    trace = turned(
        session(workspace, flow("embed", embed), config=config), "embed__run", ask=asked(questions, "deny")
    )
    assert "network api.openai.com" in questions[0].text and trace.calls[0].denied


def test_earlier_runs_are_read_without_secrets_whatever_their_files_hold(workspace: Path) -> None:
    async def look(args: Any, context: ToolContext) -> Any:
        history = context.services.runs
        recent = await history.recent(2)
        return recent, await history.get(recent[-1].run[-12:])

    async def three(args: Any, context: ToolContext) -> str:
        return "plain text"

    made = session(workspace, flow("history", look), flow("leaf", three))
    made.invoke_action("leaf__run", {"x": 1})
    (file,) = (workspace / ".reyn" / "runs").glob("*.jsonl")
    file.write_text(file.read_text().replace("plain text", VALUE))
    again = session(workspace, flow("history", look), secrets={NAME: VALUE})
    recent, one = again.invoke_action("history__run").value
    assert [each.kind for each in recent] == ["manual", "manual"] and recent[0].status == "running"
    assert one.calls[0].action == "leaf__run" and one.calls[0].arguments == {"x": 1} and one.calls[0].ok
    assert VALUE not in repr((recent, one)) and NAME in one.calls[0].output
    with pytest.raises(ActionError, match="no run has"):
        asyncio.run(again.parts.services.runs.get("nothing-like-it"))


def test_whether_the_folder_is_trusted_can_be_read(workspace: Path) -> None:
    (workspace / "reyn.yaml").write_text("router_model: light\n")

    async def look(args: Any, context: ToolContext) -> bool:
        return context.services.trust.is_trusted

    made = session(workspace, flow("look", look))
    assert made.invoke_action("look__run").value is False
    trust(made)
    assert made.invoke_action("look__run").value is True
    (workspace / "reyn.yaml").write_text("router_model: strong\n")
    assert made.invoke_action("look__run").value is False
    with pytest.raises(AttributeError):
        made.parts.services.trust.trust()  # type: ignore[attr-defined]


def test_a_category_used_without_a_session_is_refused_in_words(workspace: Path) -> None:
    from reyn_jupyter.evaluation.plan.folder_services import services_in
    from reyn_jupyter.guard.workspace import Workspace

    services: Services = services_in(Workspace(workspace))
    for work in (services.secrets.get(NAME), services.models.complete("x"), services.embedder.embed(["x"])):
        with pytest.raises(ActionError, match="not available"):
            asyncio.run(work)
    assert asyncio.run(services.runs.recent()) == () and services.trust.is_trusted is False
