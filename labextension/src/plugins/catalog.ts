// The catalog panel in the left bar: the actions of the active notebook's kernel.
import { ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from "@jupyterlab/application";
import { INotebookTracker, type NotebookPanel } from "@jupyterlab/notebook";
import { ISettingRegistry } from "@jupyterlab/settingregistry";
import type { Message } from "@lumino/messaging";
import { Widget } from "@lumino/widgets";
import type { LiveCatalog, Snapshot } from "../protocol";
import type { KernelSource } from "../sources/kernel";
import { PROTOCOL } from "../sources/source";
import type { Host } from "../sources/source";
import { createDisplay, type Display } from "../views/display";
import { type Child, fill, h, visible } from "../views/dom/h";
import { CATALOG_PANEL } from "./commands";
import { hostFor } from "./host";
import { ICON } from "./icon";
import { IKernels, type Kernels } from "./kernels";
import { LIVE_VIEWS } from "./kinds";
import { followSettings } from "./settings";

export class CatalogPanel extends Widget {
  private heading = h("div.reyn-panel-notebook");
  private body = h("div.reyn-panel-body");
  private notebook: NotebookPanel | null | undefined;
  private detach: () => void = () => undefined;

  constructor(
    private app: JupyterFrontEnd,
    private kernels: Kernels,
    private tracker: INotebookTracker,
  ) {
    super();
    this.id = CATALOG_PANEL;
    this.addClass("reyn-panel");
    this.title.icon = ICON;
    this.title.caption = "Reyn: catalog of actions";
    this.node.setAttribute("role", "region");
    this.node.setAttribute("aria-label", "Catalog of actions");
    this.node.append(this.heading, this.body);
    tracker.currentChanged.connect(this.follow, this);
  }

  override dispose(): void {
    if (this.isDisposed) return;
    this.tracker.currentChanged.disconnect(this.follow, this);
    this.detach();
    super.dispose();
  }

  /** Nothing is asked of a kernel before somebody looks. */
  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.follow();
  }

  private follow(): void {
    const panel = this.tracker.currentWidget;
    if (!this.isVisible || panel === this.notebook) return;
    this.detach();
    this.detach = () => undefined;
    this.notebook = panel;
    fill(this.heading);
    if (panel) this.showActions(panel);
    else fill(this.body, help("Open a notebook to see the actions of its kernel."));
  }

  private showActions(panel: NotebookPanel): void {
    const showName = (): void => {
      const path = panel.context.path;
      fill(this.heading, h("span", { title: path }, path.split("/").pop() ?? path));
    };
    showName();
    panel.context.pathChanged.connect(showName);
    const kernel = this.kernels.of(panel);
    const host = hostFor(this.app, panel, kernel, this.node);
    let display: Display | null = null;
    const update = (): void => {
      if (display) return; // it says itself what becomes of the kernel
      fill(this.body);
      if (kernel.state === "live")
        display = createDisplay(this.body, SNAPSHOT, kernel.bindPanel(host), LIVE_VIEWS);
      else fill(this.body, explainState(kernel, host));
    };
    const unwatch = kernel.watch(update);
    this.detach = () => {
      unwatch();
      display?.dispose();
      if (!panel.isDisposed) panel.context.pathChanged.disconnect(showName);
    };
    kernel.keepConnected();
    update();
  }
}

const help = (...children: Child[]): HTMLElement => h("p.reyn-panel-help", { role: "status" }, ...children);

/** Why there is no catalog yet, and what to do. */
function explainState(kernel: KernelSource, host: Host): HTMLElement[] {
  switch (kernel.state) {
    case "missing": {
      const button = h("button.reyn-panel-button", {
        type: "button",
        onclick: () => host.insertCell?.(LOAD),
      });
      button.textContent = "Insert %load_ext";
      return [
        help(
          visible(kernel.reason),
          " Load it with ",
          h("code", {}, LOAD),
          ", then its actions are listed here.",
        ),
        button,
      ];
    }
    case "busy":
      return [help("The kernel is busy; its actions are listed once it answers.")];
    case "connecting":
      return [help("Asking the kernel …")];
    default:
      return [help(visible(kernel.reason), " Start a kernel to see its actions.")];
  }
}

const LOAD = "%load_ext reyn_jupyter";
const LIVE: LiveCatalog = { type: "catalog", query: "" };
const VIEW = { kind: "catalog", title: "Catalog of actions", badges: [], facts: [], blocks: [], knob: "" };
const SNAPSHOT: Snapshot = { protocol: PROTOCOL, session: "", view: VIEW, live: LIVE, lost: null };

export const catalog: JupyterFrontEndPlugin<void> = {
  id: "reyn-jupyter:catalog",
  description: "The catalog panel in the left bar.",
  autoStart: true,
  requires: [IKernels],
  optional: [INotebookTracker, ISettingRegistry, ILayoutRestorer],
  activate(
    app: JupyterFrontEnd,
    kernels: Kernels,
    tracker: INotebookTracker | null,
    settings: ISettingRegistry | null,
    restorer: ILayoutRestorer | null,
  ): void {
    if (!tracker) return;
    let panel: CatalogPanel | null = null;
    followSettings(settings, ({ catalogPanel }) => {
      if (catalogPanel && !panel) {
        panel = new CatalogPanel(app, kernels, tracker);
        app.shell.add(panel, "left", { rank: 850 });
        restorer?.add(panel, panel.id);
      } else if (!catalogPanel) {
        panel?.dispose();
        panel = null;
      }
    });
  },
};
