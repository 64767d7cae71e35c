// A run: its card, the list of what it did, and beside it what stands behind the chosen line.
//
// Invariant: what is shown stays until something newer is there to take its place; while a run goes on the list grows
// under the person's choice, never away from it.
import type { LiveBlob, LiveTrace } from "../protocol";
import type { Source, ViewFunction } from "../sources/source";
import { approvals } from "./approval";
import { newest, problem } from "./asking";
import { button, choiceList } from "./choice";
import { compareWith } from "./compare";
import { fill, h } from "./h";
import { asker } from "./patience";
import { type StoredButton, storedButton } from "./stored";
import { drawRow, drawSide, firstRow, type Opened, type Part, type Row, standing } from "./trace-steps";
import { redraw } from "./update";
import { drawView, visible } from "./view";

const PACE = 300; // ms between two looks at a run that goes on
const TICK = 2000; // and without any word of it
const SETTLE = 60; // ms that a choice must last before it is asked for: arrow keys repeat
const KEPT = 60;

/** @param inspect shows a stored result inline, where the host has no tabs */
export const traceViewer =
  (inspect?: ViewFunction<LiveBlob>): ViewFunction<LiveTrace> =>
  (element, model, source, before) => {
    const view = new TraceViewer(element, model, source, inspect, before ?? null);
    return () => view.dispose();
  };

class TraceViewer {
  private opening = newest();
  private looking = newest();
  private kept = new Map<string, Part>();
  private list = choiceList<Row>({
    label: "Steps",
    height: 46,
    most: 506,
    draw: drawRow,
    text: (row) => `${row.title} ${row.about} ${row.state}`,
    onchoose: (row, person) => this.chose(row, person),
  });
  private request = h("section.r-side", { "aria-label": "Request" });
  private response = h("section.r-side", { "aria-label": "Response" });
  private notice = h("div");
  private detail = h(
    "div.r-detail",
    { role: "region", tabindex: 0, "aria-label": "What stands behind the chosen step" },
    this.notice,
    this.request,
    this.response,
  );
  private more = h("p.r-more");
  private bar = h("div.r-cmd.r-bar");
  private said = h("div");
  private compared = h("div.r-compared");
  private panel = h("div.r-run", {}, this.list.element, this.detail, this.more);
  private place = h("div"); // of the snapshot, and then of the card
  private asking;

  private card: HTMLElement | null = null;
  private opened: Opened | null = null;
  private drawn = ""; // the row that the detail shows, as it was then
  private followed = true; // nobody has chosen a line yet
  private settling = 0;
  private timer = 0;
  private due = Infinity; // when the next look is
  private asked = false; // a look is under way
  private another = false; // and one more is meant after it
  private broken = false;
  private away = false;
  private stored: StoredButton | null = null;
  private blob: string | null = null; // that is offered there
  private leave: (() => void) | null = null;
  private ends: ((() => void) | null)[];

  constructor(
    private element: HTMLElement,
    private model: LiveTrace,
    private source: Source,
    private inspect: ViewFunction<LiveBlob> | undefined,
    before: HTMLElement | null,
  ) {
    const asks = h("div");
    this.asking = asker(source, before ?? element);
    this.asking.box.classList.add("reyn-view", "r-alone");
    fill(this.place, before);
    element.append(asks, this.asking.box, this.place);
    this.ends = [
      source.subscribe((event) => {
        if (event.name === "run" && event.run === this.run) this.later(event.ended ? 0 : PACE);
      }),
      this.follow(),
      source.host.name === "widget" ? approvals(asks, source) : null,
      this.asking.dispose,
      this.opening.stop,
      this.looking.stop,
      this.list.dispose,
    ];
    this.open();
  }

  dispose(): void {
    window.clearTimeout(this.timer);
    window.clearTimeout(this.settling);
    for (const end of [...this.ends, this.leave]) end?.();
    this.stored?.dispose();
    this.element.replaceChildren();
  }

  private get run(): string {
    return this.opened?.run ?? this.model.run;
  }

  private follow(): () => void {
    return this.source.watch((state) => {
      const back = this.away && state === "live";
      this.away = state !== "live" && (this.away || state !== "busy");
      const stale = state === "live" && this.card && (this.broken || this.opened?.running);
      if ((back && !this.card) || (stale && !this.asked)) this.open();
    });
  }

  private open(): void {
    window.clearTimeout(this.timer);
    this.due = Infinity;
    const { card, source } = this;
    if (card && this.asked) {
      this.another = true; // a kernel that answers more slowly than its events come is heard out all the same
      return;
    }
    this.asked = true;
    this.another = false;
    const args = { run: this.run };
    this.opening.ask(
      (options) =>
        card
          ? source.request("trace.open", args, options)
          : this.asking.ask("trace.open", args, options.signal),
      (answer) => {
        this.asked = this.broken = false;
        fill(this.said);
        this.show(answer);
        if (answer.running) this.later(this.another ? PACE : TICK);
      },
      (error) => {
        this.asked = false;
        this.broken = true;
        if (card)
          fill(
            this.said,
            problem(error, () => this.open()),
          ); // else it stands beside the snapshot
      },
    );
  }

  /** Looks again after a while, or sooner where that was meant already: events that keep coming must not put it off. */
  private later(wait: number): void {
    const at = performance.now() + wait;
    if (at >= this.due) return;
    window.clearTimeout(this.timer);
    this.due = at;
    this.timer = window.setTimeout(() => this.open(), wait);
  }

  private show(answer: Opened): void {
    const { list, more, source } = this;
    const before = this.opened;
    this.opened = answer;
    if (this.card) redraw(this.card, answer.view, source.host);
    else {
      this.card = drawView(answer.view, source.host);
      this.card.classList.add("r-trace");
      this.card.append(this.bar, this.said, this.compared, this.panel);
      fill(this.place, this.card);
    }
    if (!this.leave && before?.stoppable !== answer.stoppable) this.fillBar();
    list.show(answer.steps);
    more.textContent = visible(answer.more);
    more.hidden = !answer.more;
    if (!this.leave) this.panel.hidden = !answer.steps.length;
    const wanted = list.chosen && !(this.followed && answer.running) ? list.chosen : firstRow(answer);
    if (wanted && (wanted.id !== list.chosen?.id || standing(wanted) !== this.drawn)) list.choose(wanted.id);
  }

  private chose(row: Row, person: boolean): void {
    this.followed &&= !person;
    window.clearTimeout(this.settling);
    this.settling = window.setTimeout(() => this.look(row), person ? SETTLE : 0);
  }

  private look(row: Row): void {
    const { looking, source } = this;
    const now = standing(row);
    const again = row.id === this.drawn.split(" ")[0];
    const have = this.kept.get(row.id);
    const done = (part: Part): void => {
      this.drawn = now;
      if (!this.opened?.running && this.kept.size < KEPT) this.kept.set(row.id, part);
      if (!again || part.blob !== this.blob) this.showStored(part.blob);
      drawSide(this.request, part.request, source, again);
      drawSide(this.response, part.response, source, again);
      this.detail.setAttribute("aria-label", visible(`${row.title}: request and response`));
    };
    if (have) return (looking.stop(), done(have));
    looking.ask(
      (options) => source.request("trace.part", { run: this.run, id: row.id }, options),
      done,
      (error) => {
        this.showStored(null);
        fill(
          this.notice,
          problem(error, () => this.look(row)),
        );
      },
    );
  }

  private showStored(blob: string | null): void {
    this.stored?.dispose();
    this.blob = blob;
    this.stored = null;
    if (blob) {
      const live: LiveBlob = { type: "blob", blob, selector: null };
      this.stored = storedButton("Inspect what was stored", live, blob.slice(-12), this.source, this.inspect);
    }
    fill(this.notice, this.stored?.element);
  }

  private fillBar(): void {
    if (this.source.host.name === "page") return; // nothing runs there, and there is no other run to choose
    const stop = button("Stop", () => this.halt(stop));
    fill(
      this.bar,
      !!this.opened?.stoppable && stop,
      button("Compare with …", () => this.compare()),
    );
  }

  private halt(stop: HTMLButtonElement): void {
    stop.disabled = true;
    stop.textContent = "Stopping …";
    this.source.request("run.stop", { run: this.run }).then(
      () => this.open(),
      (error) => {
        stop.disabled = false;
        stop.textContent = "Stop";
        fill(this.said, problem(error));
      },
    );
  }

  private compare(): void {
    const shown = (): void => void (this.panel.hidden = true);
    this.leave = compareWith(this.run, this.bar, this.compared, this.source, shown, () => this.back());
  }

  private back(): void {
    this.leave?.();
    this.leave = null;
    this.panel.hidden = !this.opened?.steps.length;
    this.fillBar();
    this.bar.querySelector("button")?.focus();
  }
}
