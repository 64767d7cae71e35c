// The messages under the names that the code uses.
export type * from "../protocol";
import type { LiveBlob, LiveCatalog, LiveDiff, LiveTrace } from "../protocol";
export type Live = LiveBlob | LiveCatalog | LiveDiff | LiveTrace;
