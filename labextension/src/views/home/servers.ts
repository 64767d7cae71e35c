// The MCP servers of the session in the side panel: how each fares, what it wrote, adding and dropping.
//
// Invariants: a server that stays keeps its very element, so that news takes no press, no focus and no open part away;
// nothing is added or dropped here, but by the answer to a question that shows what would run.
import type { ApprovalAsked, PanelServer, ServersPage } from "../../protocol";
import type { Source } from "../../sources/source";
import { approvals } from "../approval";
import { badges } from "../blocks/text";
import { announce } from "../dom/copy";
import { button, fill, focusedNear, formatCount, framed, h, unique, visible } from "../dom/h";
import { errorCard, latestRequest } from "../requests";

/** What was typed of a server that is to be added. */
export interface ServerDraft {
  open: boolean;
  name: string;
  runs: string;
  sandbox: boolean;
}

export const serverDraft = (): ServerDraft => ({ open: false, name: "", runs: "", sandbox: false });

export interface ServerList {
  readonly element: HTMLElement;
  /** Asks how the servers fare now. */
  read(): void;
  dispose(): void;
}

/** Whether a question is about the servers that there are, and so stands among them. */
export const isOfServers = (event: ApprovalAsked): boolean => event.action.startsWith("%reyn mcp ");

export function serverList(source: Source, draft: ServerDraft): ServerList {
  const list = h("ul.r-servers", { "aria-label": "MCP servers" });
  const remarks = h("div");
  const problem = h("div");
  const questions = h("div.r-questions");
  const form = addForm(source, draft, () => readSoon());
  const reading = latestRequest();
  const rows = new Map<string, ServerRow>();
  let isReading = false;
  let isReadAgain = false;

  const element = h("div.r-server-part", {}, list, remarks, problem, form.element, questions);

  function read(): void {
    if (isReading) {
      isReadAgain = true;
      return;
    }
    isReading = true;
    isReadAgain = false;
    const done = (): void => {
      isReading = false;
      if (isReadAgain) read();
    };
    reading.start(
      (options) => source.request("servers.list", {}, options),
      (page) => {
        fill(problem);
        show(page);
        done();
      },
      (error) => {
        if (source.state === "live") fill(problem, errorCard(error, read));
        done();
      },
    );
  }
  const readSoon = framed(read);
  /** Gives back the focus that went to a question, unless the person has gone on meanwhile. */
  function settled(row: ServerRow): void {
    const active = focusedNear(element);
    if (!active || active === document.body || questions.contains(active)) row.focus();
    readSoon();
  }

  function show(page: ServersPage): void {
    const names = new Set(page.servers.map((each) => each.name));
    for (const [name, row] of rows)
      if (!names.has(name)) {
        if (row.element.contains(focusedNear(row.element))) form.focus();
        row.dispose();
        rows.delete(name);
      }
    page.servers.forEach((server, place) => {
      let row = rows.get(server.name);
      if (row) row.show(server);
      else rows.set(server.name, (row = new ServerRow(server, source, settled)));
      if (list.children[place] !== row.element) list.insertBefore(row.element, list.children[place] ?? null);
    });
    const more = page.total - page.servers.length;
    fill(
      remarks,
      !!page.empty && h("p.r-more", {}, visible(page.empty)),
      page.remarks.map((each) => h("p.r-more", {}, visible(each))),
      more > 0 && h("p.r-more", {}, `${formatCount(more)} more: %reyn mcp`),
    );
    form.element.hidden = !page.can_add;
  }

  // It stands below what was pressed, perhaps out of sight.
  const endQuestions = approvals(questions, source, isOfServers, (card) =>
    card.scrollIntoView({ block: "nearest" }),
  );
  return {
    element,
    read,
    dispose() {
      endQuestions();
      reading.stop();
      readSoon.cancel();
      for (const row of rows.values()) row.dispose();
    },
  };
}

/** One server: a line that opens to what it wrote last, and what can be done with it. */
class ServerRow {
  readonly element: HTMLElement;
  private head = h("span.r-server-head");
  private facts = h("span.r-entry-facts");
  private details = h("div.r-server-body");
  private log = h("div");
  private problem = h("div");
  private buttons = h("div.r-cmd");
  private fold: HTMLDetailsElement;
  private shown = "";
  private phase = "";
  private isBusy = false;
  private isLogOpen = false;
  private readingLog = latestRequest();

  constructor(
    private server: PanelServer,
    private source: Source,
    private settled: (row: ServerRow) => void,
  ) {
    this.fold = h(
      "details.r-server",
      { "data-server": server.name },
      h("summary", {}, this.head, this.facts),
      this.details,
      this.buttons,
      this.log,
      this.problem,
    );
    this.element = h("li", {}, this.fold);
    this.show(server);
  }

  show(server: PanelServer): void {
    const state = JSON.stringify(server);
    if (this.isLogOpen) this.readLog(); // it may have written meanwhile
    if (state === this.shown) return;
    const phase = server.state.text;
    if (this.phase && phase !== this.phase) announce(this.element, `${server.name}: ${phase}`);
    this.shown = state;
    this.phase = phase;
    this.server = server;
    fill(
      this.head,
      h("span.r-server-name", { title: server.name }, visible(server.name)),
      " ",
      badges([server.state]),
    );
    fill(this.facts, visible(server.facts));
    const fact = (name: string, value: string, kind = "span"): Node[] =>
      value ? [h("dt", {}, name), h("dd", {}, h(kind as "span", {}, visible(value)))] : [];
    fill(
      this.details,
      !!server.why && h("p.r-server-why", {}, visible(server.why)),
      h(
        "dl.r-server-facts",
        {},
        fact("last line", server.last_line, "code"),
        fact("runs", server.runs, "code"),
        fact("gets", server.gets),
        fact("isolation", server.isolation),
        fact("from", server.origin),
      ),
    );
    this.drawButtons();
  }

  focus(): void {
    this.fold.querySelector("summary")?.focus({ preventScroll: true });
  }

  dispose(): void {
    this.readingLog.stop();
    this.element.remove();
  }

  private drawButtons(): void {
    const { server, source } = this;
    const focused = focusedNear(this.buttons);
    const held = this.buttons.contains(focused) ? focused!.getAttribute("data-act") : null;
    const act = (name: string, label: string, onclick: () => void, more = {}): HTMLButtonElement =>
      button(label, onclick, { "data-act": name, "aria-label": `${label} ${server.name}`, ...more });
    const insert = source.host.insertCell;
    const isAsleep = !["ready", "starting"].includes(server.state.text);
    fill(
      this.buttons,
      !!server.line &&
        !!insert &&
        act("step", server.label, () => insert(server.line), {
          title: `Puts ${server.line} into a new cell, which you run`,
        }),
      act("log", this.isLogOpen ? "Hide log" : "Log", () => this.toggleLog(), {
        "aria-expanded": String(this.isLogOpen),
      }),
      server.may_start && act("restart", isAsleep ? "Start" : "Restart", () => void this.restart()),
      !!server.dropped_from &&
        act("drop", "Drop …", () => void this.drop(), {
          title: `Asks first, then takes it out of ${server.dropped_from}`,
        }),
    );
    this.buttons
      .querySelectorAll<HTMLButtonElement>("[data-act=restart], [data-act=drop]")
      .forEach((each) => (each.disabled = this.isBusy));
    if (held) this.buttons.querySelector<HTMLElement>(`[data-act=${held}]`)?.focus({ preventScroll: true });
  }

  private toggleLog(): void {
    this.isLogOpen = !this.isLogOpen;
    fill(this.log, this.isLogOpen && h("p.r-more", {}, "Reading …"));
    if (this.isLogOpen) this.readLog();
    else this.readingLog.stop();
    this.drawButtons();
  }

  private readLog(): void {
    this.readingLog.start(
      (options) => this.source.request("servers.log", { name: this.server.name }, options),
      ({ lines }) => {
        const before = this.log.querySelector("pre");
        const said = lines.map(visible).join("\n");
        if (before?.textContent === said && said) return;
        if (!said) return fill(this.log, h("p.r-more", {}, "It has written nothing yet."));
        const isAtEnd = !before || before.scrollTop + before.clientHeight >= before.scrollHeight - 4;
        const label = `Log of ${this.server.name}, oldest line first`;
        const pre = before ?? h("pre.r-server-log", { tabindex: 0, role: "region", "aria-label": label });
        pre.textContent = said;
        if (!before) fill(this.log, pre);
        if (isAtEnd) pre.scrollTop = pre.scrollHeight;
      },
      (error) =>
        fill(
          this.log,
          errorCard(error, () => this.readLog()),
        ),
    );
  }

  private restart(): Promise<void> {
    return this.ask(() => this.source.request("servers.restart", { name: this.server.name }));
  }

  private drop(): Promise<void> {
    return this.ask(() => this.source.request("servers.drop", { name: this.server.name }));
  }

  private async ask(request: () => Promise<{ said: string }>): Promise<void> {
    fill(this.problem);
    this.isBusy = true;
    this.drawButtons();
    try {
      const { said } = await request();
      announce(this.element, said);
    } catch (error) {
      fill(this.problem, errorCard(error));
    } finally {
      this.isBusy = false;
      this.drawButtons();
      this.settled(this);
    }
  }
}

interface AddForm {
  readonly element: HTMLElement;
  focus(): void;
}

function addForm(source: Source, draft: ServerDraft, added: () => void): AddForm {
  const ids = { name: unique("server"), runs: unique("runs"), help: unique("help") };
  const plain = { spellcheck: "false", autocomplete: "off" };
  const name = h("input", {
    ...plain,
    id: ids.name,
    placeholder: "time",
    oninput: () => (draft.name = name.value),
  });
  const runs = h("input", {
    ...plain,
    id: ids.runs,
    placeholder: "uvx mcp-server-time",
    "aria-describedby": ids.help,
    oninput: () => (draft.runs = runs.value),
  });
  const sandbox = h("input", { type: "checkbox", onchange: () => (draft.sandbox = sandbox.checked) });
  const submit = h("button.r-button.r-primary", { type: "submit" }, "Add …");
  const cancel = button("Cancel", () => openWithFocus(false));
  const problem = h("div");
  const status = h("p.r-more", { role: "status" });
  const form = h(
    "form.r-server-form",
    {
      "aria-label": "Add an MCP server",
      onsubmit: (event: Event) => {
        event.preventDefault();
        void add();
      },
      onkeydown: (event: KeyboardEvent) => {
        if (event.key === "Escape" && !event.isComposing) openWithFocus(false);
      },
    },
    h("label", { for: ids.name }, "Name"),
    name,
    h("label", { for: ids.runs }, "Command or address"),
    runs,
    h("label.r-server-check", {}, sandbox, " In a sandbox: it reads this folder, and has no network"),
    h(
      "p.r-more",
      { id: ids.help },
      "No shell reads the command. You see what would run before anything is written; " +
        "%reyn mcp add takes variables, headers and more.",
    ),
    h("div.r-cmd", {}, submit, cancel),
    status,
    problem,
  );
  const opener = button("Add a server …", () => openWithFocus(true), { "aria-expanded": "false" });
  const element = h("div", {}, h("div.r-cmd", {}, opener), form);

  function setOpen(open: boolean): void {
    draft.open = open;
    form.hidden = !open;
    opener.hidden = open;
    opener.setAttribute("aria-expanded", String(open));
    fill(problem);
  }
  function focus(): void {
    (draft.open ? name : opener).focus({ preventScroll: true });
  }
  function openWithFocus(open: boolean): void {
    setOpen(open);
    focus();
  }
  async function add(): Promise<void> {
    if (submit.disabled) return;
    submit.focus({ preventScroll: true }); // a question takes the focus from no field
    submit.disabled = true;
    fill(problem);
    fill(status, "Answer the question below.");
    try {
      const { said } = await source.request("servers.add", {
        name: name.value,
        runs: runs.value,
        sandbox: sandbox.checked,
      });
      name.value = runs.value = draft.name = draft.runs = "";
      sandbox.checked = draft.sandbox = false;
      const active = focusedNear(element);
      setOpen(false);
      if (!active || active === document.body || element.parentElement?.contains(active)) focus();
      announce(element, said);
    } catch (error) {
      fill(problem, errorCard(error));
    } finally {
      submit.disabled = false;
      fill(status);
      added();
    }
  }

  name.value = draft.name;
  runs.value = draft.runs;
  sandbox.checked = draft.sandbox;
  form.hidden = !draft.open;
  opener.hidden = draft.open;
  return { element, focus };
}
