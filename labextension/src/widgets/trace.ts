// The viewer of a run and of two runs, as a page asks for it.
import { diffViewer } from "../views/diff";
import { traceViewer } from "../views/trace";

export default { trace: traceViewer, diff: diffViewer };
