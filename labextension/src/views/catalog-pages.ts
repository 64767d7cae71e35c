// The whole catalog, fetched a page at a time.
//
// Invariant: all rows are of one revision; where the catalog changes meanwhile, they are fetched from the start.
import type { CatalogPage } from "../protocol";
import type { Operations } from "../sources/source";

export const PAGE = 2_000;
export const MOST = 50_000;

type Ask = (args: Operations["catalog.page"]["args"]) => Promise<CatalogPage>;

/**
 * @param ask fetches one page
 * @param take is given all rows so far each time some have come, and whether they are all
 */
export async function catalogPages(
  ask: Ask,
  take: (page: CatalogPage, rows: CatalogPage["rows"], done: boolean) => void,
): Promise<void> {
  let rows: CatalogPage["rows"] = [];
  let first: CatalogPage | null = null;
  for (let tries = 0; tries < 5;) {
    const page = await ask({ offset: rows.length, limit: PAGE });
    if (first && page.revision !== first.revision) {
      [rows, first, tries] = [[], null, tries + 1];
      continue;
    }
    first ??= page;
    rows.push(...page.rows);
    const done = !page.rows.length || rows.length >= Math.min(page.total, MOST);
    take(page, rows, done);
    if (done) return;
  }
}
