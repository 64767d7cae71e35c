// The live views that JupyterLab shows.
import { diffViewer } from "../views/diff";
import { explorer } from "../views/explorer";
import { grid } from "../views/grid";
import { inspector } from "../views/inspector";
import type { Kinds } from "../views/mount";
import { traceViewer } from "../views/trace";

export const KINDS: Kinds = {
  catalog: explorer(inspector(grid)),
  blob: inspector(grid),
  trace: traceViewer(inspector(grid)),
  diff: diffViewer,
};
