"""The instruments of an observatory, behind a driver program on this machine.

Invariants: an instrument that only looks is read without a question; one that moves asks, and takes one call at a time.
The key goes to the driver alone. No host is asked for anything before the person or a rule has allowed it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reyn_jupyter.extending import (
    ActionError,
    CalledAction,
    CallLimits,
    Category,
    ContentPart,
    ContentParts,
    Effect,
    EffectKind,
    Entry,
    Operation,
    PartialPreview,
    PlannedChange,
    Purity,
    Resources,
    Services,
    Tool,
    ToolContext,
    admit_references,
    whole_diff,
)

if TYPE_CHECKING:
    import asyncio

    from reyn_observatory.client import Driver, Frame, Instrument

NAME = "observatory"
SITE = "OBSERVATORY_SITE"  # the variable that chooses the dome
KEY = "OBSERVATORY_KEY"  # the secret that moves its instruments
MOST_REDIRECTS = 5
MOST_RUNS = 50  # that are looked through for earlier observations

TEXT = {"type": "string"}
POINTINGS = {
    "type": "array",
    "items": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
    "minItems": 1,
    "description": "Right ascension and declination of each place, in degrees.",
}


def schema(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object that needs these properties; any other is refused, since none is named."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def categories(services: Services) -> tuple[Category, ...]:
    """The category `observatory`."""
    observatory = Observatory(services)
    return (observatory.category(),)


class Observatory:
    """The observatory of one session."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._driver: Driver | None = None
        self._listening: asyncio.Task[None] | None = None
        self._instruments: dict[str, Instrument] = {}

    def category(self) -> Category:
        """Return the declaration: what people and models see, what runs, and how long it may."""
        observe = Tool(
            "observe_with_instrument",
            self.observe,
            self.purity,
            self.effects,
            remote=True,
            limits=CallLimits(seconds=600, at_once=1, at_once_per=lambda args: args["instrument"]),
        )
        return Category(
            NAME,
            "Observe the sky with the instruments of an observatory, and look up what was observed.",
            (self.by_name(observe), *self.operations()),
            Resources(
                observe,
                lambda name, args: {"instrument": name, "arguments": args},
                "observe with it",
                self.entries,
            ),
            hidden=why_hidden,
            start=self.start,
            close=self.close,
        )

    def by_name(self, observe: Tool) -> Operation:
        return Operation(
            "observe",
            "Observe with the instrument of this name.",
            schema(instrument=TEXT, arguments={"type": "object"}),
            observe,
            calls=lambda args: CalledAction(
                f"{NAME}__{args['instrument']}", named_by="instrument", held_by="arguments"
            ),
        )

    def operations(self) -> tuple[Operation, ...]:
        few = CallLimits(seconds=60, at_once=2, at_once_per=archive_host)
        plate = Tool("get_plate", self.plate, Purity.NETWORK, plate_effects, limits=few)
        survey = Tool("survey_sky", self.survey, Purity.WRITE)
        recall = Tool("recall_observation", self.recall, Purity.READ)
        summary = Tool("sum_up_observations", self.summary, Purity.READ)
        note = Tool("note_in_log", note_line, Purity.WRITE, note_effects, note_preview, plan=note_plan)
        photograph = "Photograph several places, and write a list of the pictures as CSV."
        return (
            Operation("plate", "Get an old photograph from an archive.", schema(url=TEXT), plate),
            Operation("survey", photograph, schema(pointings=POINTINGS, path=TEXT), survey),
            Operation("note", "Add a line to a log in the workspace.", schema(path=TEXT, line=TEXT), note),
            Operation("recall", "Find the earlier observation that is nearest.", schema(like=TEXT), recall),
            Operation("summary", "Sum up what was observed, for the log book.", schema(), summary),
        )

    # What is open as long as the session.

    async def start(self) -> None:
        from reyn_observatory.client import Driver

        self._driver = Driver(self._services.programs)
        await self._driver.start(os.environ[SITE])
        self._listening = self._services.spawn(self._listen(self._driver), "listen to the driver")

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
        if self._driver is not None:
            await self._driver.end()
        self._driver = self._listening = None

    async def _listen(self, driver: Driver) -> None:
        # The first line comes at once, so that a driver that was started again is asked for its instruments.
        async for _ in driver.news():
            self._services.changed(NAME)
        raise ActionError("The driver ended; %reyn reset starts another.")

    @property
    def driver(self) -> Driver:
        assert self._driver is not None, "start is awaited before entries and handlers"
        return self._driver

    # One action an instrument, as the driver lists them now.

    async def entries(self) -> list[Entry]:
        self._instruments = {each.name: each for each in await self.driver.instruments()}
        return [
            Entry(
                each.name,
                each.description,
                admit_references(each.input_schema),
                purity_of(each),
                open_schema=True,
            )
            for each in self._instruments.values()
        ]

    def instrument(self, args: dict[str, Any]) -> Instrument:
        try:
            return self._instruments[args["instrument"]]
        except KeyError:
            there = ", ".join(self._instruments)
            raise ActionError(
                f"No {args['instrument']!r} is mounted.", f"There are: {there}.", code="not_mounted"
            ) from None

    def purity(self, args: dict[str, Any]) -> Purity:
        return purity_of(self.instrument(args))

    def effects(self, args: dict[str, Any], context: ToolContext) -> list[Effect]:
        instrument = self.instrument(args)
        if not instrument.moves:
            return []
        return [Effect.mcp(NAME, instrument.name), Effect(EffectKind.SECRET, KEY)]

    async def observe(self, args: dict[str, Any], context: ToolContext) -> ContentParts | None:
        instrument, result = self.instrument(args), None
        key = await context.services.secrets.get(KEY) if instrument.moves else None
        async for frame in self.driver.observe(instrument.name, args["arguments"], key):
            result = observation(frame, f"{self.driver.url}/instruments")
            context.report(f"{instrument.name} looks", frame.number, frame.total, partial=result)
        return result

    # An archive, which may be anywhere.

    async def plate(self, args: dict[str, Any], context: ToolContext) -> ContentParts:
        url, host = args["url"], Effect.network(args["url"])
        for _ in range(MOST_REDIRECTS):
            answer = await self.driver.get(url)
            if answer.next_request is None:
                return ContentParts((ContentPart("image/png", data=answer.content), ContentPart.link(url)))
            url = str(answer.next_request.url)
            if (onward := Effect.network(url)) != host:
                await context.ask(onward, reason=f"{host.target} sends the request there")
                host = onward
        raise ActionError(
            f"The archive redirects more than {MOST_REDIRECTS} times.", code="too_many_redirects"
        )

    # Work that is made of other actions.

    async def survey(self, args: dict[str, Any], context: ToolContext) -> int:
        lines = ["right_ascension,declination,observer"]
        for number, (right_ascension, declination) in enumerate(args["pointings"]):
            context.report("pointing the telescope", number, len(args["pointings"]), partial=lines)
            pointing = [right_ascension, declination]
            found = await context.invoke(f"{NAME}__telescope", {"pointing": pointing})
            header = next(part.json for part in found if part.mime == "application/json")
            lines.append(f"{right_ascension},{declination},{header['observer']}")
        await context.invoke("file__write", {"path": args["path"], "content": "\n".join(lines) + "\n"})
        return len(args["pointings"])

    # What the session remembers.

    async def recall(self, args: dict[str, Any], context: ToolContext) -> str:
        earlier = await self._earlier()
        vectors = await context.services.embedder.embed([args["like"], *earlier])
        return earlier[int((vectors[1:] @ vectors[0]).argmax())]

    async def summary(self, args: dict[str, Any], context: ToolContext) -> str:
        task = "Sum up these observations in one paragraph for the log book."
        return (await context.services.models.complete("\n".join(await self._earlier()), system=task)).text

    async def _earlier(self) -> list[str]:
        """Return each question after which something was observed, with the instruments. Raises ActionError."""
        found = []
        for run in await self._services.runs.recent(MOST_RUNS):
            used = [call.action for call in run.calls if call.ok and call.action.startswith(f"{NAME}__")]
            if used:
                found.append(f"{run.prompt} ({', '.join(used)})")
        if not found:
            raise ActionError(
                "Nothing was observed yet.", "Observe something first.", code="nothing_observed"
            )
        return found


def why_hidden() -> str | None:
    """Return None where a dome is chosen, and otherwise what the person can do."""
    return None if os.environ.get(SITE) else f"No dome is chosen: set {SITE}, as in %env {SITE}=north."


def purity_of(instrument: Instrument) -> Purity:
    return Purity.WRITE if instrument.moves else Purity.READ


def plate_effects(args: dict[str, Any], context: ToolContext) -> list[Effect]:
    return [Effect.network(args["url"])]


def archive_host(args: dict[str, Any]) -> str:
    return Effect.network(args["url"]).target


def note_plan(args: dict[str, Any], context: ToolContext) -> PlannedChange:
    return PlannedChange(context.workspace.held(args["path"]))


def note_effects(args: dict[str, Any], context: ToolContext) -> list[Effect]:
    return [Effect(EffectKind.WRITE, context.plan.path)]


def note_preview(args: dict[str, Any], context: ToolContext) -> str | PartialPreview:
    before, after = context.plan.preview(with_line(args["line"]))
    return whole_diff(before, after, context.plan.path)


async def note_line(args: dict[str, Any], context: ToolContext) -> str:
    made = await context.plan.apply(with_line(args["line"]), context)
    return f"added to {made.path}"


def with_line(line: str) -> Callable[[bytes | None], bytes]:
    return lambda before: (before or b"") + line.encode() + b"\n"


def observation(frame: Frame, link: str) -> ContentParts:
    """Return what was seen so far: words, the picture where there is one, the header, and where it came from."""
    parts = [ContentPart.of_text(f"{frame.header['instrument']}: {frame.number} of {frame.total} frames")]
    if frame.png is not None:
        parts.append(ContentPart("image/png", data=frame.png, name=f"{frame.header['instrument']}.png"))
    parts += [ContentPart.of_json(frame.header, "header"), ContentPart.link(link, "The instruments")]
    return ContentParts(parts)
