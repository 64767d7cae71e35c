// The plugins of the extension. Only the renderers are needed by the others; a host that lacks something has fewer.
import { approvals } from "./approvals";
import { commands } from "./commands";
import { homePanel } from "./home";
import { notebookCells } from "./notebook-cells";
import { rendering } from "./rendering";
import { themeFocus } from "./theme-focus";

export default [rendering, homePanel, approvals, commands, notebookCells, themeFocus];
