// Shows that a run or a call waits for consent: in a card below the cell that waits, and in a notification, which blocks
// nothing and leads to the card.
//
// Invariants: a question belongs to the kernel's session, so a page that was loaded again shows it too. A card is no part
// of the notebook: no question is saved. A notification decides nothing, and dismissing it leaves the question open; a
// question that was settled elsewhere takes its notification along.
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { Dialog, Notification } from "@jupyterlab/apputils";
import { INotebookTracker, NotebookActions, type NotebookPanel } from "@jupyterlab/notebook";
import { ISettingRegistry } from "@jupyterlab/settingregistry";
import { Widget } from "@lumino/widgets";
import type { ApprovalAsked } from "../protocol";
import type { KernelSource } from "../sources/kernel";
import type { Source } from "../sources/source";
import { type ApprovalCard, approvalCard, leaveQuestion } from "../views/approval";
import { h, visible } from "../views/dom/h";
import { isOfServers } from "../views/home/servers";
import { hostName } from "./host";
import { IKernels, type Kernels, type NotebookKernel } from "./kernels";
import { followSettings } from "./settings";
import { waitForPerson } from "./waiting";

const MOST_NAMED = 60; // characters of an action or a notebook in a notification
const HERE_INTERVAL = 30_000; // ms after which a page with open questions says again that it is there
const PLACE_INTERVAL = 300; // ms between two looks for a cell that is not on the page yet
const OUTCOME_STAYS = 1500; // ms for which the outcome stays to be read

interface Waiting {
  event: ApprovalAsked;
  panel: NotebookPanel;
  kernel: KernelSource;
  notification: string;
  notWaiting: () => void;
  placing: number; // a timer, until the card is on the page
}

class Questions {
  private open = new Map<string, Waiting>();
  isEnabled = true;

  constructor(private app: JupyterFrontEnd) {
    window.setInterval(
      () => new Set([...this.open.values()].map((each) => each.kernel)).forEach(greet),
      HERE_INTERVAL,
    );
    // A cell that runs again has no use for what an earlier kernel's question said.
    NotebookActions.executionScheduled.connect((_, { cell }) => {
      cell.node.querySelectorAll(":scope > .reyn-question").forEach((each) => each.remove());
    });
  }

  subscribe({ panel, kernel }: NotebookKernel): void {
    kernel.subscribe((event) => {
      // The answer to a press in the side panel stands under it already.
      if (event.name === "approval" && this.isEnabled && !isOfServers(event))
        this.announce(event, panel, kernel);
      else if (event.name === "settled") this.settle(event.id);
    });
    kernel.watch((state) => {
      if (state !== "gone" && state !== "missing") return;
      // Nobody is left who would hear an answer; the card in the cell says so.
      for (const [id, each] of this.open) if (each.kernel === kernel) this.settle(id);
    });
  }

  private announce(event: ApprovalAsked, panel: NotebookPanel, kernel: KernelSource): void {
    if (this.open.has(event.id)) return;
    kernel.greet(); // the kernel may not have heard this page for long
    const path = panel.isDisposed ? "" : panel.context.path.split("/").pop();
    const message = `${short(event.heading)} A run${path ? ` of ${short(path)}` : ""} waits for you.`;
    const notification = Notification.emit(message, "warning", {
      autoClose: false,
      actions: [
        {
          label: "Show the question",
          caption: "Leads to the card of the run; nothing is decided by it.",
          callback: () => void this.show(event.id),
        },
      ],
    });
    const notWaiting = waitForPerson(event.id);
    const waiting: Waiting = { event, panel, kernel, notification, notWaiting, placing: 0 };
    this.open.set(event.id, waiting);
    this.place(waiting);
  }

  /** Puts the card below the cell that waits, as soon as that is on the page. */
  private place(waiting: Waiting): void {
    const { event, panel, kernel } = waiting;
    if (event.cell === null || panel.isDisposed || !this.open.has(event.id)) return;
    const cell = panel.content.widgets.find((each) => each.model.id === event.cell);
    if (!cell) {
      waiting.placing = window.setTimeout(() => this.place(waiting), PLACE_INTERVAL);
      return;
    }
    cell.node.querySelectorAll(":scope > .reyn-question").forEach((each) => each.remove());
    const box = h("div.reyn-output.reyn-question");
    const closed = (stays: boolean): void => {
      if (stays) return;
      const hadFocus = box.contains(document.activeElement);
      if (hadFocus) leaveQuestion(box);
      setTimeout(() => box.remove(), OUTCOME_STAYS);
    };
    const source = kernel.bindPanel({ name: hostName(this.app) });
    const card = approvalCard(event, source, closed, () => leaveQuestion(box));
    box.append(card.element);
    // A prompt that waits for the same answer is out of sight as long as the card is there.
    cell.node
      .querySelectorAll(".jp-OutputArea-stdin-item")
      .forEach((each) => each.classList.add("reyn-prompt"));
    // Above the outputs, which grow while the run goes on.
    cell.node.insertBefore(box, cell.node.querySelector(":scope > .jp-Cell-outputWrapper"));
    panel.disposed.connect(() => card.dispose());
    void this.lead(panel, cell.node, card);
  }

  /** Leads to a new card, unless the user types elsewhere. */
  private async lead(panel: NotebookPanel, cell: HTMLElement, card: ApprovalCard): Promise<void> {
    const active = document.activeElement;
    const isTyping = active?.matches("input, textarea, select, [contenteditable=true]");
    const isHere = !active || active === document.body || panel.node.contains(active);
    if (!panel.isVisible || (isTyping && !cell.contains(active))) return;
    if (isHere) card.focus();
    const at = panel.content.widgets.findIndex((each) => each.node === cell);
    await panel.content.scrollToItem(at).catch(() => undefined); // cells above it may get their height only now
    card.element.scrollIntoView({ block: "nearest" });
  }

  private settle(id: string): void {
    const waiting = this.open.get(id);
    if (!waiting) return;
    this.open.delete(id);
    clearTimeout(waiting.placing);
    waiting.notWaiting();
    Notification.dismiss(waiting.notification);
  }

  /** Leads to the question: in the notebook's card, elsewhere on the page, or by itself where no card is left. */
  private async show(id: string): Promise<void> {
    const waiting = this.open.get(id);
    if (!waiting) return;
    const { panel } = waiting;
    const isHere = (node: Element): boolean => node.querySelector(selectorOf(id)) !== null;
    const at = panel.isDisposed ? -1 : panel.content.widgets.findIndex((cell) => isHere(cell.node));
    if (at >= 0) {
      this.app.shell.activateById(panel.id);
      panel.content.activeCellIndex = at;
      await panel.content.scrollToItem(at).catch(() => undefined);
      return focusCard(panel.content.widgets[at]!.node, id);
    }
    if (isHere(document.body)) return focusCard(document.body, id);
    await this.showAlone(waiting);
  }

  /** Escape and a click beside it leave the question open. */
  private async showAlone({ event, panel, kernel }: Waiting): Promise<void> {
    const source: Source = kernel.bindPanel({ name: hostName(this.app) });
    const close = (): void => void (dialog.isDisposed || dialog.reject());
    const card = approvalCard(event, source, close, close);
    const dialog = new Dialog<unknown>({
      title: panel.isDisposed ? "Consent" : visible(panel.context.path.split("/").pop() ?? ""),
      body: new Widget({ node: h("div.reyn-approval", {}, card.element) }),
      buttons: [Dialog.cancelButton({ label: "Decide later" })],
    });
    void dialog.ready.then(() => card.focus());
    await dialog.launch().catch(() => undefined);
    card.dispose();
    dialog.dispose();
  }
}

const greet = (kernel: KernelSource): void => kernel.greet();

const selectorOf = (id: string): string => `[data-question="${CSS.escape(id)}"]`;

function focusCard(within: Element, id: string): void {
  const card = within.querySelector<HTMLElement>(selectorOf(id));
  card?.scrollIntoView({ block: "nearest" });
  card?.querySelector<HTMLElement>(".r-safe")?.focus({ preventScroll: true });
}

function short(text: string): string {
  const shown = visible(text);
  return shown.length > MOST_NAMED ? `${shown.slice(0, MOST_NAMED - 1)}…` : shown;
}

export const approvals: JupyterFrontEndPlugin<void> = {
  id: "reyn-jupyter:approvals",
  description: "Shows when a run waits for consent, and leads to the question.",
  autoStart: true,
  requires: [IKernels],
  optional: [INotebookTracker, ISettingRegistry],
  activate(
    app: JupyterFrontEnd,
    kernels: Kernels,
    _tracker: INotebookTracker | null,
    settings: ISettingRegistry | null,
  ): void {
    const questions = new Questions(app);
    kernels.kernelOpened.connect((_kernels, opened) => questions.subscribe(opened));
    followSettings(settings, (now) => {
      questions.isEnabled = kernels.approves = now.approvals === "card";
    });
  },
};
