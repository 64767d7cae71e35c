// Says that a background run, or a call from a panel, waits for consent: in a notification, which blocks nothing and
// leads to the card where the question stands.
//
// Invariants: a notification decides nothing, and dismissing it leaves the question open; a question that was settled
// elsewhere takes its notification along.
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { Dialog, Notification } from "@jupyterlab/apputils";
import { INotebookTracker, type NotebookPanel } from "@jupyterlab/notebook";
import { ISettingRegistry } from "@jupyterlab/settingregistry";
import { Widget } from "@lumino/widgets";
import type { ApprovalAsked } from "../protocol";
import type { KernelSource } from "../sources/kernel";
import type { Source } from "../sources/source";
import { connectionCard } from "../views/approval";
import { h, visible } from "../views/dom/h";
import { isOfServers } from "../views/home/servers";
import { hostName } from "./host";
import { IKernels, type Kernels, type NotebookKernel } from "./kernels";
import { followSettings } from "./settings";
import { waitForPerson } from "./waiting";

const MOST_NAMED = 60; // characters of an action or a notebook in a notification

interface Waiting {
  event: ApprovalAsked;
  panel: NotebookPanel;
  kernel: KernelSource;
  notification: string;
  notWaiting: () => void;
}

class Questions {
  private open = new Map<string, Waiting>();
  isEnabled = true;

  constructor(private app: JupyterFrontEnd) {}

  subscribe({ panel, kernel }: NotebookKernel): void {
    kernel.subscribe((event) => {
      // The answer to a press in the side panel stands under it already.
      if (event.name === "approval" && this.isEnabled && !isOfServers(event))
        this.announce(event, panel, kernel);
      else if (event.name === "settled") this.settle(event.id);
    });
    kernel.watch((state) => {
      if (state !== "gone" && state !== "missing") return;
      // Nobody is left who would hear an answer.
      for (const [id, each] of this.open) if (each.kernel === kernel) this.settle(id);
    });
  }

  private announce(event: ApprovalAsked, panel: NotebookPanel, kernel: KernelSource): void {
    if (this.open.has(event.id)) return;
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
    this.open.set(event.id, { event, panel, kernel, notification, notWaiting });
  }

  private settle(id: string): void {
    const waiting = this.open.get(id);
    if (!waiting) return;
    this.open.delete(id);
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
    const card = connectionCard(event, source, close, close);
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
  description: "Says when a background run waits for consent, and leads to the question.",
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
