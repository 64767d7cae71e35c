// The catalog explorer, as a page asks for it.
import { lazy } from "../sources/lazy";
import { explorer } from "../views/explorer";

export default { catalog: explorer(lazy("blob", "blob")) };
