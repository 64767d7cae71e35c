// Gives a kernel a bounded copy of its notebook's cells, and puts proposed cells into it.
//
// Invariants: the copy goes out before the request to run a cell, since a kernel that runs one reads nothing; a kernel
// without the extension is sent nothing. A proposed cell is inserted and never run; it is taken out again only while it
// holds what was proposed and was not run.
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { NotebookActions, type NotebookPanel } from "@jupyterlab/notebook";
import type { CellProposed, CellWithdrawn, SentCell, SentCells, SentOutput } from "../protocol";
import type { KernelSource } from "../sources/kernel";
import { IKernels, type Kernels, type NotebookKernel } from "./kernels";

// What the kernel takes: `runtime/access/live_notebook.py` holds the same numbers.
const MOST_CELLS = 2_000;
const MOST_SOURCE = 20_000;
const MOST_OUTPUT = 4_000;
const MOST_OUTPUTS = 20;
const MOST_TYPES = 10;
/** Characters of a whole copy; cells beyond them keep their beginning alone. */
const MOST_TOTAL = 200_000;
const BEGINNING = 200;
const REST_AFTER = 1_000; // ms without a change

const KINDS: Record<string, SentOutput["kind"]> = {
  stream: "stream",
  execute_result: "result",
  error: "error",
};

/** The part of an output that is read here, as nbformat has it. */
interface Output {
  output_type?: unknown;
  text?: unknown;
  ename?: unknown;
  evalue?: unknown;
  traceback?: unknown;
  data?: Record<string, unknown>;
}

/** The part of a cell's model that is read here. */
interface CellModel {
  id: string;
  type: string;
  sharedModel: { getSource(): string; execution_count?: number | null };
  outputs?: { length: number; get(index: number): { toJSON(): unknown } };
}

export const notebookCells: JupyterFrontEndPlugin<void> = {
  id: "reyn-jupyter:notebook-cells",
  description: "Gives kernels a copy of their notebook's cells, and inserts cells that an agent proposes.",
  autoStart: true,
  requires: [IKernels],
  activate(_app: JupyterFrontEnd, kernels: Kernels): void {
    const keep = (_kernels: Kernels, opened: NotebookKernel): NotebookCopies => new NotebookCopies(opened);
    kernels.kernelOpened.connect(keep);
    kernels.panelReplaced.connect(keep);
  },
};

/** Keeps one kernel's copy of its notebook, and does what it proposes. */
class NotebookCopies {
  private panel: NotebookPanel;
  private kernel: KernelSource;
  private last = ""; // the copy that the kernel has
  private sentTo: unknown = null; // who has it
  private isStale = true;
  private isDue = false; // the notebook has rested, and the kernel has not
  private timer = 0;

  constructor({ panel, kernel }: NotebookKernel) {
    this.panel = panel;
    this.kernel = kernel;
    const { content, sessionContext } = panel;
    const changed = (): void => {
      this.isStale = true;
      this.sendAtRest();
    };
    const follow = (): void => {
      content.model?.contentChanged.connect(changed);
      changed();
    };
    content.modelChanged.connect(follow);
    follow();
    sessionContext.statusChanged.connect((_context, status) => {
      if (status === "idle" && this.isDue) this.send();
    });
    kernel.watch((state) => {
      if (state === "live") this.sendAtRest();
    });
    const scheduled = (_: unknown, { notebook }: { notebook: unknown }): void => {
      if (notebook === content) this.send();
    };
    NotebookActions.executionScheduled.connect(scheduled);
    kernel.subscribe((event) => {
      if (panel.isDisposed) return;
      if (event.name === "proposal") insertProposal(panel, event);
      else if (event.name === "withdrawal") withdrawProposal(panel, event);
    });
    panel.disposed.connect(() => {
      clearTimeout(this.timer);
      NotebookActions.executionScheduled.disconnect(scheduled);
    });
  }

  /** Send a copy once nothing has changed for a while and the kernel would read it at once. */
  private sendAtRest(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      if (this.panel.sessionContext.session?.kernel?.status === "idle") this.send();
      else this.isDue = true;
    }, REST_AFTER);
  }

  private send(): void {
    const { panel, kernel } = this;
    this.isDue = false;
    if (panel.isDisposed || !kernel.welcome) return;
    if (!this.isStale && kernel.welcome === this.sentTo) return;
    const copy = copyOf(panel);
    const written = JSON.stringify(copy);
    if ((written !== this.last || kernel.welcome !== this.sentTo) && !kernel.sendCells(copy)) return;
    this.last = written;
    this.sentTo = kernel.welcome;
    this.isStale = false;
  }
}

function copyOf(panel: NotebookPanel): SentCells {
  const cells = panel.content.model?.cells;
  const total = cells?.length ?? 0;
  const sent: SentCell[] = [];
  let room = MOST_TOTAL;
  for (let index = 0; index < Math.min(total, MOST_CELLS); index += 1) {
    const cell = copyCell(cells!.get(index) as unknown as CellModel, room);
    room -= cell.source.length + cell.outputs.reduce((sum, output) => sum + output.text.length, 0);
    sent.push(cell);
  }
  return { type: "cells", cells: sent, more: Math.max(0, total - MOST_CELLS) };
}

function copyCell(cell: CellModel, room: number): SentCell {
  const source = cell.sharedModel.getSource();
  const kept = cut(source, Math.min(MOST_SOURCE, Math.max(BEGINNING, room)));
  const number = cell.type === "code" ? cell.sharedModel.execution_count : null;
  const length = cell.outputs?.length ?? 0;
  const outputs: SentOutput[] = [];
  let left = room - kept.length;
  for (let index = 0; index < Math.min(length, MOST_OUTPUTS); index += 1) {
    const output = copyOutput(cell.outputs!.get(index).toJSON() as Output, left);
    left -= output.text.length;
    outputs.push(output);
  }
  return {
    id: cell.id.slice(0, 64),
    kind: cell.type === "code" || cell.type === "markdown" ? cell.type : "raw",
    source: kept,
    count: typeof number === "number" ? number : null,
    outputs,
    cut: source.length - kept.length,
    more: Math.max(0, length - MOST_OUTPUTS),
  };
}

function copyOutput(output: Output, room: number): SentOutput {
  const data = output.data ?? {};
  const text =
    output.output_type === "stream"
      ? joined(output.text)
      : output.output_type === "error"
        ? [`${joined(output.ename)}: ${joined(output.evalue)}`, ...lines(output.traceback)].join("\n")
        : joined(data["text/plain"]);
  const kept = cut(text, Math.min(MOST_OUTPUT, Math.max(BEGINNING, room)));
  const types = Object.keys(data).filter((type) => type !== "text/plain");
  return {
    kind: KINDS[String(output.output_type)] ?? "display",
    text: kept,
    types: types.slice(0, MOST_TYPES).map((type) => type.slice(0, 100)),
    cut: text.length - kept.length,
  };
}

/** Texts of a file's format may stand in several pieces. */
const joined = (text: unknown): string =>
  Array.isArray(text) ? text.map(String).join("") : typeof text === "string" ? text : "";

const lines = (text: unknown): string[] => (Array.isArray(text) ? text.map(String) : []);

/** The beginning of a text. Half of a character is none: a kernel refuses a message that holds one. */
const cut = (text: string, most: number): string => {
  const kept = text.slice(0, most);
  return /[\ud800-\udfff]/.test(kept)
    ? kept.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd")
    : kept;
};

function insertProposal(panel: NotebookPanel, proposed: CellProposed): void {
  const notebook = panel.content;
  const model = notebook.model;
  if (!model || model.readOnly) return;
  const shared = model.sharedModel;
  const ids = shared.cells.map((cell) => cell.getId());
  if (ids.includes(proposed.cell)) return;
  const above = proposed.below.map((id) => ids.indexOf(id)).find((index) => index >= 0);
  shared.insertCell((above ?? notebook.activeCellIndex) + 1, {
    id: proposed.cell,
    cell_type: proposed.kind,
    source: proposed.source,
    metadata: { reyn: { proposed_by: proposed.run } },
  });
}

function withdrawProposal(panel: NotebookPanel, withdrawn: CellWithdrawn): void {
  const model = panel.content.model;
  if (!model || model.readOnly) return;
  const cells = model.cells;
  for (let index = 0; index < cells.length; index += 1) {
    const cell = cells.get(index) as unknown as CellModel;
    if (cell.id !== withdrawn.cell) continue;
    const wasRun = cell.type === "code" && typeof cell.sharedModel.execution_count === "number";
    if (!wasRun && cell.sharedModel.getSource() === withdrawn.source) model.sharedModel.deleteCell(index);
    return;
  }
}
