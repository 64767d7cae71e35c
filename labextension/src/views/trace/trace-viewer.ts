// A run: its card, the list of what it did, and beside it what stands behind the chosen line.
//
// Invariant: what is shown stays until something newer is there to take its place; while a run goes on the list grows
// under the person's choice, never away from it.
import type { LiveBlob, LiveTrace } from "../../protocol";
import type { Host, Source, ViewFunction } from "../../sources/source";
import { approvals } from "../approval";
import { type BlobButton, blobButton } from "../blob/blob-button";
import { drawBlocks } from "../blocks/blocks";
import { drawView } from "../blocks/view";
import { button, fill, h, visible } from "../dom/h";
import { listbox } from "../dom/listbox";
import { ignore, requestProgress } from "../request-progress";
import { latestRequest, errorCard } from "../requests";
import { compareWith } from "./compare";
import { drawRow, drawSide, firstRow, type OpenTrace, type Part, type Row, rowState } from "./steps";
import { redraw, showBlocks } from "../blocks/patch";

const EVENT_DELAY = 300; // ms between two looks at a run that goes on
const POLL_DELAY = 2000; // and without any word of it
const SETTLE_DELAY = 60; // ms that a choice must last before it is asked for: arrow keys repeat
const MOST_PARTS = 60;

/** @param inspect shows a blob inline, where the host has no tabs */
export const traceViewer =
  (inspect?: ViewFunction<LiveBlob>): ViewFunction<LiveTrace> =>
  (element, model, source, before) => {
    const view = new TraceViewer(element, model, source, inspect, before ?? null);
    return () => view.dispose();
  };

class TraceViewer {
  private openRequest = latestRequest();
  private partRequest = latestRequest();
  private parts = new Map<string, Part>();
  private list = listbox<Row>({
    label: "Steps",
    height: 46,
    most: 506,
    draw: drawRow,
    text: (row) => `${row.title} ${row.about} ${row.state}`,
    onselect: (row, person) => this.onSelect(row, person),
  });
  private request = h("section.r-side", { "aria-label": "Request" });
  private response = h("section.r-side", { "aria-label": "Response" });
  private notice = h("div");
  private partProblem = h("div");
  private detail = h(
    "div.r-detail",
    { role: "region", tabindex: 0, "aria-label": "What stands behind the chosen step" },
    this.notice,
    this.partProblem,
    this.request,
    this.response,
  );
  private more = h("p.r-more");
  private bar = h("div.r-cmd.r-bar");
  private stopBox = h("div.r-cmd.r-bar");
  private problemBox = h("div");
  private comparisonBox = h("div.r-compared");
  private panel = h("div.r-run", {}, this.list.element, this.detail, this.more);
  private summary = h("summary");
  private about = h("div.r-in");
  private details = h(
    "details.r-fold.r-details",
    {},
    this.summary,
    this.bar,
    this.comparisonBox,
    this.panel,
    this.about,
  ) as HTMLDetailsElement;
  private place = h("div"); // of the snapshot, and then of the card
  private progress;

  private card: HTMLElement | null = null;
  private trace: OpenTrace | null = null;
  private drawnState = ""; // the row that the detail shows, as it was then
  private isFollowing = true; // nobody has chosen a line yet
  private settleTimer = 0;
  private timer = 0;
  private due = Infinity; // when the next look is
  private isRequested = false; // a look is under way
  private isRequestedAgain = false; // and one more is meant after it
  private hasFailed = false;
  private wasAway = false;
  private blobButton: BlobButton | null = null;
  private blob: string | null = null; // that is offered there
  private leaveComparison: (() => void) | null = null;
  private asks = h("div");
  private leaveQuestions: (() => void) | null = null;
  private ends: ((() => void) | null)[];

  constructor(
    private element: HTMLElement,
    private model: LiveTrace,
    private source: Source,
    private inspect: ViewFunction<LiveBlob> | undefined,
    before: HTMLElement | null,
  ) {
    this.progress = requestProgress(source, before ?? element);
    this.progress.box.classList.add("reyn-view", "r-alone");
    fill(this.place, before);
    element.append(this.progress.box, this.place);
    this.ends = [
      source.subscribe((event) => {
        if (event.name === "run" && event.run === this.run) this.openLater(event.ended ? 0 : EVENT_DELAY);
      }),
      this.follow(),
      this.progress.dispose,
      this.openRequest.stop,
      this.partRequest.stop,
      this.list.dispose,
    ];
    this.open();
  }

  dispose(): void {
    window.clearTimeout(this.timer);
    window.clearTimeout(this.settleTimer);
    for (const end of [...this.ends, this.leaveComparison, this.leaveQuestions]) end?.();
    this.blobButton?.dispose();
    this.element.replaceChildren();
  }

  /** What the page can do, and what this viewer can: it shows a result below its button where there are no tabs. */
  private get host(): Host {
    const { inspect, source } = this;
    const host: Host = { ...source.host };
    if (source.host.name !== "page") host.chart = (element) => this.drawChart(element);
    if (inspect) host.inspect = (element, live) => void this.ends.push(inspect(element, live, source));
    return host;
  }

  private drawChart(element: HTMLElement): void {
    const progress = requestProgress(this.source, element);
    this.ends.push(progress.dispose);
    fill(element, progress.box);
    progress
      .request("trace.chart", { run: this.run })
      .then(({ blocks }) => fill(element, drawBlocks(blocks, this.source.host)))
      .catch(ignore);
  }

  private get run(): string {
    return this.trace?.run ?? this.model.run;
  }

  private follow(): () => void {
    return this.source.watch((state) => {
      const back = this.wasAway && state === "live";
      this.wasAway = state !== "live" && (this.wasAway || state !== "busy");
      const stale = state === "live" && this.card && (this.hasFailed || this.trace?.running);
      if ((back && !this.card) || (stale && !this.isRequested)) this.open();
    });
  }

  private open(): void {
    window.clearTimeout(this.timer);
    this.due = Infinity;
    const { card, source } = this;
    if (card && this.isRequested) {
      this.isRequestedAgain = true; // a kernel that answers more slowly than its events come is heard out all the same
      return;
    }
    this.isRequested = true;
    this.isRequestedAgain = false;
    const args = { run: this.run };
    this.openRequest.start(
      (options) =>
        card
          ? source.request("trace.open", args, options)
          : this.progress.request("trace.open", args, options.signal),
      (answer) => {
        this.isRequested = this.hasFailed = false;
        fill(this.problemBox);
        this.show(answer);
        if (answer.running) this.openLater(this.isRequestedAgain ? EVENT_DELAY : POLL_DELAY);
      },
      (error) => {
        this.isRequested = false;
        this.hasFailed = true;
        if (card)
          fill(
            this.problemBox,
            errorCard(error, () => this.open()),
          ); // else it stands beside the snapshot
      },
    );
  }

  /** Whether the person opened the details of the snapshot, in whose place the card comes. */
  private areDetailsOpen(): boolean {
    const titles = this.place.querySelectorAll("details.r-fold[open] > summary > .r-what");
    return [...titles].some((title) => title.textContent === "Details");
  }

  /** What a run needs consent to stands in its card as long as the run goes on. */
  private askFor(answer: OpenTrace): void {
    if (answer.running && this.source.host.name !== "page")
      this.leaveQuestions ??= approvals(this.asks, this.source, (event) => event.run === answer.run);
  }

  /** A run in the making says what it does on its card; a call by hand is nothing but its details. */
  private showDetails(answer: OpenTrace): void {
    fill(this.summary, h("span.r-what", {}, "Details"), " ", h("span.r-aside", {}, visible(answer.summary)));
    showBlocks(this.about, answer.about, this.host);
    this.about.hidden = !answer.about.length;
  }

  /** Looks again after a while, or sooner where that was meant already: events that keep coming must not put it off. */
  private openLater(wait: number): void {
    const at = performance.now() + wait;
    if (at >= this.due) return;
    window.clearTimeout(this.timer);
    this.due = at;
    this.timer = window.setTimeout(() => this.open(), wait);
  }

  private show(answer: OpenTrace): void {
    const { list, more } = this;
    const before = this.trace;
    this.trace = answer;
    if (this.card) redraw(this.card, answer.view, this.host);
    else {
      this.card = drawView(answer.view, this.host);
      this.card.classList.add("r-trace");
      this.card.append(this.asks, this.stopBox, this.problemBox, this.details);
      this.details.open = !answer.about.length || this.areDetailsOpen();
      fill(this.place, this.card);
    }
    this.showDetails(answer);
    this.askFor(answer);
    if (!this.leaveComparison && before?.stoppable !== answer.stoppable) this.fillBar();
    list.show(answer.steps);
    more.textContent = visible(answer.more);
    more.hidden = !answer.more;
    if (!this.leaveComparison) this.panel.hidden = !answer.steps.length;
    const wanted = list.selected && !(this.isFollowing && answer.running) ? list.selected : firstRow(answer);
    if (wanted && (wanted.id !== list.selected?.id || rowState(wanted) !== this.drawnState))
      list.select(wanted.id);
  }

  private onSelect(row: Row, person: boolean): void {
    this.isFollowing &&= !person;
    window.clearTimeout(this.settleTimer);
    this.settleTimer = window.setTimeout(() => this.showPart(row), person ? SETTLE_DELAY : 0);
  }

  private showPart(row: Row): void {
    const { partRequest, source } = this;
    const state = rowState(row);
    const isSameRow = row.id === this.drawnState.split(" ")[0];
    const keptPart = this.parts.get(row.id);
    const showSides = (part: Part): void => {
      this.drawnState = state;
      fill(this.partProblem);
      if (!this.trace?.running && this.parts.size < MOST_PARTS) this.parts.set(row.id, part);
      if (!isSameRow || part.blob !== this.blob) this.showBlobButton(part.blob);
      drawSide(this.request, part.request, source, isSameRow);
      drawSide(this.response, part.response, source, isSameRow);
      this.nameDetail(row);
    };
    if (keptPart) return (partRequest.stop(), showSides(keptPart));
    partRequest.start(
      (options) => source.request("trace.part", { run: this.run, id: row.id }, options),
      showSides,
      (error) => {
        if (!isSameRow) this.clearPart(row);
        fill(
          this.partProblem,
          errorCard(error, () => this.showPart(row)),
        );
      },
    );
  }

  private nameDetail(row: Row): void {
    this.detail.setAttribute("aria-label", visible(`${row.title}: request and response`));
  }

  /** What stands there belongs to another step. */
  private clearPart(row: Row): void {
    this.drawnState = "";
    this.nameDetail(row);
    this.showBlobButton(null);
    fill(this.request);
    fill(this.response);
  }

  private showBlobButton(blob: string | null): void {
    this.blobButton?.dispose();
    this.blob = blob;
    this.blobButton = null;
    if (blob) {
      const live: LiveBlob = { type: "blob", blob, selector: null };
      this.blobButton = blobButton("Inspect the blob", live, blob.slice(-12), this.source, this.inspect);
    }
    fill(this.notice, this.blobButton?.element);
  }

  private fillBar(): void {
    if (this.source.host.name === "page") return; // nothing runs there, and there is no other run to choose
    const stop = button("Stop", () => this.stopRun(stop));
    fill(this.stopBox, !!this.trace?.stoppable && stop);
    fill(
      this.bar,
      button("Compare with …", () => this.compare()),
    );
  }

  private stopRun(stop: HTMLButtonElement): void {
    stop.disabled = true;
    stop.textContent = "Stopping …";
    this.source.request("run.stop", { run: this.run }).then(
      () => this.open(),
      (error) => {
        stop.disabled = false;
        stop.textContent = "Stop";
        fill(this.problemBox, errorCard(error));
      },
    );
  }

  private compare(): void {
    const shown = (): void => void (this.panel.hidden = true);
    this.leaveComparison = compareWith(this.run, this.bar, this.comparisonBox, this.source, shown, () =>
      this.back(),
    );
  }

  private back(): void {
    this.leaveComparison?.();
    this.leaveComparison = null;
    this.panel.hidden = !this.trace?.steps.length;
    this.fillBar();
    this.bar.querySelector("button")?.focus();
  }
}
