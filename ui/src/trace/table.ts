// All records of one operation on a way, page by page: the same answers as the drawing's, whatever their number. It
// fetches a thousand at a time and shows a hundred, and remarks on rows that are far from the others.

import { type Client, save } from "../client";
import { type Child, h, replace } from "../dom";
import { showFailure, loading, notice } from "../states";
import { count, fileName, number } from "../format";
import type { TraceRecord } from "./results";
import { oddRows } from "./outliers";
import { askTrace, type Question } from "./queries";
import { type LinkTo, recordTable } from "./rows";
import * as sentences from "./sentences";
import { placeOf, textOf } from "./texts";

const FETCHED = 1000;
const SHOWN = 100;

export interface Listed {
  readonly nodeId: string;
  readonly name: string;
  /** Of the file or folder, where it has one. */
  readonly path: string | null;
  readonly question: Question;
}

export interface Table {
  readonly place: HTMLElement;
  close(): void;
}

export interface TableContext {
  readonly client: Client;
  readonly closeHref: string;
  readonly linkTo: LinkTo;
  announce(text: string): void;
}

export function makeTable(listed: Listed, { client, closeHref, linkTo, announce }: TableContext): Table {
  const place = h("section", { class: "way-table", "aria-label": `All records of ${listed.name}` });
  const running = new AbortController();
  const records: TraceRecord[] = [];
  const heading = h("h2", { tabindex: -1 }, listed.name);
  const remarks = h("div", {});
  const body = h("div", {});
  let total = 0;
  let next: string | null = null;
  let isSoFar = false;
  let first = 0;

  const load = async (): Promise<void> => {
    replace(body, loading());
    const wanted = { limit: FETCHED, hops: null, values: true, only: listed.nodeId, cursor: next };
    try {
      const found = await askTrace(client, listed.question, wanted, running.signal);
      const node = found.answer.nodes.find((each) => each.node_id === listed.nodeId);
      records.push(...(node?.records ?? []));
      total = node?.total ?? total;
      next = found.answer.next;
      isSoFar = found.isSoFar;
      remark();
      show();
    } catch (error) {
      showFailure(body, error, () => void load());
    }
  };

  const turn = async (to: number): Promise<void> => {
    first = to;
    if (first >= records.length && next !== null) await load();
    else show();
    heading.scrollIntoView({ block: "nearest" });
    announce(range());
  };

  const range = (): string => {
    const last = Math.min(first + SHOWN, records.length);
    return total === 0 ? "No records" : `${number(first + 1)} to ${number(last)} of ${count(total, "record")}`;
  };

  const show = (): void => {
    replace(
      heading,
      `${count(total, listed.path === null ? "record" : "row")} of ${listed.path === null ? listed.name : fileName(listed.path)}`,
    );
    const page = records.slice(first, first + SHOWN);
    const isLast = first + SHOWN >= records.length && next === null;
    const button = (label: string, to: number, isOff: boolean) =>
      h("button", { type: "button", disabled: isOff, click: () => void turn(to) }, label);
    replace(
      body,
      isSoFar && notice("care", sentences.stopped(listed.question.direction)),
      page.length > 0
        ? recordTable(listed.nodeId, page, range(), linkTo)
        : notice("empty", "No records were reached there."),
      h(
        "nav",
        { class: "pages", "aria-label": "Pages of the table" },
        button("Previous", Math.max(0, first - SHOWN), first === 0),
        button("Next", first + SHOWN, isLast),
        h("span", { class: "soft" }, range()),
      ),
    );
  };

  const remark = (): void => {
    const found = oddRows(records.map((record) => record.source?.text ?? record.value ?? "")).slice(0, 3);
    const lines = found.map((odd): Child => {
      const record = records[odd.row];
      return record === undefined
        ? null
        : h(
            "p",
            { class: "notice odd" },
            h("a", { href: linkTo(listed.nodeId, record) }, sentences.odd(odd, placeOf(record))),
            " ",
            h("code", {}, textOf(record)),
          );
    });
    const looked =
      records.length < total
        ? h("p", { class: "soft" }, `Looked at: the first ${number(records.length)} of ${number(total)}.`)
        : null;
    replace(remarks, lines, found.length > 0 && looked);
  };

  const said = h("span", { role: "status", class: "soft" });
  const download = async (event: Event): Promise<void> => {
    const { currentTarget: button } = event;
    if (!(button instanceof HTMLButtonElement)) return;
    button.disabled = true;
    const { application, start, direction } = listed.question;
    const parameters = { ...start, direction, values: true, only: listed.nodeId };
    try {
      const onRows = (rows: number): void => replace(said, `${number(rows)} of ${number(total)} rows …`);
      const { text, rows } = await client.csv(application, "trace", parameters, { signal: running.signal, onRows });
      save(text, `${direction}-${application}-${listed.nodeId.slice(listed.nodeId.lastIndexOf("#") + 1)}.csv`);
      replace(said, `${count(rows, "row")} saved.`);
    } catch (error) {
      if (!running.signal.aborted) replace(said, error instanceof Error ? error.message : String(error));
    } finally {
      button.disabled = false;
    }
  };

  replace(
    place,
    heading,
    h(
      "div",
      { class: "tools" },
      listed.path !== null && h("span", { class: "id" }, listed.path),
      h("button", { type: "button", click: (event: Event) => void download(event) }, "All as CSV"),
      h("a", { href: closeHref }, "Close the table"),
      said,
    ),
    remarks,
    body,
  );
  void load().then(() => {
    if (running.signal.aborted) return;
    place.scrollIntoView({ block: "start" }); // again: now it is as high as it is
    announce(range());
  });
  return { place, close: () => running.abort() };
}
