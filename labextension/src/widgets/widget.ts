// What every widget carries: the anywidget front end that draws a snapshot, and goes on from it with the kernel's help.
import type { AnyModel } from "@anywidget/types";
import { lazy } from "../sources/lazy";
import type { Snapshot, Source } from "../sources/source";
import { WidgetSource } from "../sources/widget";
import { h } from "../views/h";
import { type Kinds, mount } from "../views/mount";

interface Traits extends Record<string, unknown> {
  snapshot: Snapshot;
}

const KINDS: Kinds = {
  catalog: lazy("explorer", "catalog"),
  blob: lazy("blob", "blob"),
  trace: lazy("trace", "trace"),
  diff: lazy("trace", "diff"),
};

const questions = lazy<null>("trace", "questions");

/** Shows a question about consent above a view that cannot do so itself, such as the call of an explorer. */
function asks(element: HTMLElement, source: Source): () => void {
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
    const mounted = mount(el, model.get("snapshot"), source, KINDS);
    const unasked = model.get("snapshot")?.live?.type === "trace" ? null : asks(el, source);
    const changed = (): void => mounted.update(model.get("snapshot"));
    model.on("change:snapshot", changed);
    return () => {
      model.off("change:snapshot", changed);
      unasked?.();
      mounted.dispose();
      source.dispose();
    };
  },
};
