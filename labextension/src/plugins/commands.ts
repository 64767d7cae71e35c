// The commands of the palette. Those that concern code put it into a new cell and run nothing.
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { ICommandPalette } from "@jupyterlab/apputils";
import { INotebookTracker } from "@jupyterlab/notebook";
import { insertCell } from "./host";
import { ICON } from "./icon";
import { IKernels } from "./kernels";

export const CATALOG_PANEL = "reyn-jupyter-catalog";

const CELLS = {
  "reyn:load-extension": ["Load the Extension (New Cell)", "%load_ext reyn_jupyter"],
  "reyn:ask": ["Ask the Agent (New Cell)", "%%reyn\n"],
  "reyn:last-run": ["Show the Last Run (New Cell)", "%reyn trace"],
} as const;

export const commands: JupyterFrontEndPlugin<void> = {
  id: "reyn-jupyter:commands",
  description: "Commands for the palette.",
  autoStart: true,
  requires: [IKernels],
  optional: [INotebookTracker, ICommandPalette],
  activate(
    app: JupyterFrontEnd,
    _kernels: unknown,
    tracker: INotebookTracker | null,
    palette: ICommandPalette | null,
  ): void {
    if (!tracker) return;
    const isEnabled = (): boolean => tracker.currentWidget !== null;
    app.commands.addCommand("reyn:explore", {
      label: "Explore the Catalog of Actions",
      icon: ICON,
      execute: () => app.shell.activateById(CATALOG_PANEL),
    });
    for (const [id, [label, code]] of Object.entries(CELLS)) {
      app.commands.addCommand(id, {
        label,
        caption: `Puts ${code.trim()} into a new cell below, unexecuted`,
        isEnabled,
        execute: () => {
          if (tracker.currentWidget) insertCell(tracker.currentWidget, code);
        },
      });
    }
    for (const command of ["reyn:explore", ...Object.keys(CELLS)])
      palette?.addItem({ command, category: "Reyn" });
  },
};
