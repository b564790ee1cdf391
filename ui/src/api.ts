// Types of the API's answers, from its OpenAPI document.
// Do not edit: `python -m scripts.page_types` makes this file.

/** Why an operation has no record with a key. */
export interface Absence {
  application_id: string;
  name: string;
  asked: KeyedOperation;
  key: string;
  holders: KeyHolder[];
  without: KeyedOperation[];
  exact: boolean;
  complete: boolean;
  reasons: string[];
}

/** One Spark application. */
export interface Application {
  application_id: string;
  name: string;
  job?: string | null;
  state: "running" | "ended" | "failed" | "lost";
  started: number;
  ended: number | null;
  complete: boolean;
  missing_blocks: number;
  counters: { [name: string]: number };
  missing: string;
  error: ApplicationError | null;
  replay_of?: string | null;
}

/** Why an application failed. */
export interface ApplicationError {
  type: string;
  message: string;
  frame: string | null;
  node_id: string | null;
  name: string | null;
  call_site: string | null;
}

/** An application that is running or incomplete. */
export interface ApplicationLag {
  application_id: string;
  name: string;
  state: "running" | "ended" | "failed" | "lost";
  messages: number;
  seconds: number;
  incomplete_runs: number;
  missing_blocks: number;
  missing_runs: number;
  missing_events: number;
  dropped: number;
  missing: string;
  gaps: number;
}

/** One page of the applications. */
export interface Applications {
  applications: Application[];
  next: string | null;
}

/** An input of an output, and which of its rows fulfil the condition. */
export interface AskedInput {
  application_id: string;
  node_id: string;
  name: string;
  dataset: string;
  condition: string | null;
  lacks: string[];
  matches: number | null;
  note: string;
}

/** A record that the rows were traced from. */
export interface AskedRecord {
  node: number;
  record_id: string;
  path: string | null;
  row: number | null;
  text: string | null;
  key: string | null;
}

/** A row of an input that is not the same in both runs. */
export interface ChangedInput {
  path: string;
  row: number;
  line: number;
  was: string | null;
  is: string | null;
}

/** An output row that has another value. */
export interface ChangedOutput {
  was: string;
  is: string;
  key: string | null;
}

/** A row that both runs wrote, with other values. */
export interface ChangedRow {
  key: { [name: string]: unknown } | null;
  was: { [name: string]: unknown };
  is: { [name: string]: unknown };
  was_record: string;
  is_record: string;
  columns: string[];
  because: ChangedInput[] | null;
  because_note: string;
}

/** A row at which a trace can start. */
export interface Choice {
  node_id: string;
  record_id: string;
  path: string | null;
  row: number | null;
  line: number | null;
  columns: { [name: string]: unknown } | null;
  text: string | null;
  warning: string | null;
}

/** The rows of a dataset that fulfil a condition: a trace starts at one of them, or at all. */
export interface Choices {
  application_id: string;
  name: string;
  started: number;
  direction: "backward" | "forward";
  dataset: string | null;
  where: string | null;
  version?: string | null;
  nodes: string[];
  total: number | null;
  files: number;
  choices: Choice[];
  next: string | null;
  warnings: string[];
}

/** A column of a dataset, or a field of a struct. */
export interface Column {
  name: string;
  type: string;
  nullable: boolean | null;
  fields: Column[];
}

/** The other run, and the rows that explain a record in one of the two alone. */
export interface ComparedExplanation {
  application_id: string;
  name: string;
  starts: TraceStart[];
  total: number;
  same: number;
  gone: ExplainedRow[];
  gone_total: number;
  new: ExplainedRow[];
  new_total: number;
  exact: boolean;
  complete: boolean;
  reasons: string[];
}

/** A row that only one of the runs wrote. */
export interface ComparedRow {
  key: { [name: string]: unknown } | null;
  record: string;
  path: string | null;
  row: number | null;
  columns: { [name: string]: unknown };
  because: ChangedInput[] | null;
  because_note: string;
}

/** One of the two runs that are compared: an application, and the sink that wrote the rows. */
export interface ComparedRun {
  application_id: string;
  name: string;
  started: number;
  node_id: string;
  dataset: string;
  rows: number | null;
  complete: boolean;
}

/** What two runs wrote, row by row. */
export interface Comparison {
  runs: ComparedRun[];
  key: string[];
  gone: ComparedRow[];
  new: ComparedRow[];
  changed: ChangedRow[];
  same: number | null;
  gone_total: number | null;
  new_total: number | null;
  changed_total: number | null;
  complete: boolean;
  exact: boolean;
  truncated: boolean;
  warnings: string[];
}

/** What the sources of bad outputs share and those of good ones do not. */
export interface Contrast {
  application_id: string;
  name: string;
  properties: SharedProperty[];
  compared: number;
  complete: boolean;
  how: string[];
}

/** Where the records of a source or sink are stored, named by OpenLineage's rules. */
export interface Dataset {
  namespace: string;
  name: string;
  format: string;
  partitions: string[];
  symlinks: Symlink[];
  version: string | null;
}

/** What is before and behind a dataset, across applications. */
export interface DatasetGraph {
  nodes: DatasetGraphNode[];
  edges: DatasetGraphEdge[];
  truncated: boolean;
}

/** `source` is read by `target`, or writes it. */
export interface DatasetGraphEdge {
  source: string;
  target: string;
  exact: boolean;
}

/** A dataset, or a job: all applications of one name. */
export interface DatasetGraphNode {
  id: string;
  kind: "dataset" | "job";
  layer: number;
  namespace: string;
  name: string;
  runs: number;
  failed_runs: number;
  application_id: string | null;
  at: number | null;
  remark: string;
}

/** One dataset: its history, and what is before and behind it. */
export interface DatasetPage {
  dataset: DatasetSummary;
  history: DatasetUse[];
  total: number;
  next: string | null;
  graph: DatasetGraph;
  unread_applications: number;
}

/** A file, folder, table or topic that applications wrote or read. */
export interface DatasetSummary {
  namespace: string;
  name: string;
  path: string;
  format: string;
  aliases: string[];
  schema: Column[];
  partitions: string[];
  written: DatasetWrite | null;
  read_at: number | null;
  writers: number;
  readers: number;
  runs: number;
  failed_runs: number;
  remark: string;
}

/** One application wrote or read a dataset. */
export interface DatasetUse {
  kind: "write" | "read";
  application_id: string;
  name: string;
  node_ids: string[];
  operation: string;
  call_site: string;
  at: number;
  rows: number | null;
  state: "running" | "complete" | "failed" | "aborted" | "lost";
  complete: boolean;
  exact: boolean;
  reason: string;
  error: NodeError | null;
}

/** The latest write of a dataset. */
export interface DatasetWrite {
  application_id: string;
  name: string;
  node_id: string;
  at: number;
  rows: number | null;
  state: "running" | "complete" | "failed" | "aborted" | "lost";
  complete: boolean;
}

/** One page of the datasets. */
export interface Datasets {
  datasets: DatasetSummary[];
  total: number;
  next: string | null;
  unread_applications: number;
}

/** A row that was demanded, and whether and how it leads to the records that are explained. */
export interface DemandedRow {
  node_id: string;
  name: string;
  record_id: string;
  path: string | null;
  row: number | null;
  line: number | null;
  text: string | null;
  warning: string | null;
  in_trace: boolean;
  exact: boolean;
  way: WayRecord[];
  note: string;
}

/** An operation that made one record of several equal rows of an input. */
export interface Duplicate {
  node_id: string;
  name: string;
  description: string;
  call_site: string;
  why: string;
  total: number;
  equal: Record[];
  exact: boolean;
}

/** `source` sends records to `target`. */
export interface Edge {
  source: string;
  target: string;
  flows: number | null;
  shuffle: boolean;
}

/** An input record of an explanation, with the row of a file that it is. */
export interface ExplainedRow {
  node_id: string;
  name: string;
  record_id: string;
  path: string | null;
  row: number | null;
  line: number | null;
  text: string | null;
  warning: string | null;
  of?: ("A" | "B")[] | null;
  demanded?: boolean | null;
}

/** One of two records that are explained together. A key may stand for several. */
export interface ExplainedSide {
  starts: TraceStart[];
  total: number;
}

/** The input rows that decided what some records are. */
export interface Explanation {
  kind: "concise" | "bound" | "verified";
  application_id: string;
  name: string;
  starts: TraceStart[];
  rows: ExplainedRow[];
  total: number;
  of: number | null;
  plain_total: number | null;
  turns: ExplanationTurn[];
  rules: ExplanationRule[];
  given: GivenValues[];
  exact: boolean;
  complete: boolean;
  verified: Verification | null;
  checks: ExplanationCheck[];
  reasons: string[];
  next: string | null;
  same?: Meeting | null;
  demanded?: DemandedRow[] | null;
  how?: string | null;
  how_graph?: HowGraph | null;
  compared?: ComparedExplanation | null;
}

/** What running the job has shown of these records, as it was recorded. */
export interface ExplanationCheck {
  checked_at: number;
  these_rows: boolean;
  runs: number;
  minimal: boolean;
  total: number;
  added: ExplainedRow[];
  added_total: number;
  left_out_total: number;
  notes: string[];
}

/** Why the explanation is smaller than the trace at an operation. */
export interface ExplanationRule {
  node_id: string;
  name: string;
  call_site: string;
  rule: "winner" | "unchanged";
  kept: number;
  of: number;
}

/** Records on the way to the start that one turn of a loop gave, and the rows that came in with it. */
export interface ExplanationTurn {
  loop: string;
  turn: number;
  node_id: string;
  name: string;
  total: number;
  records: Record[];
  until: number[];
  rows_total: number;
  rows: ExplainedRow[];
}

/** The record that a function was given when it failed. */
export interface FailedRecord {
  record_id: string;
  node_id: string;
  value: string | null;
}

/** An output row of the original that was found wrong. */
export interface FailingOutput {
  path: string;
  row: number;
  line: number;
  text: string;
}

/** One failure: of a task and its further attempts, or of an action whose culprit is not known. */
export interface Failure {
  failure: number;
  error: string;
  message: string;
  frame: string | null;
  node_id: string | null;
  name: string | null;
  call_site: string | null;
  stage: number | null;
  partition: number | null;
  attempts: number;
  record: FailedRecord | null;
  sources: SourceRow[];
  sources_total: number;
  exact: boolean;
  recovered: boolean;
  reason: string;
}

/** All failures of an application that are known. */
export interface Failures {
  application_id: string;
  name: string;
  failures: Failure[];
  complete: boolean;
  how: string;
}

/** One record went into a node and came out of it. */
export interface Flow {
  hash_in: string;
  hash_out: string;
  node_id: string;
}

/** Values that the program had, and may have put into records: they are taken as they are. */
export interface GivenValues {
  node_id: string;
  name: string;
  call_site: string;
  path: string | null;
  results: number | null;
}

/** The operations of one application and the edges between them. */
export interface Graph {
  application_id: string;
  nodes: Node[];
  edges: Edge[];
}

/** The lag of the consumer group. */
export interface GroupLag {
  name: string;
  members: number | null;
  messages: number;
  seconds: number | null;
  rate: number | null;
  incoming_rate: number | null;
  drain_seconds: number | null;
  dead_letters: number;
  partitions: PartitionLag[];
}

/** Result of a probe. */
export interface Health {
  status: "ok";
}

/** An operation that gave a fact of others, which it needed together. */
export interface HowDerivation {
  fact: number;
  node_id: string;
  name: string;
  inputs: number[];
}

/** A record. Records of the turns of a loop that are the same are one fact. */
export interface HowFact {
  fact: number;
  node_id: string;
  name: string;
  record: Record;
  loop: string | null;
  first_turn: number | null;
  last_turn: number | null;
}

/** Facts, and the derivations that lead from one to another. */
export interface HowGraph {
  facts: HowFact[];
  derivations: HowDerivation[];
  truncated: boolean;
}

/** How much an output row of an application moves without each of the input rows that it was made of. */
export interface Influence {
  influence: string;
  application_id: string;
  output: FailingOutput;
  inputs: InfluentialRow[];
  total: number;
  way: "folds" | "halves" | "runs";
  why: string;
  whole: boolean;
  tests: number;
  exact: boolean;
  sandbox: string;
  seconds: number;
  notes: string[];
}

/** An input row, and the output without it. */
export interface InfluentialRow {
  record: string;
  path: string | null;
  row: number | null;
  line: number | null;
  text: string | null;
  change: number | null;
  failed: boolean;
  without: string | null;
  estimated: boolean;
}

/** An invalid part of a request. */
export interface InvalidField {
  where: string;
  message: string;
}

/** A job, by its executions and its waves. */
export interface Job {
  job: string;
  application_id: string | null;
  began: number | null;
  state: "running" | "ended" | "failed" | "lost" | null;
  complete: boolean | null;
  inputs: string[];
  outputs: string[];
  waves: number;
  runs: number;
  skips: number;
  last: Trigger | null;
  in_charge: ModelInCharge | null;
  saved_seconds: number;
  saved_unknown: number;
  spent_seconds: number;
  spent_unknown: number;
  run_next: boolean;
  retrain: boolean;
}

/** A job in a list. */
export interface JobEntry {
  job: string;
  application_id: string | null;
  began: number | null;
  waves: number;
}

/** All jobs. */
export interface Jobs {
  jobs: JobEntry[];
  unread_applications: number;
}

/** One of the last operations with the key, and what became of its records with the key. */
export interface KeyHolder {
  node_id: string;
  name: string;
  call_site: string;
  total: number;
  records: Record[];
  ended: MissingRow[];
  other_sides: OtherSide[];
  became: Record[];
  became_total: number;
}

/** An operation, the keys of whose records are known. */
export interface KeyedOperation {
  node_id: string;
  name: string;
  call_site: string;
}

/** The lag of the stores. */
export interface Lag {
  group: GroupLag;
  applications: ApplicationLag[];
  unread_applications: number;
}

/** How much of a trace was written to Neo4j. */
export interface Materialized {
  records: number;
  links: number;
  truncated: boolean;
  query: string;
}

/** What two records, A and B, have in common. */
export interface Meeting {
  equal: boolean | null;
  shared: SharedText[];
  a: ExplainedSide;
  b: ExplainedSide;
  both_total: number;
  meets: MeetingPoint | null;
}

/** The last operation with records that both explanations need. */
export interface MeetingPoint {
  node_id: string;
  name: string;
  loop: string | null;
  turn: number | null;
  total: number;
  records: Record[];
}

/** A sink, named for people. */
export interface MissedOutput {
  node_id: string;
  name: string;
  description: string;
  call_site: string;
  exact: boolean;
}

/** What became of rows of inputs. */
export interface Missing {
  application_id: string;
  name: string;
  rows: MissingRow[];
  reached: ReachedRow[];
  complete: boolean;
  inputs?: AskedInput[] | null;
  present?: Choice[] | null;
  truncated: boolean;
  warnings: string[];
}

/** A row that is not in some outputs, and one end of it on its way there. */
export interface MissingRow {
  application_id: string;
  node_id: string;
  record_id: string | null;
  path: string | null;
  row: number | null;
  line: number | null;
  text: string | null;
  columns: { [name: string]: unknown } | null;
  ended: RowEnd | null;
  candidates: RowEnd[];
  last: Record[];
  last_node_id: string;
  last_total: number;
  outputs: MissedOutput[];
  exact: boolean;
  reason: string;
}

/** What has come of the decisions of a model since it passed its test. */
export interface ModelInCharge {
  waves: number;
  skips: number;
  audits: number;
  broken: number;
  compliance: number | null;
  compliance_lower: number | null;
}

/** One operation of an application. */
export interface Node {
  node_id: string;
  node: number;
  name: string;
  description: string;
  kind: "source" | "operator" | "sink";
  call_site: string;
  exact: boolean;
  reason: string;
  dataset: Dataset | null;
  records: number | null;
  has_values: boolean;
  state: "complete" | "failed" | "aborted" | null;
  error: NodeError | null;
  schema: Column[];
  schema_note: string;
}

/** Why an action failed. */
export interface NodeError {
  type: string;
  message: string;
  frame: string | null;
}

/** The other input of a join or a subtraction at which records ended. */
export interface OtherSide {
  node_id: string;
  name: string;
  call_site: string;
  has_key: boolean | null;
}

/** How what one sink wrote differs from what it wrote in the original. */
export interface OutputDifferences {
  path: string;
  to: string | null;
  gone: string[];
  new: string[];
  changed: ChangedOutput[];
  gone_total: number | null;
  new_total: number | null;
  changed_total: number | null;
  same: number | null;
  note: string;
}

/** The lag of one topic partition. */
export interface PartitionLag {
  topic: string;
  partition: number;
  committed: number | null;
  first: number;
  next: number;
  messages: number;
  seconds: number | null;
}

/** Problem details (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  instance: string;
  errors?: InvalidField[] | null;
  next?: string | null;
}

/** A row, and the outputs that it is in. */
export interface ReachedRow {
  application_id: string;
  node_id: string;
  record_id: string | null;
  path: string | null;
  row: number | null;
  line: number | null;
  text: string | null;
  columns: { [name: string]: unknown } | null;
  outputs: MissedOutput[];
  duplicates: Duplicate[];
}

/** One record of a node. */
export interface Record {
  record_id: string;
  partition: number;
  offset: number;
  key?: string | null;
  value?: string | null;
  value_type?: string | null;
  source?: SourceRow | null;
  operation?: string | null;
}

/** One page of a node's records. */
export interface RecordPage {
  node_id: string;
  total: number | null;
  records: Record[];
  next: string | null;
  warnings: string[];
  schema?: Column[] | null;
}

/** What a replay would have done to something that is not its own. */
export interface Refusal {
  what: string;
  path: string | null;
  where: string | null;
}

/** A row whose value in one column is far from those of all others. A hint, no proof. */
export interface Remark {
  record_id: string;
  path: string;
  row: number;
  line: number;
  column: string;
  value: number;
  low: number;
  high: number;
  text: string;
}

/** One replay of an application. */
export interface Replay {
  replay: string;
  of_application: string;
  application: string | null;
  mode: "only" | "without" | "replace" | "all";
  strategy: "rows" | "repair" | "watch";
  rounds: number;
  rows: number;
  of: number | null;
  verdict: "reproduced" | "close" | "changed" | "no" | "refused";
  outputs: ReplayedOutput[];
  extra: number | null;
  used: UsedRows[];
  diff: OutputDifferences[] | null;
  skipped: string[] | null;
  refused: Refusal[] | null;
  steps: ReplayStep[] | null;
  exit_code: number | null;
  sandbox: string;
  began: number;
  seconds: number;
  notes: string[];
}

/** What came out of one operation, on the way of what was asked for. */
export interface ReplayStep {
  node_id: string;
  name: string;
  kind: string;
  call_site: string;
  exact: boolean;
  total: number;
  records: StepRecord[];
}

/** An output row that was asked for, or a failure, and what the replay has in its place. */
export interface ReplayedOutput {
  path: string | null;
  row: number | null;
  line: number | null;
  record: string | null;
  verdict: "reproduced" | "close" | "changed" | "no" | "refused";
  was: string | null;
  is: string | null;
  alike: number | null;
  why: string;
}

/** What ran an application again, while its sandbox is there. */
export interface Replays {
  application_id: string;
  replays: Replay[];
  influences: Influence[];
  sifts: Sift[];
}

/** An operation at which a row ended, or may have ended. */
export interface RowEnd {
  node_id: string;
  name: string;
  description: string;
  call_site: string;
  why: string;
}

/** The versions of a table that changed one row, the oldest first. */
export interface RowHistory {
  dataset: string;
  where: string | null;
  version: number;
  version_name: string;
  row_id: number | null;
  by: "row_id" | "links";
  complete: boolean;
  versions: RowVersion[];
  warnings: string[];
}

/** Which rows of the sources of an application some records were made of. */
export interface RowSet {
  application: string;
  sources: RowSetSource[];
  asked: AskedRecord[];
  exact: boolean;
  complete: boolean;
  how: string | null;
}

/** The rows of one file. */
export interface RowSetFile {
  path: string;
  size: number | null;
  modified: number | null;
  rows: [number, number][];
}

/** A source of the application, and which of its rows are meant. */
export interface RowSetSource {
  node: number;
  name: string;
  call_site: string | null;
  path: string | null;
  whole: boolean;
  why: string | null;
  partitions: number | null;
  total: number | null;
  files: RowSetFile[];
  splits: RowSetSplit[];
  listed: SourceRow[];
}

/** The records of one partition of a source. */
export interface RowSetSplit {
  split: number;
  positions: [number, number][];
}

/** What one version of the table did with the row. */
export interface RowVersion {
  version: number;
  version_name: string;
  time: number | null;
  change: "inserted" | "changed" | "rewritten" | "deleted";
  operation: string;
  engine: string;
  path: string | null;
  row: number | null;
  line: number | null;
  columns: { [name: string]: unknown } | null;
  application_id: string | null;
  application_name: string | null;
  node_id: string | null;
  record_id: string | null;
  warning: string | null;
}

/** Something that input rows of bad outputs have, and those of good ones mostly have not. */
export interface SharedProperty {
  property: string;
  bad: number;
  of_bad: number;
  good: number;
  of_good: number;
  score: number;
  g: number;
  unusual: boolean;
}

/** A text that both records have. */
export interface SharedText {
  what: string;
  text: string;
}

/** The smallest part of an application's input that still fails. */
export interface Sift {
  sift: string;
  application_id: string;
  test: string;
  rows: SiftedRow[];
  total: number;
  of: number;
  outputs: FailingOutput[];
  tests: number;
  sufficient: boolean;
  necessary: boolean | null;
  minimal: boolean;
  whole: boolean;
  unresolved: number;
  exact: boolean;
  sandbox: string;
  seconds: number;
  saved: string | null;
  notes: string[];
}

/** An input row that it takes to fail. */
export interface SiftedRow {
  record: string;
  path: string | null;
  row: number | null;
  line: number | null;
  text: string | null;
}

/** The records of an application that took long. */
export interface Slow {
  application_id: string;
  name: string;
  records: SlowRecord[];
  total: number;
  inputs: SlowInput[];
  operations: SlowOperation[];
  partitions: SlowPartition[];
  complete: boolean;
  how: string;
}

/** An input row, and the time of the slow records that were made of it. */
export interface SlowInput {
  ms: number;
  records: number;
  source: SourceRow;
}

/** An operation, and the time of the slow records at which it was. */
export interface SlowOperation {
  ms: number;
  records: number;
  node_id: string;
  name: string;
  call_site: string;
}

/** A partition of an operation, and the time of its slow records. */
export interface SlowPartition {
  ms: number;
  records: number;
  node_id: string;
  partition: number;
}

/** A record at which a task was for long. */
export interface SlowRecord {
  ms: number;
  node_id: string;
  name: string;
  call_site: string;
  partition: number;
  record: SlowRecordId | null;
  sources: SourceRow[];
  sources_total: number;
  exact: boolean;
  reason: string;
}

/** The record that a function was given. */
export interface SlowRecordId {
  record_id: string;
  node_id: string;
  key: string | null;
  value: string | null;
}

/** A row of a file. */
export interface SourceRow {
  path: string;
  row: number;
  line: number;
  text: string | null;
  warning: string | null;
  columns?: { [name: string]: unknown } | null;
  columns_cut?: boolean | null;
}

/** A record that an operation gave in a replay. */
export interface StepRecord {
  record_id: string | null;
  key: string | null;
  value: string | null;
  value_type: string | null;
  path: string | null;
  line: number | null;
  made_of: string[];
}

/** A task of an operation, or an operation as a whole, and why it is suspected. */
export interface Suspect {
  rank: number;
  node_id: string;
  name: string;
  call_site: string;
  partition: number | null;
  score: number;
  unusual: boolean;
  feature: "outputs" | "inputs" | "dropped" | "records" | "drift";
  value: number;
  low: number | null;
  high: number | null;
  others: number;
  why: string;
  record: SuspectRecord | null;
  sources: SourceRow[];
  sources_total: number;
  leads_to_bad: boolean | null;
  follows_from: number | null;
}

/** The record that stands out most among those of a task. */
export interface SuspectRecord {
  record_id: string;
  node_id: string;
}

/** The tasks and operations of an application that behave oddly, the oddest first. */
export interface Suspects {
  application_id: string;
  name: string;
  method: "graded" | "newt";
  suspects: Suspect[];
  total: number;
  tasks: number;
  tests: number;
  threshold: number | null;
  bad: number;
  good: number;
  earlier: number;
  complete: boolean;
  how: string[];
}

/** Another name of a dataset, such as that of its table in a catalog. */
export interface Symlink {
  namespace: string;
  name: string;
  type: string;
}

/** What one record came from, or what became of it, node by node. */
export interface Trace {
  direction: "backward" | "forward";
  start: Record[];
  start_node: string;
  starts: TraceStart[];
  complete: boolean;
  exact: boolean;
  truncated: boolean;
  nodes: TracedNode[];
  flows: Flow[];
  next: string | null;
  how: string;
}

/** A node at which a trace starts. */
export interface TraceStart {
  node_id: string;
  application_id: string;
  application_name: string;
  name: string;
  kind: string;
  total: number;
  records: Record[];
}

/** The records of one node that a trace reached. */
export interface TracedNode {
  node_id: string;
  application_id: string;
  application_name: string;
  name: string;
  kind: string;
  exact: boolean;
  total: number;
  records: Record[];
  reason: string;
  state: "complete" | "failed" | "aborted" | null;
  schema?: Column[] | null;
  matches?: number | null;
  warnings?: string[] | null;
  remarks?: Remark[] | null;
  remarks_of?: number | null;
  sample?: string[] | null;
}

/** One answer, for one wave of a job. */
export interface Trigger {
  job: string;
  wave: string;
  decision: "run" | "skip";
  reason: string;
  why: string;
  phase: "certain" | "training" | "application";
  bound: number | null;
  confidence: number | null;
  probability: number | null;
  threshold: number | null;
  error: number | null;
  compliance: number | null;
  compliance_lower: number | null;
  compliance_waves: number | null;
  is_audit: boolean | null;
  seconds: number | null;
  asked: number;
  application_id: string | null;
  repeated: boolean;
  refused: boolean;
}

/** The rows of one input that a replay took, left out or replaced. */
export interface UsedRows {
  node: number;
  name: string;
  path: string | null;
  rows: [number, number][] | null;
  why: string;
}

/** The value of a record at one node of its trace. */
export interface ValueStep {
  node_id: string;
  application_id: string;
  application_name: string;
  name: string;
  record_id: string;
  type: string;
  value: string;
  cut: boolean;
}

/** The captured values of one record along its trace. */
export interface Values {
  node_id: string;
  record_id: string;
  captured: boolean;
  how: string;
  steps: ValueStep[];
}

/** How it was found that the job gives the start again on the rows alone. */
export interface Verification {
  runs: number;
  added: number;
  minimal: boolean;
}

/** The waves of a job that were asked about. */
export interface Waves {
  job: string;
  waves: Trigger[];
}

/** A record on the way from a demanded row to a record that is explained. */
export interface WayRecord {
  node_id: string;
  name: string;
  loop: string | null;
  turn: number | null;
  record: Record;
}
