// Virtual rows: of very many rows of one height only those in sight are in the page.
//
// Invariant: however many rows there are, the scrolled height stays below what browsers can lay out; beyond it the
// position of the scrollbar is scaled, so that the last row can be reached and every row is drawn at its own height.
import { framed } from "./h";

const TALLEST = 8_000_000; // px; Firefox stops at 17.8 million, Chromium at 33.5
const PATIENCE = 120; // frames in which a viewport may get its height back
const AROUND = 8; // rows drawn above and below those in sight

export interface VirtualRows {
  /** How many rows there are now; draws again. */
  count(rows: number): void;
  /** Draw again: their content changed. */
  refresh(): void;
  /** Bring a row into sight, with as little movement as possible. */
  reveal(row: number): void;
  /** The first row that is wholly or partly in sight, and how many fit. */
  readonly first: number;
  readonly visible: number;
  /** The rows of which at least half is in sight: the first, and the one behind the last. */
  readonly inSight: [number, number];
  dispose(): void;
}

/**
 * @param viewport scrolls; it needs a height and `overflow: auto`
 * @param spacer inside it, as high as all rows together; holds `body`
 * @param body the element that `draw` fills; it is moved to where its first row belongs
 * @param height of one row in px
 * @param draw fills `body` with rows `first … stop-1`; called once a frame at most
 * @param above px between the top of the viewport's content and the first row (a sticky header)
 */
export function virtualRows(
  viewport: HTMLElement,
  spacer: HTMLElement,
  body: HTMLElement,
  height: number,
  draw: (first: number, stop: number) => void,
  above = 0,
): VirtualRows {
  let rows = 0;
  let drawn: [number, number] = [-1, -1];
  const total = (): number => rows * height;
  const laid = (): number => Math.min(total(), TALLEST);
  const room = (): number => viewport.clientHeight - above;
  /** How far the rows have moved for a scroll position, in px of their own height. */
  const offset = (): number => {
    const travel = laid() - room();
    return travel <= 0 ? 0 : (Math.min(viewport.scrollTop, travel) / travel) * Math.max(0, total() - room());
  };
  const within = (row: number): number => Math.max(0, Math.min(row, rows - 1));

  function place(force: boolean): void {
    if (viewport.clientHeight > 0) frames = 0;
    else again();
    const top = offset();
    const from = Math.max(0, Math.floor(top / height) - AROUND);
    const stop = Math.min(rows, Math.ceil((top + room()) / height) + AROUND);
    body.style.transform = `translateY(${viewport.scrollTop + from * height - top}px)`;
    if (!force && from === drawn[0] && stop === drawn[1]) return;
    drawn = [from, stop];
    draw(from, stop);
  }
  // Without a height for less than a frame, as while a theme's styles are changed, no observer tells of its return.
  let frames = 0;
  const again = framed(() => {
    if (viewport.clientHeight > 0) place(false);
    else if (++frames < PATIENCE) again();
  });
  const scrolled = framed(() => place(false));
  const resized = new ResizeObserver(() => scrolled());
  viewport.addEventListener("scroll", scrolled, { passive: true });
  resized.observe(viewport);
  body.style.willChange = "transform";

  return {
    count(now) {
      rows = now;
      spacer.style.height = `${laid()}px`;
      place(true);
    },
    refresh: () => place(true),
    reveal(row) {
      const top = offset();
      const wanted =
        row * height < top
          ? row * height
          : (row + 1) * height > top + room()
            ? (row + 1) * height - room()
            : top;
      const travel = laid() - room();
      const far = Math.max(1, total() - room());
      if (wanted !== top) viewport.scrollTop = (wanted / far) * travel;
      place(false);
    },
    get first() {
      return within(Math.floor(offset() / height));
    },
    get visible() {
      return Math.max(1, Math.round(room() / height));
    },
    get inSight(): [number, number] {
      const top = offset();
      const first = within(Math.round(top / height));
      return [first, Math.min(rows, Math.max(first + 1, Math.round((top + room()) / height)))];
    },
    dispose() {
      scrolled.cancel();
      again.cancel();
      resized.disconnect();
      viewport.removeEventListener("scroll", scrolled);
    },
  };
}
