// All records of one operation in a trace, page by page, whatever their number: by columns, in the order of one of them,
// those that fulfil a condition. It fetches a thousand at a time and shows a hundred, and says which rows stand out.

import { type Client, isAbort, Problem, save } from "../client";
import { type Child, h, replace } from "../dom";
import { count, fileName, number } from "../format";
import type { Sorting } from "../table";
import { loading, notice, refusal, showFailure } from "../states";
import { columnNames, isShortened, type RowColumn } from "../values";
import { hashOf } from "./model";
import { fetchTrace, type TraceQuery } from "./queries";
import type { TracedNode, TraceRecord } from "./results";
import { type RecordHref, recordOf, recordTable, rowColumns } from "./rows";
import * as sentences from "./sentences";
import type { TableState } from "./state";

const FETCH_SIZE = 1000;
const PAGE_SIZE = 100;
const EVERY_COLUMN = "*";

export interface TableSubject {
  readonly nodeId: string;
  readonly name: string;
  /** Path of its file or folder, if it has one. */
  readonly path: string | null;
  readonly query: TraceQuery;
  readonly state: TableState;
}

export interface Table {
  readonly element: HTMLElement;
  close(): void;
}

export interface TableContext {
  readonly client: Client;
  readonly closeHref: string;
  /** The address of the same table, shown in another way. */
  readonly hrefWith: (changes: Partial<TableState>) => string;
  readonly recordHref: RecordHref;
  announce(text: string): void;
}

export function makeTable(subject: TableSubject, context: TableContext): Table {
  const { client, closeHref, hrefWith, recordHref, announce } = context;
  const { nodeId, query, state } = subject;
  const element = h("section", { class: "trace-table", "aria-label": `All records of ${subject.name}` });
  const requests = new AbortController();
  const records: TraceRecord[] = [];
  const heading = h("h2", { tabindex: -1 }, subject.name);
  const outlierNotices = h("div", {});
  const choices = h("div", { class: "tools" });
  const body = h("div", {});
  let schema: TracedNode["schema"] = null;
  let warnings: readonly string[] = [];
  let [total, matches] = [0, 0];
  let next: string | null = null;
  let isPartial = false;
  let first = 0;
  const asked = { only: nodeId, sort: state.sort, desc: state.isDescending || null, filter: state.filter };

  const load = async (): Promise<void> => {
    replace(body, loading());
    const options = { limit: FETCH_SIZE, hops: null, values: true, cursor: next, remarks: true, ...asked };
    try {
      const result = await fetchTrace(client, query, { ...options, columns: EVERY_COLUMN }, requests.signal);
      const node = result.trace.nodes.find((traced) => traced.node_id === nodeId);
      records.push(...(node?.records ?? []));
      total = node?.total ?? total;
      matches = node?.matches ?? (state.filter === null ? total : matches);
      schema = node?.schema ?? schema;
      warnings = node?.warnings ?? warnings;
      next = result.trace.next;
      isPartial = result.isPartial;
      if (node?.remarks) showRemarks(node);
      show();
    } catch (error) {
      if (isAbort(error)) return;
      if (error instanceof Problem && error.status === 422) replace(body, refusal(error));
      else showFailure(body, error, () => void load());
    }
  };

  const goTo = async (to: number): Promise<void> => {
    first = to;
    if (first >= records.length && next !== null) await load();
    else show();
    heading.scrollIntoView({ block: "nearest" });
    announce(range());
  };

  const word = subject.path === null ? "record" : "row";
  const range = (): string => {
    const last = Math.min(first + PAGE_SIZE, records.length);
    if (matches === 0) return state.filter === null ? "No records" : "None of them fulfils the condition";
    const all = state.filter === null ? count(total, "record") : count(matches, "match", "matches");
    return `${number(first + 1)} to ${number(last)} of ${all}`;
  };

  const show = (): void => {
    const of = subject.path === null ? subject.name : fileName(subject.path);
    replace(
      heading,
      state.filter === null ? `${count(total, word)} of ${of}` : `${number(matches)} of ${count(total, word)} of ${of}`,
    );
    const page = records.slice(first, first + PAGE_SIZE);
    const isLast = first + PAGE_SIZE >= records.length && next === null;
    const button = (label: string, to: number, isOff: boolean) =>
      h("button", { type: "button", disabled: isOff, click: () => void goTo(to) }, label);
    const empty = state.filter === null ? "The trace reached no records there." : "No record fulfils the condition.";
    replace(choices, choicesOf(page, rowColumns(page, schema)));
    replace(
      body,
      isPartial && notice("caution", sentences.stopped(query.direction)),
      warnings.map((warning) => notice("caution", warning)),
      page.length > 0 ? tableOf(page) : notice("empty", empty),
      h(
        "nav",
        { class: "pages", "aria-label": "Pages of the table" },
        button("Previous", Math.max(0, first - PAGE_SIZE), first === 0),
        button("Next", first + PAGE_SIZE, isLast),
        h("span", { class: "soft" }, range()),
      ),
    );
  };

  const tableOf = (page: readonly TraceRecord[]): HTMLElement =>
    recordTable({
      caption: range(),
      records: page,
      schema,
      keyOf: (record) => hashOf(nodeId, record),
      hrefOf: (record) => recordHref(nodeId, record),
      chosen: state.columns,
      isFull: state.isFull,
      sortingOf,
    });

  /** The smallest first, then the largest, then as the records are. */
  const sortingOf = (column: string): Sorting => {
    if (state.sort !== column) return { order: null, href: hrefWith({ sort: column, isDescending: false }) };
    return state.isDescending
      ? { order: "descending", href: hrefWith({ sort: null, isDescending: false }) }
      : { order: "ascending", href: hrefWith({ sort: column, isDescending: true }) };
  };

  /** Which of the columns are shown, and how. */
  const choicesOf = (page: readonly TraceRecord[], columns: readonly RowColumn[]): Child => [
    columns.length > 1 && columnChoice(columns.map(({ name }) => name)),
    isShortened(page.map(({ source }) => source?.columns)) &&
      h("a", { href: hrefWith({ isFull: !state.isFull }) }, state.isFull ? "Round long values" : "Show whole values"),
    state.sort !== null && h("a", { href: hrefWith({ sort: null, isDescending: false }) }, "In their own order"),
  ];

  const columnChoice = (names: readonly string[]): HTMLElement => {
    const boxes = names.map((name) => {
      const isShown = state.columns === null || state.columns.includes(name);
      return h("input", { type: "checkbox", value: name, checked: isShown });
    });
    const submit = (event: SubmitEvent) => {
      event.preventDefault();
      const chosen = boxes.filter(({ checked }) => checked).map(({ value }) => value);
      const isAll = chosen.length === 0 || chosen.length === names.length;
      location.hash = hrefWith({ columns: isAll ? null : chosen });
    };
    return h(
      "details",
      { class: "column-choice" },
      h(
        "summary",
        {},
        state.columns === null ? `Columns: all ${names.length}` : `Columns: ${state.columns.length} of ${names.length}`,
      ),
      h(
        "form",
        { submit },
        boxes.map((box) => h("label", {}, box, " ", box.value)),
        h("button", { type: "submit" }, "Show these"),
      ),
    );
  };

  /** The service looks at all rows, and says it with the first page. */
  const showRemarks = ({ remarks, remarks_of: seen, total: all }: TracedNode): void => {
    const lines = (remarks ?? []).map((remark): Child =>
      h(
        "p",
        { class: "notice outlier" },
        h("a", { href: recordHref(nodeId, recordOf(remark)) }, sentences.remarkText(remark)),
      ),
    );
    const coverage =
      typeof seen === "number" && seen < all
        ? h("p", { class: "soft" }, `Checked: the first ${number(seen)} of ${number(all)}.`)
        : null;
    replace(outlierNotices, lines, lines.length > 0 && coverage);
  };

  const status = h("span", { role: "status", class: "soft" });
  const download = async (event: Event): Promise<void> => {
    const { currentTarget: button } = event;
    if (!(button instanceof HTMLButtonElement)) return;
    button.disabled = true;
    const { application, start, direction } = query;
    const hasColumns = rowColumns(records, schema).length > 0;
    const columns = hasColumns ? (state.columns === null ? EVERY_COLUMN : columnNames(state.columns)) : null;
    const parameters = { ...start, direction, values: true, ...asked, columns };
    try {
      const onRows = (rows: number): void => replace(status, `${number(rows)} of ${number(matches)} rows …`);
      const { text, rows } = await client.csv(application, "trace", parameters, { signal: requests.signal, onRows });
      save(text, `${direction}-${application}-${nodeId.slice(nodeId.lastIndexOf("#") + 1)}.csv`);
      replace(status, `${count(rows, "row")} saved.`);
    } catch (error) {
      if (!requests.signal.aborted) replace(status, error instanceof Error ? error.message : String(error));
    } finally {
      button.disabled = false;
    }
  };

  const condition = h("input", {
    name: "filter",
    type: "search",
    class: "code",
    size: 40,
    value: state.filter ?? "",
    placeholder: "wind > 40 and origin = 'EWR'",
    spellcheck: "false",
    autocomplete: "off",
  });
  const filter = (event: SubmitEvent) => {
    event.preventDefault();
    location.hash = hrefWith({ filter: condition.value.trim() || null });
  };
  replace(
    element,
    heading,
    h(
      "div",
      { class: "tools" },
      subject.path !== null && h("span", { class: "id" }, subject.path),
      h("button", { type: "button", click: (event: Event) => void download(event) }, "All as CSV"),
      h("a", { href: closeHref }, "Close the table"),
      status,
    ),
    outlierNotices,
    h(
      "form",
      { class: "fields", role: "search", submit: filter },
      h("label", {}, h("span", {}, "Rows for which"), condition),
      h("button", { type: "submit" }, "Filter"),
    ),
    choices,
    body,
  );
  void load().then(() => {
    if (requests.signal.aborted) return;
    element.scrollIntoView({ block: "start" }); // again: now it is as high as it is
    announce(range());
  });
  return { element, close: () => requests.abort() };
}
