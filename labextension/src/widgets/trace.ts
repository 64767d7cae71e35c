// The viewer of a run and of two runs, and the questions of a run about consent, as a page asks for them.
import type { Source } from "../sources/source";
import { approvals } from "../views/approval";
import { lazy } from "../sources/lazy";
import { diffViewer } from "../views/diff";
import { traceViewer } from "../views/trace";

const questions = (element: HTMLElement, _model: unknown, source: Source): (() => void) =>
  approvals(element, source);

export default { trace: traceViewer(lazy("blob", "blob")), diff: diffViewer, questions };
