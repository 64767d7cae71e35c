// The side panel: the session of the active notebook's kernel.
//
// Invariant: what a person typed for a notebook, and the answer that is shown, stay with that notebook as long as it is
// open: through other notebooks, a kernel that is busy, restarts or goes, and a panel that is hidden.
import { ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from "@jupyterlab/application";
import { INotebookTracker, type NotebookPanel } from "@jupyterlab/notebook";
import { ISettingRegistry } from "@jupyterlab/settingregistry";
import type { Message } from "@lumino/messaging";
import { Widget } from "@lumino/widgets";
import type { KernelSource } from "../sources/kernel";
import type { Host } from "../sources/source";
import { inspector } from "../views/blob/inspector";
import { explorer } from "../views/catalog/explorer";
import { type Child, fill, h, visible } from "../views/dom/h";
import { dataGrid } from "../views/grid/data-grid";
import { home, type HomeState, homeState, type HomeView } from "../views/home/home";
import { traceViewer } from "../views/trace/trace-viewer";
import { hostFor } from "./host";
import { ICON } from "./icon";
import { IKernels, type Kernels } from "./kernels";
import { followSettings } from "./settings";

export const HOME_PANEL = "reyn-jupyter-catalog";

const createHome = home({
  trace: traceViewer(inspector(dataGrid)),
  catalog: explorer(inspector(dataGrid)),
});

export class HomePanel extends Widget {
  private heading = h("div.reyn-panel-notebook");
  private status = h("div.reyn-panel-status", { role: "status" });
  private body = h("div.reyn-panel-body");
  private notebook: NotebookPanel | null | undefined;
  private view: HomeView | null = null;
  private wantedFocus: "question" | "search" | null = null;
  private states = new WeakMap<NotebookPanel, HomeState>();
  private detach: () => void = () => undefined;

  constructor(
    private app: JupyterFrontEnd,
    private kernels: Kernels,
    private tracker: INotebookTracker,
  ) {
    super();
    this.id = HOME_PANEL;
    this.addClass("reyn-panel");
    this.title.icon = ICON;
    this.title.caption = "Reyn: ask, runs, results, actions";
    this.node.setAttribute("role", "region");
    this.node.setAttribute("aria-label", "Reyn");
    this.node.append(this.heading, this.status, this.body);
    tracker.currentChanged.connect(this.follow, this);
  }

  override dispose(): void {
    if (this.isDisposed) return;
    this.tracker.currentChanged.disconnect(this.follow, this);
    this.detach();
    super.dispose();
  }

  /** Puts the cursor into the question or the search, once they are there. */
  focusOn(field: "question" | "search"): void {
    this.wantedFocus = field;
    this.takeFocus();
  }

  /** Nothing is asked of a kernel before somebody looks. */
  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.follow();
  }

  private takeFocus(): void {
    if (!this.view || !this.wantedFocus) return;
    if (this.wantedFocus === "question") this.view.focusQuestion();
    else this.view.focusSearch();
    this.wantedFocus = null;
  }

  private follow(): void {
    const panel = this.tracker.currentWidget;
    if (!this.isVisible || panel === this.notebook) return;
    this.detach();
    this.detach = () => undefined;
    this.notebook = panel;
    fill(this.heading);
    fill(this.status);
    fill(this.body);
    if (panel) this.showSession(panel);
    else fill(this.status, ...this.explainNoNotebook());
  }

  private showSession(panel: NotebookPanel): void {
    const showName = (): void => {
      const path = panel.context.path;
      fill(this.heading, h("span", { title: path }, path.split("/").pop() ?? path));
    };
    showName();
    panel.context.pathChanged.connect(showName);
    const kernel = this.kernels.of(panel);
    const host = hostFor(this.app, panel, kernel, this.node);
    const state = this.states.get(panel) ?? homeState();
    this.states.set(panel, state);
    const update = (): void => {
      fill(this.status, ...this.explainState(panel, kernel, host));
      if (this.view || kernel.state !== "live") return; // it stays, whatever becomes of the kernel
      this.view = createHome(this.body, kernel.bindPanel(host), state);
      this.takeFocus();
    };
    const unwatch = kernel.watch(update);
    this.detach = () => {
      unwatch();
      this.view?.dispose();
      this.view = null;
      if (!panel.isDisposed) panel.context.pathChanged.disconnect(showName);
    };
    kernel.connect();
    update();
  }

  private explainNoNotebook(): HTMLElement[] {
    return [
      help("Open a notebook to ask about its data, and to see its runs, results and actions."),
      ...this.commandButton("New notebook", "notebook:create-new"),
    ];
  }

  /** Why the session does not answer, and the one thing to do about it. */
  private explainState(panel: NotebookPanel, kernel: KernelSource, host: Host): HTMLElement[] {
    switch (kernel.state) {
      case "missing": {
        const insert = panelButton("Insert %load_ext", () => host.insertCell?.(LOAD));
        const code = h("code", {}, LOAD);
        return [
          help(visible(kernel.reason), " Run ", code, " in it, and the session is shown here."),
          insert,
        ];
      }
      case "busy":
        return [help("The kernel is busy; what is asked waits until it answers.")];
      case "connecting":
        return this.view ? [] : [help("Asking the kernel …")];
      case "gone": {
        const isThere = Boolean(panel.sessionContext.session?.kernel);
        const [label, command] = isThere
          ? (["Restart the kernel", "notebook:restart-kernel"] as const)
          : (["Choose a kernel", "notebook:change-kernel"] as const);
        // While it restarts there is nothing to press.
        const button = /restarting|shutting/.test(kernel.reason) ? [] : this.commandButton(label, command);
        return [help(visible(kernel.reason), " Its session is shown here once a kernel runs."), ...button];
      }
      default:
        return [];
    }
  }

  private commandButton(label: string, command: string): HTMLElement[] {
    const { commands } = this.app;
    return commands.hasCommand(command) ? [panelButton(label, () => void commands.execute(command))] : [];
  }
}

const help = (...children: Child[]): HTMLElement => h("p.reyn-panel-help", {}, ...children);

const panelButton = (label: string, onclick: () => void): HTMLElement =>
  h("button.reyn-panel-button", { type: "button", onclick }, label);

const LOAD = "%load_ext reyn_jupyter";

export const homePanel: JupyterFrontEndPlugin<void> = {
  id: "reyn-jupyter:catalog",
  description: "The side panel: ask, runs, results and actions of the active notebook.",
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
    let panel: HomePanel | null = null;
    followSettings(settings, ({ catalogPanel }) => {
      if (catalogPanel && !panel) {
        panel = new HomePanel(app, kernels, tracker);
        app.shell.add(panel, "left", { rank: 850 });
        restorer?.add(panel, panel.id);
      } else if (!catalogPanel) {
        panel?.dispose();
        panel = null;
      }
    });
  },
};
