// A run: its card, the list of what it did, and beside it what stands behind the chosen line.
//
// Invariant: what is shown stays until something newer is there to take its place; while a run goes on the list grows
// under the person's choice, never away from it.
import type { LiveTrace } from "../protocol";
import type { Operations, Source, ViewFunction } from "../sources/source";
import { approvals } from "./approval";
import { newest, problem } from "./asking";
import { button, choiceList, waitingFor } from "./choice";
import { compareWith } from "./compare";
import { type Child, fill, h } from "./h";
import { badges, drawView, redraw, showBlocks, visible } from "./view";

type Opened = Operations["trace.open"]["answer"];
type Part = Operations["trace.part"]["answer"];
type Row = Opened["steps"][number];
type Side = Part["request"];

const PACE = 300; // ms between two looks at a run that goes on
const TICK = 2000; // and without any word of it
const SETTLE = 60; // ms that a choice must last before it is asked for: arrow keys repeat
const KEPT = 60;

export const traceViewer: ViewFunction<LiveTrace> = (element, model, source) => {
  const opening = newest();
  const looking = newest();
  const kept = new Map<string, Part>();
  const list = choiceList<Row>({
    label: "Steps",
    height: 46,
    most: 506,
    draw: drawRow,
    text: (row) => `${row.title} ${row.about} ${row.state}`,
    onchoose(row, person) {
      followed &&= !person;
      window.clearTimeout(settling);
      settling = window.setTimeout(() => look(row), person ? SETTLE : 0);
    },
  });
  const request = h("section.r-side", { "aria-label": "Request" });
  const response = h("section.r-side", { "aria-label": "Response" });
  const notice = h("div");
  const detail = h(
    "div.r-detail",
    { role: "region", tabindex: 0, "aria-label": "What stands behind the chosen step" },
    notice,
    request,
    response,
  );
  const more = h("p.r-more");
  const bar = h("div.r-cmd.r-bar");
  const said = h("div");
  const compared = h("div.r-compared");
  const panel = h("div.r-run", {}, list.element, detail, more);
  const waiting = waitingFor("Opening the run …");
  const asks = h("div");
  element.append(asks, waiting);

  let card: HTMLElement | null = null;
  let opened: Opened | null = null;
  let drawn = ""; // the row that the detail shows, as it was then
  let followed = true; // nobody has chosen a line yet
  let settling = 0;
  let timer = 0;
  let due = Infinity; // when the next look is
  let broken = false;
  let leave: (() => void) | null = null;

  function open(): void {
    window.clearTimeout(timer);
    due = Infinity;
    opening.ask(
      (options) => source.request("trace.open", { run: opened?.run ?? model.run }, options),
      (answer) => {
        broken = false;
        fill(said);
        show(answer);
        if (answer.running) later(TICK);
      },
      (error) => {
        broken = true;
        fill(card ? said : waiting.firstElementChild!, problem(error, open));
      },
    );
  }
  /** Looks again after a while, or sooner where that was meant already: events that keep coming must not put it off. */
  function later(wait: number): void {
    const at = performance.now() + wait;
    if (at >= due) return;
    window.clearTimeout(timer);
    due = at;
    timer = window.setTimeout(open, wait);
  }
  function show(answer: Opened): void {
    const before = opened;
    opened = answer;
    if (card) redraw(card, answer.view, source.host);
    else {
      card = drawView(answer.view, source.host);
      card.classList.add("r-trace");
      card.append(bar, said, compared, panel);
      waiting.replaceWith(card);
    }
    if (!leave && before?.stoppable !== answer.stoppable) fillBar();
    list.show(answer.steps);
    more.textContent = visible(answer.more);
    more.hidden = !answer.more;
    if (!leave) panel.hidden = !answer.steps.length;
    const wanted = list.chosen && !(followed && answer.running) ? list.chosen : first(answer);
    if (wanted && (wanted.id !== list.chosen?.id || standing(wanted) !== drawn)) list.choose(wanted.id);
  }

  function look(row: Row): void {
    const now = standing(row);
    const again = row.id === drawn.split(" ")[0];
    const have = kept.get(row.id);
    const done = (part: Part): void => {
      drawn = now;
      if (!opened?.running && kept.size < KEPT) kept.set(row.id, part);
      fill(notice, inspectButton(part.blob, source));
      drawSide(request, part.request, source, again);
      drawSide(response, part.response, source, again);
      detail.setAttribute("aria-label", visible(`${row.title}: request and response`));
    };
    if (have) return (looking.stop(), done(have));
    looking.ask(
      (options) => source.request("trace.part", { run: opened?.run ?? model.run, id: row.id }, options),
      done,
      (error) =>
        fill(
          notice,
          problem(error, () => look(row)),
        ),
    );
  }

  function fillBar(): void {
    const stop = button("Stop", () => halt(stop));
    fill(bar, !!opened?.stoppable && stop, button("Compare with …", compare));
  }
  function halt(stop: HTMLButtonElement): void {
    stop.disabled = true;
    stop.textContent = "Stopping …";
    source.request("run.stop", { run: opened!.run }).then(open, (error) => {
      stop.disabled = false;
      stop.textContent = "Stop";
      fill(said, problem(error));
    });
  }

  function compare(): void {
    const shown = (): void => void (panel.hidden = true);
    leave = compareWith(opened!.run, bar, compared, source, shown, back);
  }
  function back(): void {
    leave?.();
    leave = null;
    panel.hidden = !opened?.steps.length;
    fillBar();
    bar.querySelector("button")?.focus();
  }

  const unheard = source.subscribe((event) => {
    if (event.name === "run" && event.run === (opened?.run ?? model.run)) later(event.ended ? 0 : PACE);
  });
  const unwatch = source.watch((state) => {
    if (state === "live" && (broken || opened?.running)) open();
  });
  const unasked = source.host.name === "widget" ? approvals(asks, source) : null;
  open();
  return () => {
    window.clearTimeout(timer);
    window.clearTimeout(settling);
    for (const end of [unheard, unwatch, unasked, leave, opening.stop, looking.stop, list.dispose]) end?.();
    element.replaceChildren();
  };
};

/** What of a line changes what stands behind it; its place in the time of a run does not. */
const standing = (row: Row): string => [row.id, row.state, row.seconds, row.about].join(" ");

/** What is looked at first: what failed, the newest of a run that goes on, else the beginning. */
const first = (run: Opened): Row | undefined =>
  run.running ? run.steps.at(-1) : (run.steps.find((row) => row.tone === "bad") ?? run.steps[0]);

function drawRow(row: Row): Child[] {
  const bar = `left:${row.start * 100}%;width:${row.share * 100}%`;
  return [
    h(
      `div.r-deep${row.depth}` as "div",
      {},
      h(
        "div.r-row",
        {},
        h("span.r-name", {}, visible(row.title)),
        " ",
        ...badges([{ text: row.state, tone: row.tone }]),
        " ",
        h("span.r-aside", {}, [row.seconds, row.size, row.cost].filter(Boolean).map(visible).join(" · ")),
      ),
      h("div.r-about", {}, visible(row.about)),
    ),
    h("i", { class: `r-time r-${row.tone}`, style: bar, "aria-hidden": "true" }),
  ];
}

/**
 * One side of a line: what was asked, or what came back.
 *
 * @param again it shows an earlier state of the same line: what the person opened in it stays open
 */
export function drawSide(box: HTMLElement, view: Side, source: Source, again = false): void {
  const facts = view.facts.map(visible).join(" · ");
  const body = (again && box.querySelector<HTMLElement>(":scope > .r-sec")) || h("div.r-sec");
  showBlocks(body, view.blocks, source.host);
  fill(
    box,
    h("p", {}, h("strong", {}, visible(view.title)), " ", ...badges(view.badges)),
    !!facts && h("p.r-facts", {}, facts),
    body,
  );
}

const inspectButton = (blob: string, source: Source): Child => {
  const { open } = source.host;
  if (!blob || !open) return null;
  const show = (): void => open({ type: "blob", blob, selector: null }, blob.slice(-12));
  return button("Inspect what was stored", show);
};
