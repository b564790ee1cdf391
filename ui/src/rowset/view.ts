// Which input rows a record was made of, source by source, and commands that copy them or run the job on them.

import "./rowset.css";
import type { RowSet, RowSetFile, RowSetSource } from "../api";
import { isAbort, Problem } from "../client";
import { captionedLines } from "../copy";
import { type Child, h, replace } from "../dom";
import { count, number } from "../format";
import { inputRows } from "../inputrows";
import { lineRanges } from "../reruns";
import { recordsHref, rowSetHref, type RowSetRoute, traceHref, whyHref } from "../route";
import { loading, notice, refusal, showFailure } from "../states";
import { filePlace } from "../trace/texts";
import type { View, ViewContext } from "../view";
import { askedText, commandsFor, recordsOf, shareText, sourceText } from "./sentences";

/** Texts of rows that are listed of each source: at first, and on demand. */
const [FIRST_LIMIT, MORE_LIMIT] = [20, 1000];
/** Ranges of one file that are shown at once. */
const SHOWN_RANGES = 40;

export function rowSetView(container: HTMLElement, context: ViewContext, first: RowSetRoute): View<RowSetRoute> {
  let asking = new AbortController();
  const heading = h("h1", { tabindex: -1 }, "Input rows");
  const results = h("div", {});
  replace(container, heading, results);
  context.title("Input rows");

  const show = async (route: RowSetRoute, signal: AbortSignal) => {
    const { application, start, query } = route;
    replace(results, loading("Tracing …"));
    try {
      const parameters = { ...start, limit: query.get("limit") ?? FIRST_LIMIT };
      const rowSet = await context.client.rowSet(application, parameters, { signal });
      if (signal.aborted) return;
      replace(heading, "Input rows ", h("small", {}, `of ${askedText(rowSet.asked)}`));
      replace(results, ...resultOf(rowSet, route, context.announce));
      context.announce(`${count(rowSet.sources.length, "source")}`);
    } catch (error) {
      if (isAbort(error)) return;
      if (error instanceof Problem && (error.status === 404 || error.status === 422)) replace(results, refusal(error));
      else showFailure(results, error, () => update(route));
    }
  };
  const update = (route: RowSetRoute) => {
    asking.abort();
    asking = new AbortController();
    void show(route, asking.signal);
  };
  update(first);
  return { update, close: () => asking.abort() };
}

function resultOf(rowSet: RowSet, route: RowSetRoute, announce: (text: string) => void): Child[] {
  const { application, start } = route;
  // Those that the record came from first.
  const sources = [...rowSet.sources].sort((one, other) => Number(isMeant(other)) - Number(isMeant(one)));
  return [
    h(
      "nav",
      { class: "ways", "aria-label": "About the record" },
      h("a", { href: traceHref(application, start) }, "Its trace"),
      h("a", { href: whyHref(application, start) }, "Why?"),
    ),
    !rowSet.complete && notice("caution", "The lineage is not complete: rows may be missing."),
    !rowSet.exact && notice("caution", "Not exact: these rows may have taken part; no others have."),
    rowSet.how !== null && rowSet.how !== "" && notice("caution", rowSet.how),
    sources.length === 0 && notice("empty", "This application has no sources."),
    sources.map((source) => sourceOf(application, source, route)),
    h("h2", {}, "Copy these rows, or run the job on them"),
    captionedLines(commandsFor(application, start, rowSet), announce),
  ];
}

const isMeant = (source: RowSetSource): boolean => source.whole || recordsOf(source) > 0;

function sourceOf(application: string, source: RowSetSource, { start, query }: RowSetRoute): HTMLElement {
  const unlisted = recordsOf(source) - source.listed.length;
  const isMore = !source.whole && unlisted > 0 && source.listed.length > 0 && !query.has("limit");
  return h(
    "section",
    { class: isMeant(source) ? "row-source" : "row-source is-unused" },
    h("h2", {}, h("a", { href: recordsHref(application, source.node) }, sourceText(source))),
    h(
      "p",
      {},
      h("strong", {}, shareText(source)),
      source.path !== null && [" of ", h("span", { class: "id" }, source.path)],
    ),
    source.why !== null && source.why !== "" && h("p", { class: "warning" }, source.why),
    source.files.filter(({ rows }) => rows.length > 0).map(fileOf),
    inputRows(source.listed, source.whole ? source.listed.length : recordsOf(source), ({ path, row }) =>
      traceHref(application, { path, row }),
    ),
    isMore &&
      h(
        "p",
        {},
        h(
          "a",
          { href: rowSetHref(application, start, new URLSearchParams({ limit: String(MORE_LIMIT) })) },
          `Show up to ${number(MORE_LIMIT)} rows of each source`,
        ),
      ),
  );
}

function fileOf({ path, rows }: RowSetFile): HTMLElement {
  const ranges = lineRanges(rows);
  const more = ranges.length - SHOWN_RANGES;
  return h(
    "p",
    { class: "ranges" },
    h("span", { class: "id", title: path }, filePlace(path)),
    rows.length === 1 && rows[0]?.[1] === 1 ? " line " : " lines ",
    ranges.slice(0, SHOWN_RANGES).join(", "),
    more > 0 && h("span", { class: "soft" }, ` and ${count(more, "more range")}`),
  );
}
