// What JupyterLab does for a view in a notebook: a new cell below it, another object in a tab of its own.
import type { JupyterFrontEnd } from "@jupyterlab/application";
import { MainAreaWidget } from "@jupyterlab/apputils";
import type { NotebookPanel } from "@jupyterlab/notebook";
import { Widget } from "@lumino/widgets";
import type { KernelSource } from "../sources/kernel";
import type { Live } from "../sources/source";
import { PROTOCOL } from "../sources/source";
import type { Host } from "../sources/source";
import { createDisplay, type Display } from "../views/display";
import { visible } from "../views/dom/h";
import { ICON } from "./icon";
import { LIVE_VIEWS } from "./kinds";

/** "notebook" is Jupyter Notebook 7, which has one document a page and no tabs. */
export const hostName = (app: JupyterFrontEnd): "jupyterlab" | "notebook" =>
  app.name === "Jupyter Notebook" ? "notebook" : "jupyterlab";

/** @param node where the view is drawn, from which its cell is found */
export function hostFor(app: JupyterFrontEnd, panel: NotebookPanel, kernel: KernelSource, node: Node): Host {
  const host: Host = {
    name: hostName(app),
    insertCell: (code, output) => insertCell(panel, code, node, output),
  };
  if (host.name === "jupyterlab") host.open = (live, title) => openTab(app, panel, kernel, live, title);
  return host;
}

type NewCell = Parameters<NonNullable<NotebookPanel["model"]>["sharedModel"]["insertCell"]>[1];

/**
 * A new code cell with that text below the cell that holds `node`, else below the active one. It is not run.
 *
 * @param output a MIME bundle that the cell shows, as if it had run
 */
export function insertCell(panel: NotebookPanel, code: string, node?: Node, output?: object): void {
  const notebook = panel.content;
  const model = notebook.model;
  if (!model || model.readOnly || panel.isDisposed) return;
  const cells = notebook.widgets;
  const holding = node ? cells.findIndex((cell) => cell.node.contains(node)) : -1;
  const index = (holding < 0 ? notebook.activeCellIndex : holding) + 1;
  const outputs = output ? [{ output_type: "display_data", data: output, metadata: {} }] : [];
  model.sharedModel.insertCell(index, {
    cell_type: "code",
    source: code,
    metadata: { trusted: true },
    outputs,
  } as NewCell);
  notebook.activeCellIndex = index;
  notebook.deselectAll();
  void notebook.scrollToItem(index);
}

/** A live view of its own, over the same connection as the notebook it came from. */
class LiveTab extends Widget {
  private display: Display;

  constructor(app: JupyterFrontEnd, panel: NotebookPanel, kernel: KernelSource, live: Live, title: string) {
    super();
    this.addClass("reyn-tab");
    const view = { kind: live.type, title, badges: [], facts: [], blocks: [], knob: "" };
    const session = kernel.welcome?.session ?? "";
    const source = kernel.bind(session, hostFor(app, panel, kernel, this.node));
    const snapshot = { protocol: PROTOCOL, session, view, live, lost: null, question: null };
    this.display = createDisplay(this.node, snapshot, source, LIVE_VIEWS);
  }

  override dispose(): void {
    if (this.isDisposed) return;
    this.display.dispose();
    super.dispose();
  }
}

let tabs = 0;
const openTabs = new Map<string, MainAreaWidget>();

function openTab(
  app: JupyterFrontEnd,
  panel: NotebookPanel,
  kernel: KernelSource,
  live: Live,
  title: string,
): void {
  // What is open in a tab already is shown there.
  const key = JSON.stringify([panel.id, kernel.welcome?.session, { ...live, running: false }]);
  const found = openTabs.get(key);
  if (found) return app.shell.activateById(found.id);
  const tab = new MainAreaWidget({ content: new LiveTab(app, panel, kernel, live, title) });
  openTabs.set(key, tab);
  tab.disposed.connect(() => openTabs.delete(key));
  tab.id = `reyn-tab-${(tabs += 1)}`;
  tab.title.label = visible(title);
  tab.title.caption = visible(`${title} · ${panel.context.path}`);
  tab.title.icon = ICON;
  tab.title.closable = true;
  app.shell.add(tab, "main", { ref: panel.id, mode: "split-right" });
  app.shell.activateById(tab.id);
}
