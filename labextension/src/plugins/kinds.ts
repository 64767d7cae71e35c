// The live views that JupyterLab shows.
import { inspector } from "../views/blob/inspector";
import { explorer } from "../views/catalog/explorer";
import type { LiveViews } from "../views/display";
import { dataGrid } from "../views/grid/data-grid";
import { frameView } from "../views/grid/frame-view";
import { diffViewer } from "../views/trace/diff-viewer";
import { traceViewer } from "../views/trace/trace-viewer";

export const LIVE_VIEWS: LiveViews = {
  catalog: explorer(inspector(dataGrid)),
  blob: inspector(dataGrid),
  frame: frameView(dataGrid),
  trace: traceViewer(inspector(dataGrid)),
  diff: diffViewer,
};
