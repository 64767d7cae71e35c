"""An estimate of what a question sends and costs at most, without a model being called.

Tokens are estimated as everywhere, as UTF-8 bytes / 4. Prices and context windows come from the price list that
LiteLLM brings along; a model that is not in it has no known price, and that is said.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace

from reyn_jupyter.models.base import Message, Model
from reyn_jupyter.models.providers.prices import Price, price_of
from reyn_jupyter.models.providers.provider_facts import is_local
from reyn_jupyter.router.context.conversation import Conversation
from reyn_jupyter.router.request import prompt as prompts
from reyn_jupyter.router.request.router_options import RouterOptions
from reyn_jupyter.router.request.surface import Offer, make_offer
from reyn_jupyter.sessions.assembly import Parts
from reyn_jupyter.sessions.result_objects import Card
from reyn_jupyter.sessions.runs.turn_options import TurnOptions
from reyn_jupyter.sessions.turn_history import reader_of

SHOWN = 60  # names of tools on the card


@dataclass(frozen=True)
class _Tokens:
    system: int
    tools: int
    history: int
    prompt: int

    @property
    def request(self) -> int:
        return self.system + self.tools + self.history + self.prompt


async def dry(parts: Parts, prompt: str, options: TurnOptions) -> Card:
    """Return the card of a question that is not asked.

    Raises:
        ModelError: the model is not configured; says the missing line.
    """
    settings = options.settings(parts.effective)
    parts.override(settings)
    parts.redactor.refresh()
    model = parts.find_model(options.model)
    router_options = RouterOptions.of(settings, model.tier)
    conversation = _conversation(parts, options)
    made = await _offer(parts, router_options, conversation)
    tokens = _Tokens(
        await _system_tokens(
            parts, replace(router_options, surface=made.surface), _searches(parts, conversation)
        ),
        made.tools.tokens,
        conversation.history(reader_of(settings, model)).tokens,
        Message("user", parts.redactor.text(prompt)).tokens,
    )
    price = await asyncio.to_thread(price_of, model.label) if model.real else None
    calls = settings.router.limits.max_steps + 1
    bound = _most_tokens(parts, tokens, calls)
    cost = _most(parts, options, price, calls) if price else None if model.real else 0.0
    facts: tuple[tuple[str, str], ...] = (
        ("model", f"{model.label} (tier {model.tier}, {model.host or 'in this process'})"),
        ("tools", f"{len(made.tools.specs)}, {made.surface} surface, ≈ {tokens.tools:,} tokens"),
        ("system prompt", f"≈ {tokens.system:,} tokens"),
        ("history", f"≈ {tokens.history:,} tokens, {len(conversation.turns)} turns"),
        ("this prompt", f"≈ {tokens.prompt:,} tokens{_with(options)}"),
        ("first request", f"≈ {tokens.request:,} tokens{_first_cost(price, tokens)}"),
        ("model calls", f"at most {calls}: router.limits.max_steps is {calls - 1}, and one to sum up"),
        ("cost", _cost_fact(model, price, cost, calls, options)),
    )
    if model.real and price is None:
        facts += (("tokens", f"at most ≈ {bound:,} sent, whatever they cost: {_growth_fact(parts, calls)}"),)
    names = made.tools.names
    more = (f"… and {len(names) - SHOWN:,} more",) if len(names) > SHOWN else ()
    data = {
        "tools": list(names),
        "tokens": {**vars(tokens), "request": tokens.request},
        "calls": calls,
        "most_cost": cost,
        "most_tokens": bound,
    }
    return Card("dry", "Nothing was sent", facts, (("Tools offered", (*names[:SHOWN], *more)),), (), data)


def _conversation(parts: Parts, options: TurnOptions) -> Conversation:
    """Return the turns that come before the question; asking again from a cell leaves out its own and those below."""
    conversation = parts.conversation
    if options.new:
        return Conversation(conversation.id)
    cells = [turn.cell for turn in conversation.turns]
    again = options.cell is not None and options.cell in cells
    kept = conversation.turns[: cells.index(options.cell)] if again else conversation.turns
    surface = conversation.surface if options.surface is None else None
    return Conversation(conversation.id, kept, surface, conversation.search)


async def _offer(parts: Parts, router_options: RouterOptions, conversation: Conversation) -> Offer:
    return make_offer(
        await parts.catalog.refresh(),
        router_options,
        inspect=parts.services.blobs is not None,
        search=_searches(parts, conversation),
        flat_tokens=parts.settings.router.limits.flat_tokens,
        uses=parts.usage.uses if router_options.hot_list_n else None,
        decided=conversation.surface,
    )


def _searches(parts: Parts, conversation: Conversation) -> bool:
    """Return whether search is offered: as the conversation decided, else as it would be decided now."""
    return parts.search.offered if conversation.search is None else conversation.search


async def _system_tokens(parts: Parts, router_options: RouterOptions, search: bool) -> int:
    snapshot = await parts.catalog.refresh()
    inspect = parts.services.blobs is not None
    static = prompts.static_prompt(snapshot, router_options, inspect=inspect, search=search)
    dynamic = prompts.dynamic_prompt(workspace=parts.root.name, date=time.strftime("%Y-%m-%d"))
    return Message("system", f"{static}\n\n{dynamic}").tokens


def _with(options: TurnOptions) -> str:
    sent = ", ".join(f"{item['name']} {item['bytes']:,} bytes" for item in options.sent)
    return f", in it: {sent}" if sent else ""


def _first_cost(price: Price | None, tokens: _Tokens) -> str:
    return f", ≈ ${tokens.request * price.prompt:.4f} before the answer" if price else ""


def _most(parts: Parts, options: TurnOptions, price: Price, calls: int) -> float:
    """Return the most US dollars: all calls with a full context; or, if that is less, what a limit leaves and the one
    call that passes it.
    """
    limits = parts.settings.router.limits
    left = None if limits.session_cost is None else max(0.0, limits.session_cost - parts.spent.cost)
    ceilings = [most for most in (options.budget, limits.turn_cost, left) if most is not None]
    return min([calls * price.call, *(most + price.call for most in ceilings)])


def _growth(parts: Parts) -> int:
    """Return the most tokens that the results of one step add: every call it may make, each with the longest answer."""
    settings = parts.settings
    return settings.router.limits.calls_per_completion * -(-settings.outputs.answer_bytes // 4)


def _most_tokens(parts: Parts, tokens: _Tokens, calls: int) -> int:
    """Return the most tokens: all calls as long as the last can be, the model's words left out; or, if that is less,
    what a limit leaves and the one call that passes it.
    """
    limits = parts.settings.router.limits
    one = tokens.request + (calls - 1) * _growth(parts)
    left = None if limits.session_tokens is None else max(0, limits.session_tokens - parts.spent.tokens)
    ceilings = [most for most in (limits.turn_tokens, left) if most is not None]
    return min([calls * one, *(most + one for most in ceilings)])


def _growth_fact(parts: Parts, calls: int) -> str:
    settings = parts.settings
    most = settings.router.limits.calls_per_completion
    return (
        f"{calls} model calls, each the first request and all that {calls - 1} steps can add "
        f"({most} results of {settings.outputs.answer_bytes:,} bytes a step); the model's own words come on top"
    )


def _cost_fact(
    model: Model, price: Price | None, cost: float | None, calls: int, options: TurnOptions
) -> str:
    if not model.real:
        return "nothing: no provider is called"
    if price is None or cost is None:
        why = f"LiteLLM's price list has no {model.label}"
        kept = "; --budget cannot be kept with it" if options.budget is not None else ""
        own = "; a server of one's own mostly charges nothing" if is_local(model.host) else ""
        return f"not known: {why}{own}{kept}"
    whole = f"{price.context:,} tokens in, {price.answer:,} out"
    if cost < calls * price.call:
        return f"at most ${cost:.4f}: the limit, and one more call with a full context ({whole})"
    return f"at most ${cost:.4f}: {calls} calls, each with a full context ({whole})"
