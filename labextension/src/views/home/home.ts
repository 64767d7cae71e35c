// The side panel: a question to the model, what waits for the person's word, recent runs, stored results, MCP servers,
// the catalog.
//
// Invariants: what a person types stays until the kernel has taken it, through answers, restarts and other notebooks;
// an answer takes no focus; a look at the session is asked for once at a time.
import type { HomeBlob, HomePage, HomeRun, LiveCatalog, LiveTrace } from "../../protocol";
import type { Source, ViewFunction } from "../../sources/source";
import { approvals } from "../approval";
import { badges } from "../blocks/text";
import { announce } from "../dom/copy";
import { button, fill, focusedNear, formatCount, framed, h, unique, visible } from "../dom/h";
import { errorCard, latestRequest } from "../requests";
import { type Entry, entryList } from "./entry-list";
import { isOfServers, type ServerDraft, serverDraft, type ServerList, serverList } from "./servers";

const FEW = 4; // entries of a list before somebody wants more
const MANY = 200;

/** What of the panel outlives the view: one for each notebook. */
export interface HomeState {
  draft: string;
  /** A question that the kernel has not taken yet; gives what went wrong, or null. */
  asking: Promise<unknown> | null;
  /** The run whose answer is shown, and whether it went on when that was last seen. */
  answer: { run: string; running: boolean; question: string } | null;
  /** The lists that show many entries. */
  long: Set<string>;
  /** The parts that are folded away. */
  folded: Set<string>;
  server: ServerDraft;
}

export const homeState = (): HomeState => ({
  draft: "",
  asking: null,
  answer: null,
  long: new Set(),
  folded: new Set(["Stored results"]),
  server: serverDraft(),
});

export interface HomeViews {
  trace: ViewFunction<LiveTrace>;
  catalog: ViewFunction<LiveCatalog>;
}

export interface HomeView {
  focusQuestion(): void;
  focusSearch(): void;
  dispose(): void;
}

export const home =
  (views: HomeViews) =>
  (element: HTMLElement, source: Source, state: HomeState): HomeView =>
    new Home(element, source, state, views);

class Home implements HomeView {
  private question: HTMLTextAreaElement;
  private askButton = h("button.r-button.r-primary", { type: "submit" }, "Ask");
  private model = h("p.r-facts");
  private problem = h("div");
  private answerTitle = h("h3.r-h");
  private answerProblem = h("div");
  private asked = h("p.r-asked");
  private answerBody = h("div.r-answer-body");
  private insertButton: HTMLButtonElement | null;
  private answerPart: HTMLElement;
  private questions = h("div.r-questions");
  private runs = entryList<Entry & { row: HomeRun }>("Recent runs", ({ row }) => this.openRun(row));
  private blobs = entryList<Entry & { row: HomeBlob }>("Stored results", ({ row }) => this.openBlob(row));
  private runsMore = h("div.r-cmd");
  private blobsMore = h("div.r-cmd");
  private readProblem = h("div");
  private servers: ServerList;
  private catalog = h("div");
  private root: HTMLElement;
  private reading = latestRequest();
  private isReading = false;
  private isReadAgain = false;
  private wasAway = false;
  private isDisposed = false;
  private ends: (() => void)[];
  private endAnswer: (() => void) | null = null;
  private endQuestions: (() => void) | null = null;
  private readSoon = framed(() => this.read());

  constructor(
    private element: HTMLElement,
    private source: Source,
    private state: HomeState,
    private views: HomeViews,
  ) {
    const help = unique("help");
    this.question = h("textarea", {
      rows: 2,
      maxlength: 100_000,
      placeholder: "Ask about this notebook's data and files",
      "aria-label": "Question",
      "aria-describedby": help,
      oninput: () => (this.state.draft = this.question.value),
      onkeydown: (event: KeyboardEvent) => {
        if (event.key !== "Enter" || event.shiftKey || event.altKey || event.isComposing) return;
        event.preventDefault();
        this.ask();
      },
    });
    this.question.value = state.draft;
    this.insertButton = source.host.insertCell
      ? button("Put into the notebook", () => void this.insert(), {
          title: "A new cell below the active one, with the question and this answer",
        })
      : null;
    const close = button("✕", () => this.closeAnswer(), { "aria-label": "Close the answer" });
    this.answerPart = h(
      "section.r-home-part",
      { "aria-label": "Answer", hidden: true },
      h("div.r-home-head", {}, this.answerTitle, close),
      this.asked,
      this.answerBody,
      h("div.r-cmd", {}, this.insertButton),
      this.answerProblem,
    );
    const ask = h(
      "form.r-ask",
      {
        "aria-label": "Ask",
        onsubmit: (event: Event) => {
          event.preventDefault();
          this.ask();
        },
      },
      this.question,
      h("div.r-ask-row", {}, this.model, this.askButton),
      h("p.r-more", { id: help }, "Enter asks · Shift+Enter: a new line"),
      this.problem,
    );
    const waiting = h(
      "section.r-home-part.r-waiting",
      { "aria-label": "Waiting for you" },
      h("h3.r-h", {}, "Waiting for you"),
      this.questions,
    );
    this.servers = serverList(source, state.server);
    this.root = h(
      "div.reyn-view.r-home",
      // JupyterLab's single-key shortcuts would eat what is typed here.
      { role: "group", "aria-label": "Session", "data-lm-suppress-shortcuts": "true" },
      ask,
      waiting,
      this.answerPart,
      this.readProblem,
      this.fold("Recent runs", this.runs.element, this.runsMore),
      this.fold("Stored results", this.blobs.element, this.blobsMore),
      this.fold("MCP servers", this.servers.element),
    );
    const catalogPart = h("section", { "aria-label": "Actions" }, this.catalog);
    fill(element, this.root, catalogPart);
    this.ends = [
      () => this.endQuestions?.(),
      views.catalog(this.catalog, CATALOG, this.noticingCalls(), null),
      source.subscribe((event) => {
        if (event.name === "servers") this.servers.read();
        else if (event.name === "session") this.readSoon();
        else if (event.name === "run") {
          if (event.ended && event.run === state.answer?.run) this.answerEnded();
          this.readSoon();
        }
      }),
      source.watch((now) => {
        const back = this.wasAway && now === "live";
        this.wasAway = now !== "live" && (this.wasAway || now !== "busy");
        if (back) {
          // The answers of a session that is gone are read from its record by the next one.
          this.showAnswer();
          this.read();
        }
      }),
      this.reading.stop,
      () => this.servers.dispose(),
    ];
    this.showAnswer();
    this.read();
    this.followAsking();
  }

  focusQuestion(): void {
    this.question.focus();
  }

  focusSearch(): void {
    this.catalog.querySelector<HTMLElement>("[type=search]")?.focus();
  }

  dispose(): void {
    this.isDisposed = true;
    for (const end of this.ends) end();
    this.readSoon.cancel();
    this.endAnswer?.();
    this.element.replaceChildren();
  }

  /** A part that folds away, and stays as the person left it. */
  private fold(title: string, ...content: HTMLElement[]): HTMLElement {
    const { folded } = this.state;
    const part = h("details.r-home-part", { open: !folded.has(title) }, h("summary", {}, title), ...content);
    part.addEventListener("toggle", () => (part.open ? folded.delete(title) : folded.add(title)));
    return part;
  }

  /** A call by hand in the catalog is a run too. */
  private noticingCalls(): Source {
    const { source } = this;
    const request: Source["request"] = async (op, args, options) => {
      try {
        return await source.request(op, args, options);
      } finally {
        if (op === "catalog.invoke") this.readSoon();
      }
    };
    return {
      get host() {
        return source.host;
      },
      get state() {
        return source.state;
      },
      get reason() {
        return source.reason;
      },
      request,
      subscribe: (listener) => source.subscribe(listener),
      watch: (listener) => source.watch(listener),
    };
  }

  private read(): void {
    this.servers.read();
    if (this.isReading) {
      this.isReadAgain = true;
      return;
    }
    this.isReading = true;
    this.isReadAgain = false;
    const most = (list: string): number => (this.state.long.has(list) ? MANY : FEW);
    const done = (): void => {
      this.isReading = false;
      if (this.isReadAgain) this.read();
    };
    this.reading.start(
      (options) => this.source.request("home.open", { runs: most("runs"), blobs: most("blobs") }, options),
      (page) => {
        fill(this.readProblem);
        this.showPage(page);
        done();
      },
      (error) => {
        // Where the kernel is gone, the panel says so; what is shown stays.
        if (this.source.state === "live")
          fill(
            this.readProblem,
            errorCard(error, () => this.read()),
          );
        done();
      },
    );
  }

  private showPage(page: HomePage): void {
    fill(
      this.model,
      h("span", { class: page.usable ? null : "r-badge r-warn", title: page.about }, page.model),
      ` · ${visible(page.spent)}`,
    );
    if (!page.usable) this.model.append(h("span.r-why", {}, visible(page.about)));
    this.runs.show(page.runs.map((row) => ({ ...entry(row, row.run, badges([row.state])), row })));
    this.blobs.show(page.blobs.map((row) => ({ ...entry(row, row.blob, []), row })));
    const { answer } = this.state;
    if (answer?.running && page.runs.some((row) => row.run === answer.run && !row.running))
      this.answerEnded();
    this.showMore(this.runsMore, "runs", page.runs.length, page.all_runs, "No run yet.");
    this.showMore(this.blobsMore, "blobs", page.blobs.length, page.all_blobs, "Nothing is stored yet.");
  }

  private showMore(box: HTMLElement, list: string, shown: number, all: number, none: string): void {
    const { long } = this.state;
    const hadFocus = box.contains(focusedNear(box));
    const toggle = (): void => {
      if (!long.delete(list)) long.add(list);
      this.read();
    };
    const names = long.has(list)
      ? `Show ${FEW}`
      : `Show ${formatCount(Math.min(all, MANY))} of ${formatCount(all)}`;
    const rest = long.has(list) && all > shown ? `${formatCount(all - shown)} older ones: %reyn ${list}` : "";
    fill(box, all > FEW && button(names, toggle), h("span.r-more", {}, all ? rest : none));
    if (hadFocus) box.querySelector("button")?.focus({ preventScroll: true });
  }

  /** Asks once, however long the kernel is busy and whatever other notebooks are looked at until it has taken it. */
  private ask(): void {
    const { source, state } = this;
    if (state.asking) return;
    const typed = this.question.value;
    state.asking = source.request("home.ask", { prompt: typed }).then(
      ({ run }) => {
        state.asking = null;
        // What was typed while the kernel took the question is the next one.
        if (state.draft === typed) state.draft = "";
        state.answer = { run, running: true, question: typed.trim() };
        return null;
      },
      (error: unknown) => {
        state.asking = null;
        return error;
      },
    );
    this.followAsking();
  }

  /** Shows what comes of a question that was asked here, or in the view that was here before. */
  private followAsking(): void {
    const { state } = this;
    if (!state.asking) return;
    this.askButton.disabled = true;
    fill(this.problem);
    void state.asking.then((error) => {
      if (this.isDisposed) return;
      this.askButton.disabled = false;
      if (error) return fill(this.problem, errorCard(error));
      if (this.question.value !== state.draft) this.question.value = state.draft;
      this.showAnswer();
      announce(this.root, "Asked");
      this.read(); // it may have ended before its name came
    });
  }

  private showAnswer(): void {
    const { state, source, views } = this;
    this.endAnswer?.();
    this.endAnswer = null;
    fill(this.answerBody);
    fill(this.answerProblem);
    this.answerPart.hidden = !state.answer;
    this.endQuestions?.();
    // The answer's own card asks for its run.
    this.endQuestions = approvals(
      this.questions,
      source,
      (event) => event.run !== state.answer?.run && !isOfServers(event),
    );
    if (!state.answer) return;
    const { run, running, question } = state.answer;
    fill(this.asked, question);
    this.asked.title = visible(question);
    fill(this.answerTitle, running ? "Answer, under way" : "Answer");
    if (this.insertButton) this.insertButton.hidden = running;
    const live: LiveTrace = { type: "trace", run, running };
    this.endAnswer = views.trace(this.answerBody, live, source, null);
  }

  private answerEnded(): void {
    this.state.answer!.running = false;
    fill(this.answerTitle, "Answer");
    if (this.insertButton) this.insertButton.hidden = false;
    announce(this.root, "The answer is here");
  }

  private closeAnswer(): void {
    this.state.answer = null;
    this.showAnswer();
    this.question.focus();
  }

  private async insert(): Promise<void> {
    const { answer } = this.state;
    if (!answer) return;
    fill(this.answerProblem);
    try {
      const { source: code, output } = await this.source.request("home.cell", { run: answer.run });
      this.source.host.insertCell?.(code, output);
      announce(this.root, "Put into the notebook");
    } catch (error) {
      fill(this.answerProblem, errorCard(error));
    }
  }

  /** In a tab beside the notebook, else in the place of the answer. */
  private openRun({ run, running, title }: HomeRun): void {
    const { open } = this.source.host;
    if (open) return open({ type: "trace", run, running }, clip(title));
    this.state.answer = { run, running, question: title };
    this.showAnswer();
    this.answerPart.scrollIntoView({ block: "nearest" });
  }

  private openBlob({ blob, title }: HomeBlob): void {
    const { open, insertCell } = this.source.host;
    if (open) open({ type: "blob", blob, selector: null }, clip(title));
    else insertCell?.(`%reyn inspect ${blob}`);
  }
}

function entry(
  row: { title: string; facts: string; at: number },
  id: string,
  first: readonly unknown[],
): Entry {
  const when = moment(row.at);
  const shown = (first as Node[]).filter((each) => each instanceof Node);
  const said = `${when} · ${row.facts}`;
  const facts = document.createTextNode(visible(`${shown.length ? " " : ""}${said}`));
  const tooltip = `${row.title}\n${said}`;
  return { id, title: row.title, facts: [...shown, facts], tooltip, state: JSON.stringify([row, when]) };
}

const clip = (text: string): string => {
  const shown = visible(text);
  return shown.length > 40 ? `${shown.slice(0, 39)}…` : shown;
};

/** The clock of today, the day before that; in the person's own time, so that it never goes stale. */
function moment(at: number): string {
  const when = new Date(at * 1000);
  const clock = when.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  if (when.toDateString() === new Date().toDateString()) return clock;
  return `${when.toLocaleDateString([], { month: "short", day: "numeric" })}, ${clock}`;
}

const CATALOG: LiveCatalog = { type: "catalog", query: "" };
