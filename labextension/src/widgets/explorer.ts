// The catalog explorer, as a page asks for it.
import { kernelView } from "../sources/kernel-modules";
import { explorer } from "../views/catalog/explorer";

export default { catalog: explorer(kernelView("blob", "blob")) };
