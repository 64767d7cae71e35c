// Above a grid its bar: jumps, pages of columns; below it the line that says what is shown.
import { button, type Child, formatCount, h, visible } from "../dom/h";
import { describeFilter } from "./column-menu";
import type { Layout } from "./layout";
import { PAGE, type Query } from "./windows";

export interface BarActions {
  row(row: number): void;
  page(first: number): void;
  clear(): void;
  take(button: HTMLElement): void;
}

export function barParts(layout: Layout, query: Query, actions: BarActions): Child[] {
  const { filter, first_column: first } = query;
  const { total, width } = layout;
  const next = first + PAGE;
  const turn = (label: string, text: string, to: number, there: boolean): HTMLElement =>
    button(text, () => actions.page(to), { "aria-label": label, disabled: !there });
  return [
    jump("Go to row", Math.max(1, total), (row) => total && actions.row(row)),
    width > PAGE && [
      jump("Go to column", width, (column) => actions.page(Math.floor(column / PAGE) * PAGE)),
      turn("Columns before", "‹", first - PAGE, first > 0),
      h("span", {}, `columns ${formatCount(first + 1)}–${formatCount(Math.min(width, next))}`),
      turn("Columns after", "›", next, next < width),
    ],
    filter.length > 0 && button("Clear filters", actions.clear),
    button("Take into pandas", (event) => actions.take(event.currentTarget as HTMLElement), {
      class: "r-button r-take",
    }),
  ];
}

function jump(label: string, most: number, to: (value: number) => void): HTMLElement {
  const onchange = (event: Event): void => {
    const given = Math.round(Number((event.target as HTMLInputElement).value));
    if (given >= 1) to(Math.min(most, given) - 1);
  };
  return h(
    "label.r-line",
    {},
    h("span.r-label", {}, label),
    h("input", { type: "number", min: 1, max: most, onchange }),
  );
}

/** What is shown, in a line. @param first the first row in sight, @param stop the one behind the last */
export function describeRows(
  layout: Layout,
  { sort, filter }: Query,
  [first, stop]: [number, number],
): string {
  const { all, total, width } = layout;
  const name = (position: number): string =>
    visible(layout.columns.find((each) => each.position === position)?.name ?? `column ${position + 1}`);
  const sorted = sort.map((each) => `${name(each.column)} ${each.descending ? "↓" : "↑"}`);
  const matched = filter.map((each) => describeFilter(name(each.column), each));
  const parts = [
    `${formatCount(all)} ${all === 1 ? "row" : "rows"} × ${formatCount(width)} ${width === 1 ? "column" : "columns"}`,
    total ? `rows ${formatCount(first + 1)}–${formatCount(Math.min(total, stop))}` : "no rows",
    !filter.length && total < all && `the first ${formatCount(total)} are in this page`,
    sorted.length &&
      `sorted by ${sorted.join(", ")}${!filter.length && total < all ? " among themselves" : ""}`,
    matched.length && `${formatCount(total)} match ${matched.join(", ")}`,
  ];
  return parts.filter(Boolean).join(" · ");
}
