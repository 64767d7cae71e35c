// The inspector of a stored result, as a page asks for it; the grid comes when a table is looked at.
import { lazy } from "../sources/lazy";
import { inspector } from "../views/inspector";

export default { blob: inspector(lazy("grid", "grid")) };
