// JupyterLab hides all of its page for a frame when the theme changes, and the browser then takes the focus from
// whatever had it: what a person types next is lost.
//
// Invariant: what had the focus in one of our views has it again once the page is back, unless the person is elsewhere.
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { IThemeManager } from "@jupyterlab/apputils";

/** Give the focus back to an element once the page is in sight again. */
function restoreFocus(element: HTMLElement, shell: JupyterFrontEnd["shell"]): void {
  if (!shell.isVisible) requestAnimationFrame(() => restoreFocus(element, shell));
  else if (document.activeElement === document.body) element.focus({ preventScroll: true });
}

export const themeFocus: JupyterFrontEndPlugin<void> = {
  id: "reyn-jupyter:theme-focus",
  description: "Keeps the focus in a view while the theme changes.",
  autoStart: true,
  optional: [IThemeManager],
  activate(app: JupyterFrontEnd, themes: IThemeManager | null): void {
    // The signal comes right before the page is hidden; it is shown in the next frame, and drawn in the one after.
    themes?.themeChanged.connect(() => {
      const focused = document.activeElement;
      if (focused instanceof HTMLElement && focused.closest(".reyn-view"))
        requestAnimationFrame(() => requestAnimationFrame(() => restoreFocus(focused, app.shell)));
    });
  },
};
