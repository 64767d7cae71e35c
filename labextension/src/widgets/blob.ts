// The inspector of a blob, as a page asks for it; the grid comes when a table is looked at.
import { kernelView } from "../sources/kernel-modules";
import { inspector } from "../views/blob/inspector";

export default { blob: inspector(kernelView("grid", "grid")) };
