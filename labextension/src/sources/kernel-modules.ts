// A live view whose code comes from the kernel when it is first needed.
//
// A widget's own code is copied into every display, so it draws snapshots and no more; what goes on from a snapshot needs
// the kernel anyway. Invariant: a page fetches each module once, and only as this package's own code over
// the widget's own channel, the way the widget itself came.
import type { ReadModule } from "../protocol";
import { fill, h } from "../views/dom/h";
import { errorSentence, type Source, type ViewFunction } from "./source";

declare const SOURCES: string; // the hash that build.mjs puts in
type Name = ReadModule["name"];
type Views = Record<string, ViewFunction<never>>;
interface KernelModule {
  views: Views;
  style: string;
}
// Every widget is a module instance of its own; what they share is the page's.
const page = globalThis as { reynJupyterViews?: Map<string, Promise<KernelModule>> };

/** @param kind the view among those that the module exports */
export function kernelView<M>(name: Name, kind: string): ViewFunction<M> {
  return (element, model, source, before, saved) => {
    let over = false;
    let end = (): void => fill(element);
    fill(element, before);
    load(name, source).then(
      ({ views, style }) => {
        if (over) return;
        addStyle(element, name, style);
        end = (views[kind] as ViewFunction<M>)(element, model, source, before, saved);
      },
      (error: unknown) => {
        if (!over) fill(element, before, h("p.reyn-view", { role: "alert" }, errorSentence(error)));
      },
    );
    return () => {
      over = true;
      end();
    };
  };
}

/** Kept under the sources that this widget was built from: a kernel with another version sends other widgets. */
function load(name: Name, source: Source): Promise<KernelModule> {
  const modules = (page.reynJupyterViews ??= new Map());
  const key = `${SOURCES} ${name}`;
  let found = modules.get(key);
  if (!found) {
    found = source.request("module.open", { name }).then(async ({ code, style }) => {
      const address = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
      try {
        return { views: ((await import(address)) as { default: Views }).default, style };
      } finally {
        URL.revokeObjectURL(address);
      }
    });
    modules.set(key, found);
    found.catch(() => modules.delete(key)); // asked again by the next view
  }
  return found;
}

/** Puts a module's style sheet beside the element, once: into its shadow tree where it stands in one. */
function addStyle(element: HTMLElement, name: Name, style: string): void {
  const root = element.getRootNode();
  const place = root instanceof ShadowRoot ? root : document.head;
  if (!place.querySelector(`style[data-reyn="${name}"]`))
    place.append(h("style", { "data-reyn": name }, style));
}
