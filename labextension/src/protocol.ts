// Made from the Python types by `make protocol`; change those.

export type Block =
  | Paragraph
  | Heading
  | Bullets
  | Quote
  | Rule
  | Code
  | Commands
  | Lines
  | Grid
  | Tree
  | Diff
  | Facts
  | Notice
  | Media
  | Chart
  | Section
  | Fold
  | Toolbar
  | ToolbarItem
  | Intervals
  | Scatter
  | Pair;

export interface Protocol {
  Operations: Operations;
  Snapshot: Snapshot;
  Hello: Hello;
  Welcome: Welcome;
  ViewRequest: ViewRequest;
  Cancel: Cancel;
  SentCells: SentCells;
  ViewAnswer: ViewAnswer;
  ViewFailure: ViewFailure;
  ViewProgress: ViewProgress;
  ViewEvent: ViewEvent;
}
export interface Operations {
  "approval.answer": ApprovalAnswerOperation;
  "approval.page": ApprovalPageOperation;
  "approval.pending": ApprovalPendingOperation;
  "catalog.page": CatalogPageOperation;
  "catalog.search": CatalogSearchOperation;
  "catalog.action": CatalogActionOperation;
  "catalog.command": CatalogCommandOperation;
  "catalog.invoke": CatalogInvokeOperation;
  "home.open": HomeOpenOperation;
  "home.ask": HomeAskOperation;
  "home.cell": HomeCellOperation;
  "servers.list": ServersListOperation;
  "servers.log": ServersLogOperation;
  "servers.restart": ServersRestartOperation;
  "servers.add": ServersAddOperation;
  "servers.drop": ServersDropOperation;
  "blob.open": BlobOpenOperation;
  "blob.content": BlobContentOperation;
  "frame.open": FrameOpenOperation;
  "frame.rows": FrameRowsOperation;
  "frame.ranks": FrameRanksOperation;
  "frame.column": FrameColumnOperation;
  "frame.cell": FrameCellOperation;
  "frame.code": FrameCodeOperation;
  "tree.children": TreeChildrenOperation;
  "tree.find": TreeFindOperation;
  "tree.way": TreeWayOperation;
  "tree.value": TreeValueOperation;
  "lines.window": LinesWindowOperation;
  "lines.find": LinesFindOperation;
  "lines.whole": LinesWholeOperation;
  "lines.at": LinesAtOperation;
  "trace.open": TraceOpenOperation;
  "trace.part": TracePartOperation;
  "trace.diff": TraceDiffOperation;
  "trace.pair": TracePairOperation;
  "trace.chart": TraceChartOperation;
  "runs.list": RunsListOperation;
  "run.stop": RunStopOperation;
  "module.open": ModuleOpenOperation;
}
export interface ApprovalAnswerOperation {
  args: AnswerApproval;
  answer: ApprovalAnswered;
}
/**
 * Answer the question of a whole id, with the secret that the connection was sent for this answer.
 */
export interface AnswerApproval {
  id: string;
  answer: "once" | "always" | "deny";
  secret: string;
}
export interface ApprovalAnswered {
  id: string;
}
export interface ApprovalPageOperation {
  args: ReadApproval;
  answer: ApprovalPage;
}
/**
 * Ask for the lines of a question from `start` on; 0 is the first.
 */
export interface ReadApproval {
  id: string;
  start: number;
}
/**
 * Give further lines, and the choices as they are now: the last line brings the secrets that were missing.
 */
export interface ApprovalPage {
  lines: QuestionLine[];
  choices: AnswerChoice[];
}
/**
 * A line of a question: a target ("effect"), a sentence of ours ("note"), or content behind a bar.
 *
 * Attributes:
 *     continued: it goes on with the line above.
 */
export interface QuestionLine {
  kind: "effect" | "note" | "text" | "added" | "removed" | "place";
  text: string;
  continued: boolean;
}
/**
 * An answer that a question offers, with its words.
 *
 * Attributes:
 *     label: on a button.
 *     hint: what the answer means.
 *     outcome: what is said once it was given.
 *     allows: whether the call may run; where several do not, the first of them is the safe one.
 *     secret: what an answer over this connection must carry; None until the question was shown whole.
 */
export interface AnswerChoice {
  answer: "once" | "always" | "deny";
  label: string;
  hint: string;
  outcome: string;
  allows: boolean;
  secret: string | null;
}
export interface ApprovalPendingOperation {
  args: ListApprovals;
  answer: OpenApprovals;
}
export interface ListApprovals {}
export interface OpenApprovals {
  questions: ApprovalAsked[];
}
/**
 * Ask for consent: a run or a call waits. Its words are shown as they are.
 *
 * Attributes:
 *     cell: the id of the cell that waits; None if none does, or it is unknown.
 *     heading: the question in a few words.
 *     title: the line above the detail.
 *     region: the detail's name, for who hears the page.
 *     lines: the first lines of the detail.
 *     total: how many there are; the operation approval.page gives the rest.
 */
export interface ApprovalAsked {
  name: "approval";
  id: string;
  action: string;
  heading: string;
  title: string;
  region: string;
  lines: QuestionLine[];
  total: number;
  choices: AnswerChoice[];
  run: string | null;
  cell: string | null;
}
export interface CatalogPageOperation {
  args: ListCatalog;
  answer: CatalogPage;
}
export interface ListCatalog {
  offset: number;
  limit: number;
}
/**
 * Carry one page of rows. `tones` is the colour of each effect, the harmless ones first; another `revision` belongs
 * to another catalog.
 */
export interface CatalogPage {
  revision: string;
  total: number;
  columns: CatalogColumn[];
  tones: {
    [k: string]: "plain" | "good" | "bad" | "warn" | "info" | "muted";
  };
  categories: CatalogCategory[];
  rows: (string | [string, number])[][];
}
/**
 * Describe a column: its `key` in code, the title that people read, and the order it sorts by.
 */
export interface CatalogColumn {
  key: string;
  title: string;
  numeric: boolean;
}
export interface CatalogCategory {
  name: string;
  count: number;
  sentence: string;
}
export interface CatalogSearchOperation {
  args: SearchCatalog;
  answer: RankedActions;
}
/**
 * Ask for actions by what they do, within a category ("" for all).
 */
export interface SearchCatalog {
  query: string;
  category: string;
  limit: number;
}
/**
 * Name the actions that `%reyn search` finds, best first, those left out that have nothing of the query.
 *
 * `remark` says so where none is a clear fit, else "".
 */
export interface RankedActions {
  names: string[];
  remark: string;
}
export interface CatalogActionOperation {
  args: OpenAction;
  answer: OpenedAction;
}
export interface OpenAction {
  name: string;
}
/**
 * Show one action: its description (`view`), and the form that calls it.
 */
export interface OpenedAction {
  name: string;
  view: View;
  form: ActionForm;
}
/**
 * One object as people see it.
 *
 * Attributes:
 *     kind: "actions", "action", "result", "blob", "inspection", "trace", or a table's or card's own kind.
 *     title: the heading; `badges` and `facts` stand beside and under it.
 *     knob: what gives all of it, named wherever a host has to leave something out.
 */
export interface View {
  kind: string;
  title: string;
  badges: Badge[];
  facts: string[];
  blocks: Block[];
  knob: string;
}
/**
 * A short state in words; the tone only repeats it in colour.
 */
export interface Badge {
  text: string;
  tone: "plain" | "good" | "bad" | "warn" | "info" | "muted";
}
export interface Paragraph {
  spans: Span[];
  type: "paragraph";
}
/**
 * A run of inline text. `href` is an http(s) address; hosts show where it leads beside the text.
 */
export interface Span {
  text: string;
  marks: ("strong" | "emphasis" | "strike" | "code" | "muted")[];
  href: string;
}
export interface Heading {
  level: number;
  spans: Span[];
  type: "heading";
}
/**
 * A list; `start` numbers an ordered one, None is a bulleted one.
 */
export interface Bullets {
  items: Block[][];
  start: number | null;
  type: "bullets";
}
export interface Quote {
  blocks: Block[];
  type: "quote";
}
export interface Rule {
  type: "rule";
}
/**
 * Text in a fixed-width face, wrapped where it is long. `more` says what was left out and how to see it.
 */
export interface Code {
  text: string;
  label: string;
  more: string;
  type: "code";
}
/**
 * Ready lines for the next cell.
 */
export interface Commands {
  lines: string[];
  label: string;
  type: "commands";
}
/**
 * Numbered lines, the first one being number `first`.
 */
export interface Lines {
  first: number;
  lines: string[];
  label: string;
  more: string;
  type: "lines";
}
/**
 * A table. Every row has as many cells as there are columns.
 */
export interface Grid {
  caption: string;
  columns: Column[];
  rows: (CellFields | string | [string, number])[][];
  more: string;
  type: "grid";
}
/**
 * `detail` is a second line in the header (a dtype); a `header` column names its row.
 *
 * `wide` holds sentences, which may wrap; `whole` holds what people copy, which is never narrowed.
 */
export interface Column {
  name: string;
  detail: string;
  right: boolean;
  header: boolean;
  wide: boolean;
  whole: boolean;
}
/**
 * Any other cell as it travels: what is as usual is left out.
 */
export interface CellFields {
  text: string;
  tone?: "plain" | "good" | "bad" | "warn" | "info" | "muted";
  face?: "text" | "code" | "badge";
  value?: number;
  missing?: boolean;
}
/**
 * A JSON value. `levels` is how deep it stands open: a small one whole, so that nothing has to be pressed.
 */
export interface Tree {
  root: Node;
  more: string;
  levels: number;
  type: "tree";
}
/**
 * A value of a JSON tree. `kind` is its JSON type, or "more" for a note about children left out.
 */
export interface Node {
  key: string | null;
  text: string;
  kind: string;
  children: Node[];
}
/**
 * A unified diff of one file.
 */
export interface Diff {
  path: string;
  summary: string;
  lines: DiffLine[];
  more: string;
  type: "diff";
}
/**
 * `sign` is "+", "-", " " or "@" (where in the file).
 */
export interface DiffLine {
  sign: string;
  text: string;
}
/**
 * (label, value) pairs.
 */
export interface Facts {
  pairs: [string, string][];
  type: "facts";
}
/**
 * A sentence that stands out: an error, a warning, a note. `hint` says what to do next.
 */
export interface Notice {
  text: string;
  tone: "plain" | "good" | "bad" | "warn" | "info" | "muted";
  hint: string;
  type: "notice";
}
/**
 * An image that is drawn, or a sound with controls.
 *
 * Attributes:
 *     mime: one of `DRAWN` or `PLAYED`: formats that hold no markup and no script.
 *     data: the content in base64. It counts for no bound of a view's size: whoever makes blocks bounds it.
 *     alt: the text that stands for it; `caption` is the line under it.
 *     width, height: pixels of an image, 0 for a sound.
 *
 * Raises:
 *     ValueError: the type is another one, or the data is no base64.
 */
export interface Media {
  mime: string;
  data: string;
  alt: string;
  caption: string;
  width: number;
  height: number;
  type: "media";
}
/**
 * A chart: its picture, the same in words, and its figures as a table.
 *
 * A picture is drawn as an image alone, in which no script runs and from which nothing is loaded, whatever it holds.
 *
 * Attributes:
 *     title: what it shows; `words` say what is to be seen, and stand for the picture.
 *     mime: one of `CHARTED`; "" where there is no picture, with empty `data`.
 *     data: the picture in base64. It counts for no bound of a view's size: whoever makes blocks bounds it.
 *     table: the figures.
 *
 * Raises:
 *     ValueError: the type is another one, or the data is no base64.
 */
export interface Chart {
  title: string;
  words: string;
  mime: string;
  data: string;
  table: Grid;
  type: "chart";
}
export interface Section {
  title: string;
  blocks: Block[];
  type: "section";
}
/**
 * Blocks behind a summary line.
 *
 * Text hosts show the blocks of an open fold, and of one that is `printed`: they cannot unfold anything.
 */
export interface Fold {
  title: Span[];
  badges: Badge[];
  aside: string;
  blocks: Block[];
  open: boolean;
  printed: boolean;
  type: "fold";
}
/**
 * What can be done with an answer: a row of buttons. Text hosts show `words` in its place.
 */
export interface Toolbar {
  blocks: ToolbarItem[];
  words: string;
  type: "toolbar";
}
/**
 * A button that opens blocks below it.
 *
 * Attributes:
 *     blob: the id of a blob whose live view takes the place of the blocks, where the kernel answers.
 *     inserts: the first of the blocks is code, which goes into a new cell where the host has cells.
 *     chart: the kernel draws what it opens once it is pressed; a host without a kernel leaves the button out.
 */
export interface ToolbarItem {
  label: string;
  blocks: Block[];
  blob: string;
  inserts: boolean;
  chart: boolean;
  type: "item";
}
/**
 * Estimates with their intervals on one axis.
 *
 * Rates are `bars` from the axis' beginning, differences have a line at `zero`. `axis` is (from, to); `ticks` are
 * (value, text); `legend` says what a row's reference is.
 */
export interface Intervals {
  caption: string;
  rows: Interval[];
  /**
   * @minItems 2
   * @maxItems 2
   */
  axis: [number, number];
  ticks: [number, string][];
  zero: number | null;
  bars: boolean;
  legend: string;
  more: string;
  type: "intervals";
}
/**
 * A row of an interval chart. `text` says in words what is drawn; `reference` is a value to compare it with.
 *
 * Without an estimate nothing is drawn, and the words say why.
 *
 * Raises:
 *     ValueError: a number is NaN or infinite.
 */
export interface Interval {
  label: string;
  text: string;
  estimate: number | null;
  low: number | null;
  high: number | null;
  detail: string;
  reference: number | null;
  tone: "plain" | "good" | "bad" | "warn" | "info" | "muted";
}
/**
 * Points on two axes, each with a name, (from, to) and ticks.
 *
 * Its `figures` are listed with it, unless a table beside it has them.
 */
export interface Scatter {
  caption: string;
  points: Point[];
  x_name: string;
  y_name: string;
  /**
   * @minItems 2
   * @maxItems 2
   */
  x_axis: [number, number];
  /**
   * @minItems 2
   * @maxItems 2
   */
  y_axis: [number, number];
  x_ticks: [number, string][];
  y_ticks: [number, string][];
  figures: boolean;
  type: "scatter";
}
/**
 * A point of a scatter chart, with the bounds of its y value; `text` says in words what is drawn.
 */
export interface Point {
  label: string;
  text: string;
  x: number;
  y: number;
  low: number | null;
  high: number | null;
  tone: "plain" | "good" | "bad" | "warn" | "info" | "muted";
}
/**
 * Two views side by side, each under its heading.
 */
export interface Pair {
  left: string;
  right: string;
  left_blocks: Block[];
  right_blocks: Block[];
  type: "pair";
}
/**
 * List all fields, the required ones first. `others` offers one more, for arguments without a field, as JSON.
 */
export interface ActionForm {
  fields: FormField[];
  others: boolean;
}
/**
 * Describe the field of one argument.
 *
 * Attributes:
 *     name: its name, exactly as it is sent.
 *     kind: "lines" is a text over several lines; "list" holds scalars, one a line; "reference" a variable's name.
 *     items: what a "list" holds.
 *     type: the type in words, as the schema table has it.
 *     placeholder: the default, which is not sent.
 *     least, most: bounds that a number field can hold, "" where there are none.
 */
export interface FormField {
  name: string;
  kind: "text" | "lines" | "integer" | "number" | "boolean" | "choice" | "list" | "reference" | "json";
  required: boolean;
  type: string;
  description: string;
  placeholder: string;
  items: "text" | "lines" | "integer" | "number" | "boolean" | "choice" | "list" | "reference" | "json";
  choices: FormChoice[];
  least: string;
  most: string;
}
/**
 * Offer one value of several: the text on the screen, and the JSON that is sent.
 */
export interface FormChoice {
  text: string;
  json_text: string;
}
export interface CatalogCommandOperation {
  args: CallAction;
  answer: ActionCommand;
}
/**
 * Call an action with the text `typed` into each field; under "" stand the arguments without a field.
 */
export interface CallAction {
  name: string;
  typed: {
    [k: string]: string;
  };
}
/**
 * Carry the `%reyn invoke` line, "" where a field cannot be read.
 */
export interface ActionCommand {
  command: string;
  errors: ArgumentFault[];
}
/**
 * Name a fault of the arguments: its place (a JSON Pointer, "" for all of them), and its reason.
 */
export interface ArgumentFault {
  path: string;
  message: string;
}
export interface CatalogInvokeOperation {
  args: CallAction;
  answer: ActionAnswer;
}
/**
 * Show the result of a call. `row` is the action's row with this call counted; `live` opens the blob.
 */
export interface ActionAnswer {
  ok: boolean;
  view: View;
  live: LiveBlob | null;
  command: string;
  errors: ArgumentFault[];
  row: (string | [string, number])[];
}
/**
 * Open the inspector of a blob at a selector ("lines:20-50", "path:/a", "slice:0..20"), or at its start.
 */
export interface LiveBlob {
  type: "blob";
  blob: string;
  selector: string | null;
}
export interface HomeOpenOperation {
  args: ReadHome;
  answer: HomePage;
}
/**
 * Ask for the newest runs and stored results, so many of each.
 */
export interface ReadHome {
  runs: number;
  blobs: number;
}
/**
 * Show where a session stands.
 *
 * Attributes:
 *     model: its label; `about` says where requests go, or why there is no model.
 *     usable: whether a question can be asked of it.
 *     spent: tokens and money of this session.
 *     runs, blobs: the newest ones, newest first; all_runs and all_blobs count what there is.
 */
export interface HomePage {
  model: string;
  about: string;
  usable: boolean;
  spent: string;
  runs: HomeRun[];
  all_runs: number;
  blobs: HomeBlob[];
  all_blobs: number;
}
/**
 * Offer a run: its prompt or call as `title`, `at` in seconds since the epoch; `running` while it goes on.
 */
export interface HomeRun {
  run: string;
  title: string;
  facts: string;
  at: number;
  state: Badge;
  running: boolean;
}
/**
 * Offer a stored result: the action that gave it as `title`, kind and size as `facts`.
 */
export interface HomeBlob {
  blob: string;
  title: string;
  facts: string;
  at: number;
}
export interface HomeAskOperation {
  args: AskQuestion;
  answer: QuestionRun;
}
/**
 * Ask the model in the background; ``{{name}}`` in the text is filled with a variable, as under ``%%reyn``.
 */
export interface AskQuestion {
  prompt: string;
}
/**
 * Name the run that a question began.
 */
export interface QuestionRun {
  run: string;
}
export interface HomeCellOperation {
  args: ReadCell;
  answer: RunCell;
}
export interface ReadCell {
  run: string;
}
/**
 * Carry a finished run as a cell: the source that asks the same again, and its card in every representation.
 */
export interface RunCell {
  source: string;
  output: {
    [k: string]: unknown;
  };
}
export interface ServersListOperation {
  args: ReadServers;
  answer: ServersPage;
}
export interface ReadServers {}
/**
 * Show the servers of a session.
 *
 * Attributes:
 *     total: how many there are, also beyond those that are shown.
 *     remarks: what cannot be used in their files, and what waits for the person's trust, in sentences.
 *     can_add: whether servers can be added here.
 *     empty: what to do where there is none; "" where there are some.
 */
export interface ServersPage {
  servers: PanelServer[];
  total: number;
  remarks: string[];
  can_add: boolean;
  empty: string;
}
/**
 * Show how one server fares.
 *
 * Attributes:
 *     facts: tools, calls, what a call takes, errors.
 *     why: the reason why it is not ready; "" where it is, or was not asked for yet.
 *     last_line: the last line of its log.
 *     runs: the command line or the address; origin whose file it stands in.
 *     gets: what it has of the person's environment and secrets; isolation how it is kept apart.
 *     label: names what is to be done next, `line` does it in a cell; "" where there is nothing.
 *     dropped_from: the file that it can be taken out of; "" where a program gave it.
 *     may_start: whether it can be started.
 */
export interface PanelServer {
  name: string;
  state: Badge;
  facts: string;
  why: string;
  last_line: string;
  runs: string;
  gets: string;
  isolation: string;
  origin: string;
  label: string;
  line: string;
  dropped_from: string;
  may_start: boolean;
}
export interface ServersLogOperation {
  args: NameServer;
  answer: ServerLogLines;
}
export interface NameServer {
  name: string;
}
/**
 * Show what a server wrote, oldest line first.
 */
export interface ServerLogLines {
  lines: string[];
}
export interface ServersRestartOperation {
  args: NameServer;
  answer: ServerAnswer;
}
/**
 * Say in a sentence what was done.
 */
export interface ServerAnswer {
  said: string;
}
export interface ServersAddOperation {
  args: AddServer;
  answer: ServerAnswer;
}
/**
 * Add a server: a command line, read into words without a shell, or an address.
 */
export interface AddServer {
  name: string;
  runs: string;
  sandbox: boolean;
}
export interface ServersDropOperation {
  args: NameServer;
  answer: ServerAnswer;
}
export interface BlobOpenOperation {
  args: OpenBlob;
  answer: OpenedBlob;
}
export interface OpenBlob {
  blob: string;
  selector: string | null;
}
/**
 * Describe a blob to its viewer. `facts` and `about` are texts; `commands` are ready lines, each with its
 * purpose; `value` is the Python expression that a path is appended to.
 */
export interface OpenedBlob {
  id: string;
  kind: string;
  title: string;
  facts: string[];
  about: [string, string][];
  commands: [string, string][];
  value: string;
  panes: ("content" | "grid" | "tree" | "text")[];
  pane: "content" | "grid" | "tree" | "text";
  start: BlobStart;
}
/**
 * Name the place to begin at: a row of the grid, a path in the tree, a line, a byte or a search in the text.
 */
export interface BlobStart {
  row: number;
  path: string[];
  line: number;
  byte: number | null;
  find: string;
  note: string;
}
export interface BlobContentOperation {
  args: ReadContent;
  answer: BlobContent;
}
export interface ReadContent {
  blob: string;
}
/**
 * Hold what is drawn of a blob: the parts of a result, an image, a sound.
 */
export interface BlobContent {
  blocks: Block[];
}
export interface FrameOpenOperation {
  args: OpenFrame;
  answer: OpenedFrame;
}
export interface OpenFrame {
  blob: string;
}
/**
 * Describe a table and the columns that its viewer begins with.
 *
 * Attributes:
 *     columns: those that name the rows, and the first of the others.
 *     width: how many columns there are; `revision` moves when rows were met that have further ones.
 *     headers: how many of the columns name the rows.
 *     inferred: no description of the columns is stored; they are those of the rows met so far.
 *     figures: whether figures of columns may be asked for at once: the table is in memory, or small enough to be.
 */
export interface OpenedFrame {
  rows: number;
  width: number;
  headers: number;
  revision: number;
  inferred: boolean;
  figures: boolean;
  columns: FrameColumn[];
}
/**
 * Describe a column. `position` counts all columns, those that name the rows first; these have `header` set.
 */
export interface FrameColumn {
  position: number;
  name: string;
  dtype: string;
  right: boolean;
  header: boolean;
}
export interface FrameRowsOperation {
  args: AskRows;
  answer: FrameRows;
}
/**
 * Ask for a window; `first_column` and `column_count` choose among the columns that do not name the rows.
 */
export interface AskRows {
  blob: string;
  start: number;
  count: number;
  first_column: number;
  column_count: number;
  sort: SortKey[];
  filter: FilterKey[];
}
/**
 * Sort by the column at a position.
 */
export interface SortKey {
  column: number;
  descending: boolean;
}
/**
 * Keep the rows that match. `most` and `least` are at most and at least; `value` is read as the column's values.
 */
export interface FilterKey {
  column: number;
  op: "contains" | "equals" | "differs" | "less" | "most" | "greater" | "least" | "missing" | "present";
  value: string;
}
/**
 * Carry the cells of a window of rows.
 *
 * Attributes:
 *     total: how many rows match.
 *     labels: what names each row where no column does; else empty.
 *     cells: for each row a text for each of `columns`.
 *     muted: for each row the places of the cells that say that nothing is there.
 */
export interface FrameRows {
  start: number;
  total: number;
  width: number;
  revision: number;
  columns: FrameColumn[];
  labels: string[];
  cells: string[][];
  muted: number[][];
}
export interface FrameRanksOperation {
  args: AskRanks;
  answer: FrameRanks;
}
export interface AskRanks {
  blob: string;
  count: number;
}
/**
 * Carry the order of the first rows by each of the first columns, for a page that sorts without a kernel.
 *
 * Attributes:
 *     ranks: for each column of a window a number for each row, equal for equal values; -1 for a missing one.
 */
export interface FrameRanks {
  ranks: number[][];
}
export interface FrameColumnOperation {
  args: AskColumn;
  answer: FrameFigures;
}
export interface AskColumn {
  blob: string;
  column: number;
  filter: FilterKey[];
}
/**
 * Summarise a column over the rows that match.
 *
 * Attributes:
 *     facts: (label, value) pairs.
 *     top: the most frequent values, as (value, how often, share of the widest bar).
 *     bins: how high each bar of the histogram is, between 0 and 1; `low` and `high` are its ends.
 *     edges: where the bars begin, and where the last one ends, as a filter takes them.
 */
export interface FrameFigures {
  name: string;
  dtype: string;
  facts: [string, string][];
  top: [string, string, number][];
  bins: number[];
  low: string;
  high: string;
  edges: string[];
}
export interface FrameCellOperation {
  args: AskCell;
  answer: FrameCell;
}
/**
 * Ask for a whole cell; `row` counts the rows that match, in their order.
 */
export interface AskCell {
  blob: string;
  row: number;
  column: number;
  sort: SortKey[];
  filter: FilterKey[];
}
/**
 * Carry the text of a whole cell; `cut` is True where it is longer still.
 */
export interface FrameCell {
  text: string;
  cut: boolean;
}
export interface FrameCodeOperation {
  args: AskCode;
  answer: FrameCode;
}
export interface AskCode {
  blob: string;
  sort: SortKey[];
  filter: FilterKey[];
}
export interface FrameCode {
  code: string;
}
export interface TreeChildrenOperation {
  args: ReadTree;
  answer: TreePage;
}
/**
 * Ask for children `offset` to `offset + limit - 1` of the value at a path from the root, or at a place.
 */
export interface ReadTree {
  blob: string;
  path: (string | number)[];
  place: BytePlace | null;
  offset: number;
  limit: number;
}
/**
 * Place a value in the document, in bytes, as an earlier answer gave it; this saves walking the path.
 */
export interface BytePlace {
  start: number;
  end: number;
}
/**
 * List children. `value` is the container itself, `total` the number of its children.
 */
export interface TreePage {
  value: TreeChild;
  total: number;
  offset: number;
  children: TreeChild[];
}
/**
 * Describe one value. `position` is its number in its container, which a path may hold; `step` is the Python
 * that reaches it, "" where its key is too long or secret; `count` is None for what has no children.
 */
export interface TreeChild {
  position: number;
  key: string | null;
  text: string;
  kind: string;
  count: number | null;
  step: string;
  place: BytePlace;
}
export interface TreeFindOperation {
  args: FindInTree;
  answer: TreePath;
}
/**
 * Search for the next key or value after byte `after` that holds `text`, large and small letters alike.
 */
export interface FindInTree {
  blob: string;
  text: string;
  after: number;
}
/**
 * List the positions on the way from the root; `next` is the byte to search on from. Where there is nothing,
 * `found` is False and the positions are those of the part of the way that exists.
 */
export interface TreePath {
  found: boolean;
  way: number[];
  next: number;
  note: string;
}
export interface TreeWayOperation {
  args: FindPath;
  answer: TreePath;
}
/**
 * Ask for the place of a value by a path of keys and numbers.
 */
export interface FindPath {
  blob: string;
  path: (string | number)[];
}
export interface TreeValueOperation {
  args: ReadValue;
  answer: TreeValue;
}
export interface ReadValue {
  blob: string;
  place: BytePlace;
}
export interface TreeValue {
  text: string;
}
export interface LinesWindowOperation {
  args: ReadLines;
  answer: LineWindow;
}
/**
 * Ask for the lines `first` to `first + count - 1`, counted from 1.
 */
export interface ReadLines {
  blob: string;
  first: number;
  count: number;
}
export interface LineWindow {
  first: number;
  total: number;
  lines: TextLine[];
}
/**
 * Carry one line; `more` says how much of it is left out, "" for nothing.
 */
export interface TextLine {
  text: string;
  more: string;
}
export interface LinesFindOperation {
  args: FindLines;
  answer: LineMatches;
}
/**
 * Search from byte `start` on; `regex` takes the text as a regular expression (RE2).
 */
export interface FindLines {
  blob: string;
  text: string;
  start: number;
  ignore_case: boolean;
  regex: boolean;
  limit: number;
}
/**
 * List matches; `next` is the byte to search on from, None at the end.
 */
export interface LineMatches {
  matches: LineMatch[];
  next: number | null;
}
/**
 * Place one match; `offset` counts bytes in the line.
 */
export interface LineMatch {
  line: number;
  offset: number;
}
export interface LinesWholeOperation {
  args: WholeLine;
  answer: LinePiece;
}
/**
 * Ask for a piece of one line, from byte `offset` of it.
 */
export interface WholeLine {
  blob: string;
  line: number;
  offset: number;
}
/**
 * Carry a piece of a line. `caption` names the piece; `previous` and `next` are offsets, None at either end.
 */
export interface LinePiece {
  line: number;
  offset: number;
  text: string;
  caption: string;
  previous: number | null;
  next: number | null;
}
export interface LinesAtOperation {
  args: LocateByte;
  answer: LinePlace;
}
export interface LocateByte {
  blob: string;
  byte: number;
}
export interface LinePlace {
  line: number;
  offset: number;
}
export interface TraceOpenOperation {
  args: OpenRun;
  answer: OpenedRun;
}
export interface OpenRun {
  run: string;
}
/**
 * Describe a run to its viewer.
 *
 * Attributes:
 *     run: its whole id, by which the rest is asked for.
 *     view: the head, the answer and what can be done with it.
 *     summary: what stands beside the heading of the details.
 *     about: the details beside the steps: rules, what was sent, the prompt.
 *     steps: the list; `more` says what of it was left out.
 *     running: whether its record still grows; `stoppable` whether `run.stop` ends it.
 */
export interface OpenedRun {
  run: string;
  view: View;
  summary: string;
  about: Block[];
  steps: StepRow[];
  more: string;
  running: boolean;
  stoppable: boolean;
}
/**
 * One line of the list.
 *
 * Attributes:
 *     id: "m" and the number of the step for a model call, "c" and the place in `trace.calls` for a tool call; for a
 *         line of an inner run after the id of its call and a dot.
 *     title: marked with an arrow for each inner run that the line lies in.
 *     about: the end of the line: the error, the arguments, the text.
 *     size: tokens of a model call, bytes of what a call gave back.
 *     start, share: where in the run's time it lies and how much of it it took, of 1.
 *     depth: 1 for a call that a model asked for.
 */
export interface StepRow {
  id: string;
  kind: "model" | "call";
  title: string;
  about: string;
  state: string;
  tone: "plain" | "good" | "bad" | "warn" | "info" | "muted";
  seconds: string;
  size: string;
  cost: string;
  start: number;
  share: number;
  depth: number;
}
export interface TracePartOperation {
  args: OpenPart;
  answer: OpenedPart;
}
export interface OpenPart {
  run: string;
  id: string;
}
/**
 * Show the details of one step; `blob` is the id of its blob, "" for none.
 */
export interface OpenedPart {
  request: View;
  response: View;
  blob: string;
}
export interface TraceDiffOperation {
  args: CompareRuns;
  answer: OpenedComparison;
}
export interface CompareRuns {
  a: string;
  b: string;
}
/**
 * Show two runs side by side: totals and prompts, the calls aligned, the answers and each side's own.
 */
export interface OpenedComparison {
  a: string;
  b: string;
  view: View;
  pairs: PairRow[];
  answers: Block[];
  sides: View[];
  more: string;
}
/**
 * One line of the aligned calls.
 */
export interface PairRow {
  id: string;
  step: string;
  a: string;
  b: string;
  same: string;
  tone: "plain" | "good" | "bad" | "warn" | "info" | "muted";
}
export interface TracePairOperation {
  args: OpenPair;
  answer: OpenedPair;
}
export interface OpenPair {
  a: string;
  b: string;
  id: string;
}
/**
 * Show the difference of two calls, and each of them in its column; a missing one has no blocks.
 */
export interface OpenedPair {
  differing: Block[];
  sides: View[];
}
export interface TraceChartOperation {
  args: DrawChart;
  answer: DrawnChart;
}
export interface DrawChart {
  run: string;
}
/**
 * Show a chart of the table that a run's answer rests on; where none suggests itself, the blocks say so.
 */
export interface DrawnChart {
  blocks: Block[];
}
export interface RunsListOperation {
  args: ListRuns;
  answer: ListedRuns;
}
export interface ListRuns {
  limit: number;
}
export interface ListedRuns {
  rows: RunRow[];
  more: string;
}
/**
 * Offer one run: `title` is its prompt or its call, `facts` model, steps and time, `when` its start.
 */
export interface RunRow {
  run: string;
  title: string;
  facts: string;
  when: string;
  state: Badge;
}
export interface RunStopOperation {
  args: StopRun;
  answer: RunStop;
}
export interface StopRun {
  run: string;
}
/**
 * Confirm a stop; `stopping` is False when the run had ended already.
 */
export interface RunStop {
  stopping: boolean;
}
export interface ModuleOpenOperation {
  args: ReadModule;
  answer: PackagedModule;
}
export interface ReadModule {
  name: "explorer" | "blob" | "grid" | "trace";
}
/**
 * Carry an ES module and its style sheet, as the package holds them.
 */
export interface PackagedModule {
  code: string;
  style: string;
}
/**
 * Hold what a display keeps: a view that needs no kernel, and the request for a live one.
 *
 * Attributes:
 *     protocol: the version that wrote it.
 *     session: the kernel session that the live part belongs to.
 *     view: drawn at once, and for good when the kernel is gone.
 *     live: the live view that may follow while that session lives; None for a small object.
 *     lost: of a run that goes on, what is drawn in place of `view` once the kernel that ran it is gone.
 */
export interface Snapshot {
  protocol: number;
  session: string;
  view: View;
  live: (LiveCatalog | LiveBlob | LiveFrame | LiveTrace | LiveDiff) | null;
  lost: View | null;
}
/**
 * Open the catalog explorer with the words of a search.
 */
export interface LiveCatalog {
  type: "catalog";
  query: string;
}
/**
 * Open the grid of a frame in memory, which the kernel holds for the view.
 */
export interface LiveFrame {
  type: "frame";
  frame: string;
}
/**
 * Open the viewer of a run; `running` while a background run goes on, which can then be stopped.
 */
export interface LiveTrace {
  type: "trace";
  run: string;
  running: boolean;
}
/**
 * Open two runs side by side.
 */
export interface LiveDiff {
  type: "diff";
  a: string;
  b: string;
}
/**
 * Open a connection: its first request.
 *
 * Attributes:
 *     host: "jupyterlab", "notebook", "widget".
 *     approves: whether questions about consent can be shown there.
 */
export interface Hello {
  protocol: number;
  host: string;
  version: string;
  approves: boolean;
}
/**
 * Answer `Hello`: name the kernel's session and versions.
 */
export interface Welcome {
  protocol: number;
  session: string;
  version: string;
  versions: {
    [k: string]: string;
  };
}
/**
 * Ask for one operation; `id` is a number of the view's own.
 */
export interface ViewRequest {
  type: "request";
  id: number;
  op: string;
  args: {
    [k: string]: unknown;
  };
}
/**
 * Stop working on a request; it is not answered any more.
 */
export interface Cancel {
  type: "cancel";
  id: number;
}
/**
 * Give the kernel a bounded copy of its notebook, unasked: before a cell runs, and when it rests after a change.
 *
 * It is not answered: while a cell runs the kernel reads no message, so it cannot ask for one.
 *
 * Attributes:
 *     more: how many cells are left out.
 */
export interface SentCells {
  type: "cells";
  cells: SentCell[];
  more: number;
}
/**
 * Carry one cell of a notebook.
 *
 * Attributes:
 *     count: the number of its last execution; None where it was not run.
 *     cut: how many characters of the source are left out.
 *     more: how many outputs are left out.
 */
export interface SentCell {
  id: string;
  kind: "code" | "markdown" | "raw";
  source: string;
  count: number | null;
  outputs: SentOutput[];
  cut: number;
  more: number;
}
/**
 * Carry the plain text of one output of a cell.
 *
 * Attributes:
 *     types: its MIME types beside plain text.
 *     cut: how many characters are left out.
 */
export interface SentOutput {
  kind: "stream" | "result" | "display" | "error";
  text: string;
  types: string[];
  cut: number;
}
/**
 * Answer the request `id`.
 */
export interface ViewAnswer {
  type: "answer";
  id: number;
  value: {
    [k: string]: unknown;
  };
}
/**
 * Refuse a request. `code` is "unknown" (no such operation), "invalid" (arguments), "failed" or "protocol"
 * (versions differ).
 */
export interface ViewFailure {
  type: "error";
  id: number;
  code: string;
  message: string;
  hint: string;
}
/**
 * Report how far the request `id` is: `done` of `total`.
 */
export interface ViewProgress {
  type: "progress";
  id: number;
  done: number;
  total: number;
  note: string;
}
/**
 * Carry an event that no request asked for.
 */
export interface ViewEvent {
  type: "event";
  event:
    | ApprovalAsked
    | ApprovalSettled
    | CatalogChanged
    | CellProposed
    | CellWithdrawn
    | RunChanged
    | ServersChanged
    | SessionChanged;
}
/**
 * Withdraw a question: it is answered, here or elsewhere, or its run has ended.
 *
 * Attributes:
 *     outcome: what was answered, in a sentence; "" if its run ended.
 */
export interface ApprovalSettled {
  name: "settled";
  id: string;
  outcome: string;
}
/**
 * Announce that actions came or went; pages from before `revision` are stale.
 */
export interface CatalogChanged {
  name: "catalog";
  revision: string;
}
/**
 * Propose a cell, which is inserted and never run: sent to the one front end that showed the notebook last.
 *
 * Attributes:
 *     cell: the id that it gets.
 *     below: ids of cells, of which it goes below the first that is there; below the active one where none is.
 */
export interface CellProposed {
  name: "proposal";
  cell: string;
  kind: "code" | "markdown";
  source: string;
  below: string[];
  run: string;
}
/**
 * Take a proposed cell out again, if it still holds this source and was not run.
 */
export interface CellWithdrawn {
  name: "withdrawal";
  cell: string;
  source: string;
}
/**
 * Announce that a run has new events, or has ended.
 */
export interface RunChanged {
  name: "run";
  run: string;
  ended: boolean;
}
/**
 * Announce that an MCP server came, went, changed its state or its tools, was called, or wrote something.
 */
export interface ServersChanged {
  name: "servers";
}
/**
 * Announce that a cell has run: runs, stored results, the model or what was spent may be others.
 */
export interface SessionChanged {
  name: "session";
}
