// The grid over a table, stored or in memory, as a page asks for it.
import { dataGrid } from "../views/grid/data-grid";
import { frameView } from "../views/grid/frame-view";

export default { grid: dataGrid, frame: frameView(dataGrid) };
