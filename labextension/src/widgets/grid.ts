// The grid over a stored table, as a page asks for it.
import { dataGrid } from "../views/grid/data-grid";

export default { grid: dataGrid };
