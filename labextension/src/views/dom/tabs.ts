// Panes behind tabs.
//
// Invariant: a pane is made when it is first looked at and keeps its place while others are shown.
import { h, unique } from "./h";

export interface Tabs<P extends string> {
  readonly list: HTMLElement;
  readonly panels: HTMLElement[];
  select(pane: P): void;
  /** The pane afresh, in sight and with the keyboard at its tab. */
  reopen(pane: P): void;
  dispose(): void;
}

/** @param open fills a panel; what it returns empties it again */
export function tabs<P extends string>(
  panes: readonly P[],
  names: Record<P, string>,
  open: (pane: P, panel: HTMLElement) => () => void,
): Tabs<P> {
  const prefix = unique("pane");
  const ends = new Map<P, () => void>();
  const buttons = panes.map((pane) =>
    h(
      "button.r-tab",
      {
        type: "button",
        role: "tab",
        id: `${prefix}-${pane}-tab`,
        "aria-controls": `${prefix}-${pane}`,
        onclick: () => select(pane),
        onkeydown: (event: KeyboardEvent) => onKeydown(event, pane),
      },
      names[pane],
    ),
  );
  const panels = panes.map((pane) =>
    h("div.r-pane", {
      role: "tabpanel",
      id: `${prefix}-${pane}`,
      "aria-labelledby": `${prefix}-${pane}-tab`,
    }),
  );

  function select(chosen: P): void {
    panes.forEach((pane, place) => {
      const now = pane === chosen;
      buttons[place]!.ariaSelected = String(now);
      buttons[place]!.tabIndex = now ? 0 : -1;
      panels[place]!.hidden = !now;
      if (now && !ends.has(pane)) ends.set(pane, open(pane, panels[place]!));
    });
  }

  function onKeydown(event: KeyboardEvent, pane: P): void {
    const here = panes.indexOf(pane);
    const by = { ArrowRight: 1, ArrowLeft: -1, Home: -here, End: -1 - here }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const place = (here + by + panes.length) % panes.length;
    select(panes[place]!);
    buttons[place]!.focus();
  }

  return {
    list: h("div.r-tabs", { role: "tablist", "aria-label": "Shown as", hidden: panes.length < 2 }, buttons),
    panels,
    select,
    reopen(pane) {
      ends.get(pane)?.();
      ends.delete(pane);
      select(pane);
      buttons[panes.indexOf(pane)]!.focus();
    },
    dispose: () => ends.forEach((end) => end()),
  };
}
