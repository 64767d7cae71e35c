// What every widget carries: the anywidget front end that draws a snapshot, and goes on from it with the kernel's help.
import type { AnyModel } from "@anywidget/types";
import { lazy } from "../sources/lazy";
import type { Snapshot } from "../sources/source";
import { WidgetSource } from "../sources/widget";
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

export default {
  render({ model, el }: { model: AnyModel<Traits>; el: HTMLElement }): () => void {
    const source = new WidgetSource(model as unknown as AnyModel, model.get("snapshot")?.session);
    const mounted = mount(el, model.get("snapshot"), source, KINDS);
    const changed = (): void => mounted.update(model.get("snapshot"));
    model.on("change:snapshot", changed);
    return () => {
      model.off("change:snapshot", changed);
      mounted.dispose();
      source.dispose();
    };
  },
};
