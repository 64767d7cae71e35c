// The commands of the palette. Those that concern code put it into a new cell and run nothing.
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { ICommandPalette } from "@jupyterlab/apputils";
import { INotebookTracker } from "@jupyterlab/notebook";
import { HOME_PANEL, HomePanel } from "./home";
import { insertCell } from "./host";
import { ICON } from "./icon";
import { IKernels } from "./kernels";

const PANEL = {
  "reyn:home": ["Reyn: Ask in the Side Panel", "question"],
  "reyn:explore": ["Reyn: Search Actions in the Side Panel", "search"],
} as const;

const CELLS = {
  "reyn:load-extension": ["Reyn: Load the Extension (New Cell)", "%load_ext reyn_jupyter"],
  "reyn:ask": ["Reyn: Ask the Agent (New Cell)", "%%reyn\n"],
  "reyn:last-run": ["Reyn: Show the Last Run (New Cell)", "%reyn trace"],
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
    for (const [id, [label, field]] of Object.entries(PANEL))
      app.commands.addCommand(id, {
        label,
        icon: ICON,
        execute: () => {
          app.shell.activateById(HOME_PANEL);
          for (const each of app.shell.widgets("left")) if (each instanceof HomePanel) each.focusOn(field);
        },
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
    for (const command of [...Object.keys(PANEL), ...Object.keys(CELLS)])
      palette?.addItem({ command, category: "Reyn" });
  },
};
