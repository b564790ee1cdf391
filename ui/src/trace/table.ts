// All records of one operation in a trace, page by page, whatever their number. It
// fetches a thousand at a time and shows a hundred, and says which rows stand out.

import { type Client, save } from "../client";
import { type Child, h, replace } from "../dom";
import { count, fileName, number } from "../format";
import { loading, notice, showFailure } from "../states";
import { fetchTrace, type TraceQuery } from "./queries";
import type { TracedNode, TraceRecord } from "./results";
import { type RecordHref, recordOf, recordTable } from "./rows";
import * as sentences from "./sentences";

const FETCH_SIZE = 1000;
const PAGE_SIZE = 100;

export interface TableSubject {
  readonly nodeId: string;
  readonly name: string;
  /** Path of its file or folder, if it has one. */
  readonly path: string | null;
  readonly query: TraceQuery;
}

export interface Table {
  readonly element: HTMLElement;
  close(): void;
}

export interface TableContext {
  readonly client: Client;
  readonly closeHref: string;
  readonly recordHref: RecordHref;
  announce(text: string): void;
}

export function makeTable(subject: TableSubject, { client, closeHref, recordHref, announce }: TableContext): Table {
  const element = h("section", { class: "trace-table", "aria-label": `All records of ${subject.name}` });
  const requests = new AbortController();
  const records: TraceRecord[] = [];
  const heading = h("h2", { tabindex: -1 }, subject.name);
  const outlierNotices = h("div", {});
  const body = h("div", {});
  let total = 0;
  let next: string | null = null;
  let isPartial = false;
  let first = 0;

  const load = async (): Promise<void> => {
    replace(body, loading());
    const options = { limit: FETCH_SIZE, hops: null, values: true, only: subject.nodeId, cursor: next, remarks: true };
    try {
      const result = await fetchTrace(client, subject.query, options, requests.signal);
      const node = result.trace.nodes.find((traced) => traced.node_id === subject.nodeId);
      records.push(...(node?.records ?? []));
      total = node?.total ?? total;
      next = result.trace.next;
      isPartial = result.isPartial;
      if (node?.remarks) showRemarks(node);
      show();
    } catch (error) {
      showFailure(body, error, () => void load());
    }
  };

  const goTo = async (to: number): Promise<void> => {
    first = to;
    if (first >= records.length && next !== null) await load();
    else show();
    heading.scrollIntoView({ block: "nearest" });
    announce(range());
  };

  const range = (): string => {
    const last = Math.min(first + PAGE_SIZE, records.length);
    return total === 0 ? "No records" : `${number(first + 1)} to ${number(last)} of ${count(total, "record")}`;
  };

  const show = (): void => {
    replace(
      heading,
      `${count(total, subject.path === null ? "record" : "row")} of ${subject.path === null ? subject.name : fileName(subject.path)}`,
    );
    const page = records.slice(first, first + PAGE_SIZE);
    const isLast = first + PAGE_SIZE >= records.length && next === null;
    const button = (label: string, to: number, isOff: boolean) =>
      h("button", { type: "button", disabled: isOff, click: () => void goTo(to) }, label);
    replace(
      body,
      isPartial && notice("caution", sentences.stopped(subject.query.direction)),
      page.length > 0
        ? recordTable(subject.nodeId, page, range(), recordHref)
        : notice("empty", "The trace reached no records there."),
      h(
        "nav",
        { class: "pages", "aria-label": "Pages of the table" },
        button("Previous", Math.max(0, first - PAGE_SIZE), first === 0),
        button("Next", first + PAGE_SIZE, isLast),
        h("span", { class: "soft" }, range()),
      ),
    );
  };

  /** The service looks at all rows, and says it with the first page. */
  const showRemarks = ({ remarks, remarks_of: seen, total: all }: TracedNode): void => {
    const lines = (remarks ?? []).map((remark): Child =>
      h(
        "p",
        { class: "notice outlier" },
        h("a", { href: recordHref(subject.nodeId, recordOf(remark)) }, sentences.remarkText(remark)),
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
    const { application, start, direction } = subject.query;
    const parameters = { ...start, direction, values: true, only: subject.nodeId };
    try {
      const onRows = (rows: number): void => replace(status, `${number(rows)} of ${number(total)} rows …`);
      const { text, rows } = await client.csv(application, "trace", parameters, { signal: requests.signal, onRows });
      save(text, `${direction}-${application}-${subject.nodeId.slice(subject.nodeId.lastIndexOf("#") + 1)}.csv`);
      replace(status, `${count(rows, "row")} saved.`);
    } catch (error) {
      if (!requests.signal.aborted) replace(status, error instanceof Error ? error.message : String(error));
    } finally {
      button.disabled = false;
    }
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
    body,
  );
  void load().then(() => {
    if (requests.signal.aborted) return;
    element.scrollIntoView({ block: "start" }); // again: now it is as high as it is
    announce(range());
  });
  return { element, close: () => requests.abort() };
}
