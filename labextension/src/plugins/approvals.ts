// Asks for consent in a dialog when a background run, or a call from a panel, waits for it.
//
// Invariants: one question is on the screen at a time, in the order asked; the button that has the focus denies, and
// what was typed for something else presses none; a question that was settled elsewhere goes away unanswered.
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { Dialog } from "@jupyterlab/apputils";
import { INotebookTracker, type NotebookPanel } from "@jupyterlab/notebook";
import { ISettingRegistry } from "@jupyterlab/settingregistry";
import { Widget } from "@lumino/widgets";
import type { AnswerChoice, ApprovalAsked } from "../protocol";
import type { KernelSource } from "../sources/kernel";
import { approvalBody, MISPRESS, safeChoice } from "../views/approval";
import { h, visible } from "../views/dom/h";
import { IKernels, type Kernels, type NotebookKernel } from "./kernels";
import { followSettings } from "./settings";

const MOST_LABEL = 60; // characters of a button

interface Question {
  event: ApprovalAsked;
  panel: NotebookPanel;
  kernel: KernelSource;
}

class Questions {
  private queue: Question[] = [];
  private current: { id: string; dialog: Dialog<unknown> } | null = null;
  private settledIds = new Set<string>();
  isEnabled = true;

  subscribe({ panel, kernel }: NotebookKernel): void {
    kernel.subscribe((event) => {
      if (event.name === "approval" && this.isEnabled) this.ask({ event, panel, kernel });
      else if (event.name === "settled") this.settle(event.id);
    });
    kernel.watch((state) => {
      if (state !== "gone" && state !== "missing") return;
      // Nobody is left who would hear an answer.
      const lost = this.queue.filter((each) => each.kernel === kernel);
      for (const each of lost) this.settle(each.event.id);
    });
  }

  private ask(waiting: Question): void {
    if (this.queue.some((each) => each.event.id === waiting.event.id)) return;
    this.queue.push(waiting);
    if (this.queue.length === 1) void this.showQueue();
  }

  private settle(id: string): void {
    this.settledIds.add(id);
    if (this.current?.id === id) this.current.dialog.reject();
    else this.queue = this.queue.filter((each, index) => index === 0 || each.event.id !== id);
  }

  private async showQueue(): Promise<void> {
    for (let first = this.queue[0]; first; first = this.queue[0]) {
      const { id } = first.event;
      const answer = this.settledIds.has(id) ? null : await this.show(first);
      if (answer && !this.settledIds.has(id)) await this.answer(first, answer);
      this.settledIds.delete(id);
      this.queue.shift();
    }
  }

  private async show({ event, panel, kernel }: Question): Promise<AnswerChoice | null> {
    let choices = [...event.choices].reverse(); // where JupyterLab has them: the one to cancel with first
    const where = panel.isDisposed ? "" : ` · ${panel.context.path.split("/").pop()}`;
    const body = approvalBody(event, kernel, (now) => {
      choices = [...now].reverse();
      hideUnoffered(dialog, choices);
      ignorePresses(MISPRESS);
    });
    const buttons = choices.map(createButton);
    const dialog = new Dialog<unknown>({
      title: label(event.heading) + where,
      body: new Widget({ node: h("div.reyn-view.reyn-approval", {}, h("div.r-body", {}, body)) }),
      buttons,
      defaultButton: choices.findIndex((each) => !each.allows),
      hasClose: false, // a click beside it is no answer
    });
    hideUnoffered(dialog, choices);
    this.current = { id: event.id, dialog };
    void dialog.ready.then(() => ignorePresses(MISPRESS));
    try {
      const { button } = await dialog.launch();
      const pressed = buttons.findIndex((each) => each.label === button.label);
      return choices[pressed] ?? safeChoice(choices);
    } catch {
      return null; // the application closed the dialog
    } finally {
      this.current = null;
      dialog.dispose();
    }
  }

  private async answer({ event, kernel }: Question, { answer, secret }: AnswerChoice): Promise<void> {
    try {
      if (secret !== null) await kernel.request("approval.answer", { id: event.id, answer, secret });
    } catch (error) {
      // The run has ended or the kernel is gone, and with it the question.
      console.info("reyn-jupyter: an answer came too late:", error instanceof Error ? error.message : error);
    }
  }
}

function createButton(choice: AnswerChoice, at: number, all: AnswerChoice[]): Dialog.IButton {
  const options = { label: label(choice.label), caption: visible(choice.hint) };
  if (!choice.allows) return Dialog.cancelButton(options);
  return at === all.length - 1 ? Dialog.okButton(options) : Dialog.createButton(options);
}

/** Shows the buttons of those answers alone that may be given by now. */
function hideUnoffered(dialog: Dialog<unknown>, choices: readonly AnswerChoice[]): void {
  const buttons = dialog.node.querySelectorAll<HTMLElement>(".jp-Dialog-footer .jp-Dialog-button");
  buttons.forEach((each, at) => (each.style.display = choices[at]?.secret === null ? "none" : ""));
}

function label(text: string): string {
  const shown = visible(text);
  return shown.length > MOST_LABEL ? `${shown.slice(0, MOST_LABEL - 1)}…` : shown;
}

/** For a while, keys and clicks do nothing. */
function ignorePresses(milliseconds: number): void {
  const stop = (event: Event): void => {
    event.stopImmediatePropagation();
    event.preventDefault();
  };
  for (const name of ["keydown", "click"]) {
    window.addEventListener(name, stop, true);
    setTimeout(() => window.removeEventListener(name, stop, true), milliseconds);
  }
}

export const approvals: JupyterFrontEndPlugin<void> = {
  id: "reyn-jupyter:approvals",
  description: "Asks for consent when a background run waits for it.",
  autoStart: true,
  requires: [IKernels],
  optional: [INotebookTracker, ISettingRegistry],
  activate(
    _app: JupyterFrontEnd,
    kernels: Kernels,
    _tracker: INotebookTracker | null,
    settings: ISettingRegistry | null,
  ): void {
    const questions = new Questions();
    kernels.kernelOpened.connect((_kernels, opened) => questions.subscribe(opened));
    followSettings(settings, (now) => {
      questions.isEnabled = kernels.approves = now.approvals === "dialog";
    });
  },
};
