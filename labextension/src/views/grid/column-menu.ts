// What a column orders and leaves out, and what stands behind its button: its filter and its figures.
import type { FilterKey, FrameColumn, FrameFigures, SortKey } from "../../protocol";
import { fill, h, visible } from "../dom/h";

const OPS: [FilterKey["op"], string][] = [
  ["contains", "contains"],
  ["equals", "="],
  ["differs", "≠"],
  ["greater", ">"],
  ["least", "≥"],
  ["less", "<"],
  ["most", "≤"],
  ["missing", "is missing"],
  ["present", "is there"],
];

/** The sort keys after a click on a column: ascending, descending, as stored; `more` keeps the other keys. */
export function toggleSort(sort: readonly SortKey[], column: number, more: boolean): SortKey[] {
  const place = sort.findIndex((each) => each.column === column);
  const next: SortKey[] = sort[place]?.descending ? [] : [{ column, descending: place >= 0 }];
  if (!more) return next;
  return place < 0 ? [...sort, ...next] : sort.toSpliced(place, 1, ...next);
}

/** The filters with others, or none, for a column. */
export const replaceFilters = (
  all: readonly FilterKey[],
  column: number,
  filters: readonly FilterKey[],
): FilterKey[] => [...all.filter((each) => each.column !== column), ...filters];

/** A filter in words. */
export const describeFilter = (name: string, { op, value }: FilterKey): string =>
  `${name} ${OPS.find(([each]) => each === op)?.[1]} ${visible(value)}`.trim();

/** One comparison of a column, to be changed. */
function condition(
  column: FrameColumn,
  now: FilterKey | undefined,
): { parts: HTMLElement[]; read(): FilterKey[] } {
  const op = h(
    "select",
    { "aria-label": "Comparison" },
    ...OPS.map(([value, text]) => h("option", { value }, text)),
  );
  const value = h("input", { type: "text", "aria-label": "Value", maxlength: 1000, size: 14 });
  const hideValue = (): void => void (value.hidden = op.value === "missing" || op.value === "present");
  op.value = now?.op ?? (column.right ? "least" : "contains");
  value.value = now?.value ?? "";
  op.addEventListener("change", hideValue);
  hideValue();
  const read = (): FilterKey[] =>
    !value.hidden && op.value === "contains" && !value.value
      ? []
      : [
          {
            column: column.position,
            op: op.value as FilterKey["op"],
            value: value.hidden ? "" : value.value,
          },
        ];
  return { parts: [op, value], read };
}

/**
 * @param now the filters of this column: a range has two
 * @param apply sets this column's filters, or takes them away
 * @returns the elements, and what puts in the figures when they are there
 */
export function columnMenu(
  column: FrameColumn,
  now: readonly FilterKey[],
  apply: (filters: FilterKey[]) => void,
): { parts: HTMLElement[]; show(figures: FrameFigures): void } {
  const conditions = (now.length ? now : [undefined]).map((each) => condition(column, each));
  const form = h(
    "form.r-bar",
    {
      onsubmit(event: Event) {
        event.preventDefault();
        apply(conditions.flatMap((each) => each.read()));
      },
    },
    conditions.map((each, place) => [place > 0 && h("span", {}, "and"), each.parts]),
    h("button.r-button", {}, "Filter"),
    now.length > 0 && h("button.r-button", { type: "button", onclick: () => apply([]) }, "Clear"),
  );
  const box = h("div.r-figures", { "aria-live": "polite" }, h("span.r-quiet", {}, "Counting …"));
  return {
    parts: [form, box],
    show(figures) {
      fill(
        box,
        figures.bins.length > 0 && histogram(figures),
        h(
          "dl.r-list",
          {},
          figures.facts.map(([label, text]) => h("div", {}, h("dt", {}, label), h("dd", {}, visible(text)))),
        ),
        figures.top.map(([text, count, share]) =>
          h(
            "div.r-top-value",
            { style: `--share:${(100 * share).toFixed(1)}%` },
            h("span", {}, visible(text)),
            h("span.r-quiet", {}, count),
          ),
        ),
      );
    },
  };
}

const SVG = "http://www.w3.org/2000/svg";

function histogram({ bins, low, high }: FrameFigures): HTMLElement {
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("viewBox", `0 0 ${bins.length * 10} 40`);
  drawing.setAttribute("preserveAspectRatio", "none");
  drawing.setAttribute("role", "img");
  drawing.setAttribute("aria-label", visible(`How the values spread between ${low} and ${high}`));
  bins.forEach((share, place) => {
    const bar = document.createElementNS(SVG, "rect");
    const tall = share && Math.max(1, 40 * share);
    const sides = { x: place * 10 + 0.5, y: 40 - tall, width: 9, height: tall };
    for (const [name, size] of Object.entries(sides)) bar.setAttribute(name, String(size));
    drawing.append(bar);
  });
  return h(
    "div.r-bins",
    {},
    drawing,
    h("div.r-ends", {}, h("span", {}, visible(low)), h("span", {}, visible(high))),
  );
}
