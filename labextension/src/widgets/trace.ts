// The viewer of a run and of two runs, and the questions of a run about consent, as a page asks for them.
import { kernelView } from "../sources/kernel-modules";
import type { Source } from "../sources/source";
import { approvals } from "../views/approval";
import { diffViewer } from "../views/trace/diff-viewer";
import { traceViewer } from "../views/trace/trace-viewer";

const questions = (element: HTMLElement, _model: unknown, source: Source): (() => void) =>
  approvals(element, source);

export default { trace: traceViewer(kernelView("blob", "blob")), diff: diffViewer, questions };
