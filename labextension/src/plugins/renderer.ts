// Draws a display in a notebook's output: its snapshot at once, and the live view over the notebook's kernel.
//
// Invariant: what a notebook holds is drawn whether or not there is a kernel, and whether or not the notebook is known
// by then; the kernel is bound as soon as it is.
import type { IRenderMime } from "@jupyterlab/rendermime-interfaces";
import type { NotebookPanel } from "@jupyterlab/notebook";
import type { Message } from "@lumino/messaging";
import { Widget } from "@lumino/widgets";
import type { Snapshot } from "../protocol";
import type { KernelSource } from "../sources/kernel";
import { type Host, RequestError, type Source } from "../sources/source";
import { createDisplay, type Display } from "../views/display";
import { LIVE_VIEWS } from "./kinds";
import "../views/blocks/chart";

export const MIME_TYPES = ["actions", "blob", "trace", "table", "status"].map(
  (kind) => `application/vnd.reyn.${kind}+json`,
);
const RANK = -20; // before the widget renderer, which shows an error once the kernel is gone

/** Finds the kernel for what is drawn at a node, and what the page can do there. */
export interface KernelFinder {
  kernelFor(node: Node): { kernel: KernelSource; host(node: Node): Host } | null;
}

/** The renderers on the page that have no kernel yet. */
const unboundRenderers = new Set<Renderer>();

export class Renderer extends Widget implements IRenderMime.IRenderer {
  private display: Display | null = null;
  private snapshot: Snapshot | null = null;

  constructor(
    private mimeType: string,
    private finder: KernelFinder,
  ) {
    super();
    this.addClass("reyn-output");
    unboundRenderers.add(this);
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const before = this.snapshot;
    const now = model.data[this.mimeType] as unknown as Snapshot;
    this.snapshot = now;
    // A run's card becomes live only when the run has ended.
    const same =
      before?.session === now?.session &&
      Boolean(before?.live) === Boolean(now?.live) &&
      Boolean(before?.lost) === Boolean(now?.lost);
    if (same && this.display) this.display.update(now);
    else this.draw(true);
    return Promise.resolve();
  }

  /** Go on with the notebook's kernel, where it is known by now. */
  bind(): void {
    if (this.snapshot && unboundRenderers.has(this)) this.draw();
  }

  override dispose(): void {
    if (this.isDisposed) return;
    unboundRenderers.delete(this);
    this.display?.dispose();
    this.display = null;
    super.dispose();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this.bind();
  }

  private draw(again = false): void {
    const found = this.finder.kernelFor(this.node);
    if (found) unboundRenderers.delete(this);
    else if (this.display && !again) return;
    this.display?.dispose();
    const source = found ? this.source(found.kernel, found.host(this.node)) : ALONE;
    this.display = createDisplay(this.node, this.snapshot as Snapshot, source, LIVE_VIEWS);
  }

  /** A display without a live part needs the notebook, but no kernel, unless its run still goes on there. */
  private source(kernel: KernelSource, host: Host): Source {
    if (!this.snapshot?.live && !this.snapshot?.lost) return { ...ALONE, host };
    kernel.connect();
    return kernel.bind(this.snapshot.session, host);
  }
}

/** For a display outside a notebook, and one that has no live part. */
const ALONE: Source = {
  host: { name: "page" },
  state: "gone",
  reason: "There is no kernel here.",
  request: () => Promise.reject(new RequestError("gone", "There is no kernel here.")),
  subscribe: () => () => undefined,
  watch: () => () => undefined,
};

export function factory(finder: KernelFinder): IRenderMime.IRendererFactory {
  return {
    safe: true,
    mimeTypes: MIME_TYPES,
    defaultRank: RANK,
    createRenderer: (options) => new Renderer(options.mimeType, finder),
  };
}

/** A notebook is known now: what was drawn before in it goes on with its kernel. */
export function rebind(panel: NotebookPanel): void {
  for (const renderer of [...unboundRenderers]) if (panel.node.contains(renderer.node)) renderer.bind();
}
