// Puts a display on the page: its snapshot at once, the live view in its place once the kernel answers.
//
// Invariant: whatever a snapshot holds and whatever becomes of the kernel, something readable is shown, and what is
// shown is never taken away for want of a kernel; a line says where it stands.
import type { Snapshot } from "../protocol";
import type { Live } from "../sources/source";
import { PROTOCOL } from "../sources/source";
import type { Source, ViewFunction } from "../sources/source";
import { drawView } from "./blocks/view";
import { copyButton, insertButton } from "./dom/copy";
import { type Child, fill, h, visible } from "./dom/h";
import { redraw } from "./blocks/patch";

export type LiveViews = { [K in Live["type"]]?: ViewFunction<Extract<Live, { type: K }>> };

export interface Display {
  /** Another snapshot of the same display came. */
  update(snapshot: Snapshot): void;
  dispose(): void;
}

const LOAD = "%load_ext reyn_jupyter";

/** @param kinds the live views that this host carries; a display of any other kind keeps to its snapshot */
export function createDisplay(
  element: HTMLElement,
  snapshot: Snapshot,
  source: Source,
  kinds: LiveViews,
): Display {
  const body = h("div");
  const status = h("div.reyn-view.r-state", { role: "status", hidden: true });
  element.append(body, status);
  let drawnView: HTMLElement | null = null;
  let end: (() => void) | null = null;
  let cutOff = false; // stays while another kernel is connected to

  const close = (): void => {
    end?.();
    end = drawnView = null;
  };
  const showSnapshot = (): void => {
    const { view, problem } = checkSnapshot(cutOff ? atItsEnd(snapshot) : snapshot);
    if (drawnView && view && !problem) return redraw(drawnView, view, source.host);
    drawnView = view && drawView(view, source.host);
    fill(body, problem && warningCard(problem), drawnView);
  };
  const goLive = (view: ViewFunction<Live>, live: Live): void => {
    if (!drawnView) showSnapshot();
    const before = drawnView;
    drawnView = null;
    fill(body);
    try {
      end = view(body, live, source, before, checkSnapshot(snapshot).view);
    } catch (error) {
      showSnapshot();
      body.prepend(
        warningCard(`The live view could not be opened: ${error instanceof Error ? error.message : error}`),
      );
      end = () => undefined;
    }
  };
  const show = (): void => {
    cutOff = isCutOff(snapshot, source) || (cutOff && source.state !== "live");
    const live = snapshot?.live ?? null;
    const view = live && (kinds[live.type] as ViewFunction<Live> | undefined);
    if (!end && view && source.state === "live") goLive(view, live);
    else if (!end) showSnapshot();
    const caption = view ? describeState(source, Boolean(end)) : [];
    if (end) element.prepend(status);
    else element.append(status);
    fill(status, ...caption);
    status.hidden = !caption.length;
  };
  const unwatch = source.watch(show);
  show();
  return {
    update(now) {
      const same = identityOf(now?.live) === identityOf(snapshot?.live);
      snapshot = now;
      cutOff = false;
      if (!same && end) close();
      show();
    },
    dispose() {
      unwatch();
      close();
      element.replaceChildren();
    },
  };
}

/** Whether a run that was going on was cut off: what ran it is no more, and nothing comes after this snapshot. */
const isCutOff = (snapshot: Snapshot, source: Source): boolean =>
  Boolean(snapshot?.lost) &&
  ["gone", "foreign", "missing"].includes(source.state) &&
  !/protocol|connection/.test(source.reason); // then the kernel may go on with it

const atItsEnd = (snapshot: Snapshot): Snapshot => ({ ...snapshot, view: snapshot.lost ?? snapshot.view });

/** Which object it is; whether its run still goes on is for its view to find out. */
const identityOf = (live: Live | null | undefined): string => JSON.stringify({ ...live, running: false });

/** The view of a snapshot, and what is wrong with it: whoever wrote it, another version or another hand. */
function checkSnapshot(snapshot: Snapshot): { view: Snapshot["view"] | null; problem: string } {
  const view = snapshot?.view;
  const usable = view !== null && typeof view === "object" && Array.isArray(view.blocks);
  const version = Number(snapshot?.protocol);
  let problem = usable ? "" : "This view holds nothing that can be shown. Run its cell again.";
  if (version > PROTOCOL)
    problem =
      `This view was written by a newer reyn-jupyter (version ${version} of the protocol; this page knows ` +
      `${PROTOCOL}). Update reyn-jupyter where JupyterLab runs, then reload the page.`;
  return { view: usable ? view : null, problem };
}

const warningCard = (text: string): HTMLElement =>
  h(
    "div.reyn-view",
    { role: "group" },
    h("div.r-body", {}, h("div.r-msg.r-warn", { role: "note" }, h("p", {}, visible(text)))),
  );

/** Where the kernel stands, in a line; nothing while there is nothing to say. */
function describeState(source: Source, opened: boolean): Child[] {
  const reason = visible(source.reason).replace(/^./, (first) => first.toUpperCase());
  const { insertCell } = source.host;
  switch (source.state) {
    case "busy":
      return ["Kernel busy: what is shown stays; it goes on when the kernel answers."];
    case "gone":
      return [
        opened
          ? "The kernel is gone; what is shown stays as it was."
          : `${(reason || "The kernel is gone").replace(/\.$/, "")}; this is the view as it was saved.`,
      ];
    case "foreign":
      return [
        `${reason || "It belongs to another session of the kernel."} This is the view as it was saved; run the cell again to go on.`,
      ];
    case "missing":
      // Loading does not help where two versions do not understand each other; the reason names both.
      if (/protocol/.test(reason)) return [`This is the view as it was saved: ${reason}`];
      return [
        `${(reason || "reyn-jupyter is not loaded in this kernel").replace(/\.$/, "")}; this is the view as it was saved. `,
        insertCell
          ? insertButton(LOAD, insertCell, "Insert %load_ext")
          : [h("code", {}, LOAD), copyButton(() => LOAD, LOAD)],
      ];
    default:
      return [];
  }
}
