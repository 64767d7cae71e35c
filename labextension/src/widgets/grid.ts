// The grid over a stored table, as a page asks for it.
import { grid } from "../views/grid";

export default { grid };
