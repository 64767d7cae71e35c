// The kernels of the notebooks that are open: one source each, shared by everything that looks at that notebook.
import type { ISessionContext } from "@jupyterlab/apputils";
import type { INotebookTracker, NotebookPanel } from "@jupyterlab/notebook";
import { Token } from "@lumino/coreutils";
import { type ISignal, Signal } from "@lumino/signaling";
import { type Greeting, KernelSource } from "../sources/kernel";

/** A notebook and its kernel. */
export interface NotebookKernel {
  panel: NotebookPanel;
  kernel: KernelSource;
}

export class Kernels {
  /** A notebook's kernel is looked at for the first time. */
  readonly kernelOpened: ISignal<this, NotebookKernel>;
  /** The view of a notebook that stood for it has closed, and another one of the same notebook is open. */
  readonly panelReplaced: ISignal<this, NotebookKernel>;
  /** Whether questions about consent are shown here; kernels are told. */
  private showsApprovals = true;
  private sources = new Map<ISessionContext, KernelSource>();
  private _kernelOpened = new Signal<this, NotebookKernel>(this);
  private _panelReplaced = new Signal<this, NotebookKernel>(this);

  constructor(
    private tracker: INotebookTracker | null,
    private host: string,
    private version: string,
  ) {
    this.kernelOpened = this._kernelOpened;
    this.panelReplaced = this._panelReplaced;
    // A kernel that is not told goes on to ask for consent where nobody is left to see it.
    window.addEventListener("pagehide", (event) => {
      if (!event.persisted) for (const kernel of this.sources.values()) kernel.dispose();
    });
  }

  /** The source for a notebook. Two views of one notebook share its kernel, and so this. */
  of(panel: NotebookPanel): KernelSource {
    const context = panel.sessionContext;
    const found = this.sources.get(context);
    if (found) return found;
    const kernel = new KernelSource(context, () => this.greeting());
    this.sources.set(context, kernel);
    context.disposed.connect(() => this.sources.delete(context));
    this.hangUpWith(panel);
    this._kernelOpened.emit({ panel, kernel });
    return kernel;
  }

  /** The notebook in whose page a node stands. */
  holding(node: Node): NotebookPanel | null {
    return this.tracker?.find((panel) => panel.node.contains(node)) ?? null;
  }

  set approves(showsApprovals: boolean) {
    if (showsApprovals === this.showsApprovals) return;
    this.showsApprovals = showsApprovals;
    for (const kernel of this.sources.values()) kernel.greet();
  }

  /** Hang up when the last view of a notebook closes: its content goes before the connection to the kernel does. */
  private hangUpWith(panel: NotebookPanel): void {
    const context = panel.sessionContext;
    panel.content.disposed.connect(() => {
      const other = this.tracker?.find((each) => each !== panel && each.sessionContext === context);
      const kernel = this.sources.get(context);
      if (!other) return kernel?.dispose();
      this.hangUpWith(other);
      if (kernel) this._panelReplaced.emit({ panel: other, kernel });
    });
  }

  private greeting(): Greeting {
    return { host: this.host, version: this.version, approves: this.showsApprovals };
  }
}

export const IKernels = new Token<Kernels>("reyn-jupyter:IKernels", "The kernels of open notebooks.");
