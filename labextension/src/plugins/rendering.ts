// Registers the renderers: for the whole application, and for each notebook bound to its kernel.
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { INotebookTracker, type NotebookPanel } from "@jupyterlab/notebook";
import { IRenderMimeRegistry } from "@jupyterlab/rendermime";
import { hostFor, hostName } from "./host";
import { IKernels, Kernels } from "./kernels";
import { type KernelFinder, factory, rebind } from "./renderer";

declare const VERSION: string; // put in when the extension is built

export const rendering: JupyterFrontEndPlugin<Kernels> = {
  id: "reyn-jupyter:plugin",
  description: "Draws the displays of reyn-jupyter, live over the notebook's kernel.",
  autoStart: true,
  provides: IKernels,
  requires: [IRenderMimeRegistry],
  optional: [INotebookTracker],
  activate(app: JupyterFrontEnd, registry: IRenderMimeRegistry, tracker: INotebookTracker | null): Kernels {
    const kernels = new Kernels(tracker, hostName(app), VERSION);
    const kernelFinder = (find: (node: Node) => NotebookPanel | null): KernelFinder => ({
      kernelFor(node) {
        const panel = find(node);
        if (!panel || panel.isDisposed) return null;
        const kernel = kernels.of(panel);
        return { kernel, host: (at) => hostFor(app, panel, kernel, at) };
      },
    });
    registry.addFactory(factory(kernelFinder((node) => kernels.holding(node))));
    const addNotebook = (panel: NotebookPanel): void => {
      panel.content.rendermime.addFactory(factory(kernelFinder(() => panel)));
      kernels.of(panel); // it notices when the extension is loaded
      rebind(panel);
    };
    tracker?.forEach(addNotebook);
    tracker?.widgetAdded.connect((_tracker, panel) => addNotebook(panel));
    leaveShortcuts();
    return kernels;
  },
};

/** In a view, keys without Ctrl, Cmd or Alt are the view's own: "d d" typed in a table must not delete its cell. */
function leaveShortcuts(): void {
  const decide = (event: KeyboardEvent): void => {
    const target = event.target instanceof Element ? event.target : null;
    const view = target?.closest(".reyn-output");
    if (!view) return;
    const own = !(event.ctrlKey || event.metaKey || event.altKey);
    // The application looks for the attribute from the target upward, and hears of the key after the window has.
    for (let at = target; at && at !== view.parentElement; at = at.parentElement) {
      at.toggleAttribute("data-lm-suppress-shortcuts", own && at === target);
    }
  };
  window.addEventListener("keydown", decide, true);
}
