"""The language model of a session, for its categories.

Invariants: nothing is sent that was not redacted; a model on another host than the turn's own is asked about like any
request to that host; what it uses counts in the budget of the turn, and in that of the session.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from reyn_jupyter.catalog.action import Effect
from reyn_jupyter.config import Settings
from reyn_jupyter.models.base import Message, Model, ModelError, Request, Response
from reyn_jupyter.models.call_log import ModelCallLog
from reyn_jupyter.models.model_registry import OFFLINE
from reyn_jupyter.models.providers.provider_facts import is_local
from reyn_jupyter.models.providers.wire import metering_call
from reyn_jupyter.models.retry import RetryingModel, RetryPolicy
from reyn_jupyter.router.model_call import sends_of
from reyn_jupyter.router.turn_budget import SessionSpend, TurnBudget
from reyn_jupyter.runtime.access.session_access import Completion
from reyn_jupyter.runtime.action_error import ModelFailedError, PermissionDeniedError
from reyn_jupyter.runtime.call.call_scope import ScopedCall, current_call
from reyn_jupyter.runtime.record.events import ModelReplied, ModelRequested
from reyn_jupyter.runtime.run import Run
from reyn_jupyter.support.secrets import Redactor


async def permit_model(call: ScopedCall | None, model: Model) -> None:
    """Wait for consent where text goes to a host that the model of the turn does not run on.

    Raises:
        PermissionDeniedError: it is denied, or there is no call to ask for.
    """
    host = model.host
    if host is None or is_local(host):
        return
    if call is None:
        raise PermissionDeniedError(
            f"Denied: {model.label} runs on {host}, and nobody can be asked outside a call.",
            "Ask it within a call, or use a model on this machine.",
        )
    own = call.run.model
    if own is None or own.host != host:
        await call.permit(Effect("network", host), f"its text goes to the model {model.label}")


class SessionModels:
    """Asks models for categories, see `ModelAccess`.

    Args:
        find: gives the model of a name, that of the session for None. Raises ModelError.
        settings: the effective settings now.
        redactor: takes secrets out of what is sent and of what comes back.
        spent: what the session has used.
        call_log: shows each call where the person asked for that.
    """

    def __init__(
        self,
        find: Callable[[Any], Model],
        settings: Callable[[], Settings],
        redactor: Redactor,
        spent: Callable[[], SessionSpend],
        call_log: ModelCallLog | None = None,
    ) -> None:
        self._find = find
        self._settings = settings
        self._redactor = redactor
        self._spent = spent
        self._call_log = call_log

    def is_there(self) -> bool:
        """See `ModelAccess.is_there`."""
        try:
            return self._answering(current_call(), None).label != OFFLINE
        except ModelError:
            return False

    async def complete(
        self,
        prompt: str,
        *,
        system: str = "",
        model: str | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """See `ModelAccess.complete`."""
        call = current_call()
        try:
            answering = self._answering(call, model)
            await permit_model(call, answering)
            request = self._request(answering, prompt, system, schema)
            response = await (
                self._in_run(call, answering, request) if call else self._apart(answering, request)
            )
        except ModelError as error:
            raise ModelFailedError(
                self._redactor.text(error.message), self._redactor.text(error.hint), error.kind
            ) from None
        text = self._redactor.text(response.text)
        return Completion(text, answering.label, response.usage.total, response.cost)

    def _answering(self, call: ScopedCall | None, model: str | None) -> Model:
        """Return the model that is meant. Raises ModelError."""
        own = call.run.model if call is not None else None
        return own if model is None and own is not None else self._find(model)

    def _request(self, model: Model, prompt: str, system: str, schema: Mapping[str, Any] | None) -> Request:
        clean = self._redactor.text
        messages = (
            *((Message("system", clean(system)),) if system else ()),
            Message("user", clean(prompt)),
        )
        parameters = dict(getattr(model, "parameters", {}) or {})
        if schema is not None:
            # As OpenAI's API has it; LiteLLM translates it, or leaves it out where a provider knows no such thing.
            answer = {"name": "answer", "schema": dict(schema), "strict": False}
            parameters["response_format"] = {"type": "json_schema", "json_schema": answer}
        timeout = self._settings().router.limits.model_timeout
        return Request(model.label, messages, tool_choice="none", parameters=parameters, timeout=timeout)

    async def _apart(self, model: Model, request: Request) -> Response:
        """Ask for a task of the session's, which is no part of a run."""
        budget = TurnBudget(self._settings(), self._spent())
        budget.check()
        response = await self._patient(model).complete(request)
        budget.spend(response)
        return response

    def _patient(self, model: Model) -> RetryingModel:
        policy = RetryPolicy(retries=self._settings().router.limits.retries)
        return RetryingModel(model, policy, log=self._call_log)

    async def _in_run(self, call: ScopedCall, model: Model, request: Request) -> Response:
        """Ask as a step of a call's inner run."""
        call.run.budget.check_step()
        run, step = call.inner_step()
        self._log_request(run, step, request)
        began = time.perf_counter()
        try:
            with metering_call(model, request, sends_of(run.log, lambda: step)):
                response = await self._patient(model).complete(request)
        except ModelError as error:
            run.log.append(
                ModelReplied(
                    step=step,
                    at=time.time(),
                    key=request.key,
                    seconds=time.perf_counter() - began,
                    error=self._redactor.text(error.message),
                    error_kind=error.kind,
                )
            )
            raise
        run.budget.spend_step(response)
        run.log.append(
            ModelReplied(
                step=step,
                at=time.time(),
                key=request.key,
                text=self._redactor.text(response.text),
                finish_reason=response.finish_reason,
                prompt_tokens=response.usage.prompt_tokens,
                completion_tokens=response.usage.completion_tokens,
                cached_tokens=response.usage.cached_tokens,
                cache_write_tokens=response.usage.cache_write_tokens,
                estimated=response.usage.estimated,
                cost=response.cost,
                seconds=time.perf_counter() - began,
                fingerprint=response.fingerprint,
            )
        )
        return response

    def _log_request(self, run: Run, step: int, request: Request) -> None:
        facts = request.facts(1, 0, system=False)
        run.log.append(
            ModelRequested(
                step=step,
                at=time.time(),
                key=facts.key,
                components=facts.components,
                model=request.model,
                messages=facts.messages,
                total_messages=len(request.messages),
                tools=(),
                tool_choice=request.tool_choice,
                parameters=self._redactor.value(dict(request.parameters)),
                estimated_tokens=facts.tokens,
                conversation=run.id,
            )
        )
