// The icon of the panel, tabs and commands; the class lets the theme colour it.
import { LabIcon } from "@jupyterlab/ui-components";

export const ICON = new LabIcon({
  name: "reyn-jupyter:catalog",
  svgstr:
    '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24"><g class="jp-icon3" fill="#616161">' +
    '<path d="M4 4h9v2.4H4zM4 9h7v2.4H4zM4 14h5v2.4H4zM4 19h4v2H4z"/>' +
    '<path d="M16.5 8.5l1.5 4 4 1.5-4 1.5-1.5 4-1.5-4-4-1.5 4-1.5z"/></g></svg>',
});
