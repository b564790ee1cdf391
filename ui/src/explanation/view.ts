// The few input rows that decided what a record is: by source, and turn by turn where a loop decided.

import "./explanation.css";
import type { ExplainedRow, Explanation, ExplanationRule, ExplanationTurn, GivenValues } from "../api";
import { isAbort, Problem } from "../client";
import { type Child, h, replace } from "../dom";
import { callSite, count, nodeNumber, number } from "../format";
import { groupBy } from "../groups";
import { explanationHref, type ExplanationRoute, recordsHref, rowSetHref, traceHref, whyHref } from "../route";
import { loading, notice, refusal, showFailure } from "../states";
import { table } from "../table";
import { readable, textOf } from "../trace/texts";
import type { View, ViewContext } from "../view";
import {
  BOUND,
  keptText,
  type Loop,
  loopsOf,
  loopText,
  plainText,
  ruleText,
  sizeText,
  startText,
  turnText,
  untilText,
} from "./sentences";
import { checksOf } from "./checks";
import { comparedOf } from "./compared";
import { demandedOf } from "./demanded";
import { makeQuestionForm } from "./form";
import { howOf } from "./how";
import { pairOf } from "./pair";
import { explanationParameters, startParameters } from "./questions";
import { reproductionOf } from "./reproduction";
import { rowOf } from "./rows";
import { extentSwitch } from "./switch";

/** Rows that are listed: at first, and on demand. */
const [FIRST_LIMIT, MORE_LIMIT] = [100, 1000];

export function explanationView(
  container: HTMLElement,
  context: ViewContext,
  first: ExplanationRoute,
): View<ExplanationRoute> {
  let asking = new AbortController();
  const heading = h("h1", { tabindex: -1 }, "What decided it");
  const ways = h("nav", { class: "ways", "aria-label": "About the record" });
  const form = makeQuestionForm((query) => context.navigate({ ...current, query }));
  const results = h("div", {});
  let current = first;
  replace(container, heading, ways, form.element, results);
  context.title("What decided it");

  const show = async (route: ExplanationRoute, signal: AbortSignal) => {
    const { application, query } = route;
    replace(ways, waysOf(route));
    form.set(route);
    replace(results, loading("Explaining …"));
    const parameters = { ...explanationParameters(route), limit: query.get("limit") ?? FIRST_LIMIT };
    try {
      const explanation = await context.client.explanation(application, { ...parameters, plain: false }, { signal });
      if (signal.aborted) return;
      context.named(application, explanation.name);
      replace(heading, ...headingOf(explanation));
      const plain = h("span", { class: "soft" });
      replace(results, ...resultOf(explanation, route, plain), reproductionOf(explanation, route, context.announce));
      context.announce(sizeText(explanation));
      await showPlain(route, plain, signal);
    } catch (error) {
      if (isAbort(error) || signal.aborted) return;
      if (error instanceof Problem && (error.status === 404 || error.status === 422)) replace(results, refusal(error));
      else showFailure(results, error, () => update(route));
    }
  };

  /** The rows of a plain trace are counted behind: that takes longer than the explanation. */
  const showPlain = async (route: ExplanationRoute, place: HTMLElement, signal: AbortSignal) => {
    const { application } = route;
    try {
      const counted = await context.client.explanation(
        application,
        { ...startParameters(route), limit: 1 },
        { signal },
      );
      const text = plainText(counted);
      if (!signal.aborted && text !== "") replace(place, ` · ${text}`);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      // The count only stands beside: without it the explanation is the same.
    }
  };

  const update = (route: ExplanationRoute) => {
    current = route;
    asking.abort();
    asking = new AbortController();
    void show(route, asking.signal);
  };
  update(first);
  return { update, close: () => asking.abort() };
}

const waysOf = ({ application, start }: ExplanationRoute): Child => [
  extentSwitch(application, start, "decisive"),
  h("a", { href: rowSetHref(application, start) }, "Input rows"),
  h("a", { href: whyHref(application, start) }, "Why?"),
];

const headingOf = (explanation: Explanation): Child[] =>
  explanation.same ? ["Why are these two one?"] : ["What decided it ", h("small", {}, startText(explanation))];

function resultOf(explanation: Explanation, route: ExplanationRoute, plain: HTMLElement): Child[] {
  const { application } = route;
  return [
    explanation.same && pairOf(application, explanation.same),
    h("p", { class: "size" }, h("strong", {}, sizeText(explanation)), plain),
    checksOf(application, explanation),
    explanation.kind === "bound" && notice("caution", BOUND),
    explanation.given.map((values) => givenOf(application, values)),
    !explanation.complete && notice("caution", "The lineage is not complete: rows may be missing."),
    explanation.reasons.map((reason) => notice("caution", reason)),
    [...groupBy(explanation.rows, ({ node_id: node }) => node)].map(([node, rows]) =>
      sourceOf(application, node, rows),
    ),
    explanation.next !== null && moreOf(explanation, route),
    explanation.how && howOf(explanation.how),
    explanation.demanded && demandedOf(application, explanation.demanded),
    explanation.compared && comparedOf(application, explanation.compared),
    loopsOf(explanation.turns).map((loop) => loopOf(application, loop)),
    explanation.rules.length > 0 && rulesOf(application, explanation.rules),
  ];
}

const givenOf = (application: string, { name, node_id: node, call_site: site, path, results }: GivenValues): Child =>
  h(
    "p",
    { class: "soft" },
    "Given, because the program may have used values of it: ",
    results !== null && `${count(results, "result")} of `,
    h("a", { href: recordsHref(application, nodeNumber(node)) }, `${name} (${nodeNumber(node)})`),
    results !== null && site !== "" && ` at ${callSite(site)}`,
    path !== null && [" ", h("span", { class: "id" }, path)],
  );

function sourceOf(application: string, node: string, rows: readonly ExplainedRow[]): HTMLElement {
  return h(
    "section",
    {},
    h("h2", {}, h("a", { href: recordsHref(application, nodeNumber(node)) }, `${rows[0]?.name} (${nodeNumber(node)})`)),
    rows.map((row) => rowOf(application, row)),
  );
}

const moreOf = ({ rows, total }: Explanation, { application, start, query }: ExplanationRoute): Child => [
  h(
    "p",
    { class: "soft" },
    `and ${count(total - rows.length, "more row")}`,
    query.has("limit") && "; the command line lists up to 10,000 at a time",
  ),
  !query.has("limit") &&
    h(
      "p",
      {},
      h("a", { href: explanationHref(application, start, withLimit(query)) }, `Show up to ${number(MORE_LIMIT)} rows`),
    ),
];

function withLimit(query: URLSearchParams): URLSearchParams {
  const more = new URLSearchParams(query);
  more.set("limit", String(MORE_LIMIT));
  return more;
}

/** One box, with its turns to open. */
const loopOf = (application: string, loop: Loop): HTMLElement =>
  h(
    "section",
    { class: "loop", "aria-label": `Loop at ${loop.name}` },
    h("h2", {}, loopText(loop)),
    loop.turns.map(([turn, parts]) =>
      h(
        "details",
        { class: "turn" },
        h("summary", {}, turnText(turn, parts)),
        parts.map((part) => partOf(application, part)),
      ),
    ),
  );

function partOf(application: string, part: ExplanationTurn): Child {
  const node = nodeNumber(part.node_id);
  return [
    h("div", {}, h("a", { href: recordsHref(application, node) }, `${part.name} (${node})`)),
    part.records.map((record, at) => {
      const until = untilText(part.turn, part.until[at]);
      return h(
        "div",
        {},
        h("a", { class: "id", href: traceHref(application, { record: record.record_id, node }) }, record.record_id),
        textOf(record) !== record.record_id && [" ", h("code", {}, readable(textOf(record)))],
        until !== "" && h("span", { class: "soft" }, ` ${until}`),
      );
    }),
    part.total > part.records.length &&
      h("div", { class: "soft" }, `and ${count(part.total - part.records.length, "more record")}`),
    part.rows.map((row) => rowOf(application, row)),
    part.rows_total > part.rows.length &&
      h("div", { class: "soft" }, `and ${count(part.rows_total - part.rows.length, "more row")}`),
  ];
}

const rulesOf = (application: string, rules: readonly ExplanationRule[]): HTMLElement =>
  h(
    "section",
    { "aria-label": "What was left out" },
    h("h2", {}, "What was left out"),
    table<ExplanationRule>({
      caption: "What was left out",
      rows: rules,
      columns: [
        {
          name: "Operation",
          cell: (rule) => h("a", { href: recordsHref(application, nodeNumber(rule.node_id)) }, ruleText(rule)),
        },
        { name: "Inputs that count", kind: "count", cell: ({ kept, of }) => `${number(kept)} of ${number(of)}` },
        { name: "They are", cell: keptText },
      ],
    }),
  );
