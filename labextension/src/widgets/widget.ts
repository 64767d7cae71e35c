// What every widget carries: the anywidget front end that draws a snapshot, and goes on from it with the kernel's help.
import type { AnyModel } from "@anywidget/types";
import type { Snapshot } from "../protocol";
import { kernelView } from "../sources/kernel-modules";
import type { Source } from "../sources/source";
import { WidgetSource } from "../sources/widget";
import { type LiveViews, createDisplay } from "../views/display";
import { h } from "../views/dom/h";

interface Traits extends Record<string, unknown> {
  snapshot: Snapshot;
}

const LIVE_VIEWS: LiveViews = {
  catalog: kernelView("explorer", "catalog"),
  blob: kernelView("blob", "blob"),
  frame: kernelView("grid", "frame"),
  trace: kernelView("trace", "trace"),
  diff: kernelView("trace", "diff"),
};

const questions = kernelView<null>("trace", "questions");

/** Shows a question about consent above a view that cannot do so itself, such as the call of an explorer. */
function showApprovals(element: HTMLElement, source: Source): () => void {
  const place = h("div");
  let end: (() => void) | null = null;
  const unheard = source.subscribe((event) => {
    if (event.name !== "approval" || end) return;
    element.prepend(place);
    end = questions(place, null, source);
  });
  return () => {
    unheard();
    end?.();
    place.remove();
  };
}

export default {
  render({ model, el }: { model: AnyModel<Traits>; el: HTMLElement }): () => void {
    const source = new WidgetSource(model as unknown as AnyModel, model.get("snapshot")?.session);
    const display = createDisplay(el, model.get("snapshot"), source, LIVE_VIEWS);
    const closeApprovals = model.get("snapshot")?.live?.type === "trace" ? null : showApprovals(el, source);
    const changed = (): void => display.update(model.get("snapshot"));
    model.on("change:snapshot", changed);
    return () => {
      model.off("change:snapshot", changed);
      closeApprovals?.();
      display.dispose();
      source.dispose();
    };
  },
};
