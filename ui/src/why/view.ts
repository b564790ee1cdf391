// Why a record is as it is: what stands out among its input rows, what behaves oddly on its way, what failed there, and
// how to run its job again. Each part is asked by itself, and says so where it fails.

import "./why.css";
import type { Suspects } from "../api";
import { isAbort, Problem } from "../client";
import { captionedLines } from "../copy";
import { type Child, h, replace } from "../dom";
import { failureLine } from "../failures/sentences";
import { applicationOf, count, nodeNumber } from "../format";
import { markOf, marksIn, marksQuery, startsOf } from "../marks";
import {
  explanationHref,
  failuresHref,
  missingHref,
  queryOf,
  recordsHref,
  replaysHref,
  rowSetHref,
  suspectsHref,
  traceHref,
  type WhyRoute,
} from "../route";
import { loading, notice, refusal, showFailure } from "../states";
import { suspectsList } from "../suspects/list";
import { propertiesOf } from "../suspects/properties";
import { summaryOf } from "../suspects/sentences";
import { fetchDirectedTrace } from "../trace/queries";
import { remarkText } from "../trace/sentences";
import { placeOf, readable, shortened, textOf } from "../trace/texts";
import type { View, ViewContext } from "../view";
import { influenceItem, influencesOf, siftItem, siftsOf } from "./reruns";
import { failuresOn, linesOf, outputOf, replaysOf, type Way, wayOf } from "./sentences";
import { slowList } from "./slow";

const TITLE_CHARACTERS = 120;
/** Suspects and properties that are shown; their own view has the others. */
const SHOWN = 5;
/** Suspects of the application that are looked through for those of a failure. */
const MOST_SUSPECTS = 200;
/** Slow records of the application that are looked through. */
const MOST_SLOW = 200;

export function whyView(container: HTMLElement, context: ViewContext, first: WhyRoute): View<WhyRoute> {
  let asking = new AbortController();
  const heading = h("h1", { tabindex: -1 }, "Why?");
  const ways = h("nav", { class: "ways", "aria-label": "About the record" });
  const body = h("div");
  replace(container, heading, ways, body);
  context.title("Why?");

  const update = (route: WhyRoute) => {
    asking.abort();
    asking = new AbortController();
    void show(route, asking.signal);
  };

  const show = async (route: WhyRoute, signal: AbortSignal) => {
    const { application, start } = route;
    replace(ways);
    replace(body, loading("Tracing …"));
    let way: Way;
    try {
      const options = { limit: 1, hops: null, remarks: true, values: true };
      const query = { application, start, direction: "backward" as const };
      way = wayOf(await fetchDirectedTrace(context.client, query, options, signal));
    } catch (error) {
      if (error instanceof Problem && (error.status === 404 || error.status === 422)) replace(body, refusal(error));
      else showFailure(body, error, () => update(route));
      return;
    }
    if (signal.aborted) return;
    announce(way);
    replace(ways, waysOf(route, way));
    const sharedTitle = "failure" in start ? "What the input rows of all failures share" : "What its input rows share";
    const part = (title: string, load: () => Promise<Child>) => partOf(title, load, signal);
    replace(
      body,
      part("Values that stand out", async () => remarksOf(way)),
      part("Failures on its way", () => failures(route, way, signal)),
      part("Unusual steps on its way", () => suspects(route, way, signal)),
      part("Slow records on its way", () => slow(route, way, signal)),
      part(sharedTitle, () => properties(route, signal)),
      part("Its replays", () => replays(route, way, signal)),
      h(
        "section",
        {},
        h("h2", {}, "Run its job again"),
        captionedLines(linesOf(application, recordStart(route, way)), context.announce),
      ),
    );
  };

  const announce = ({ record }: Way) => {
    const text = record === null ? "" : shortened(readable(textOf(record)), TITLE_CHARACTERS);
    const place = record === null ? "" : placeOf(record);
    replace(heading, "Why? ", h("small", {}, text, place !== text && place !== "" && ` · ${place}`));
    context.announce(`Why ${text}?`);
  };

  // -- the parts ---------------------------------------------------------------------------------------

  const failures = async ({ application, start }: WhyRoute, way: Way, signal: AbortSignal): Promise<Child> => {
    const answer = await context.client.failures(application, { signal });
    context.named(application, answer.name);
    const all = failuresOn(start, way, answer.failures);
    if (all.length === 0) return notice("empty", "No task is known to have failed there.");
    return [
      all.slice(0, SHOWN).map((failure) => h("p", { class: "is-failed" }, `${failureLine(failure)}.`)),
      h("p", {}, h("a", { href: failuresHref(application) }, "How they failed")),
    ];
  };

  const suspects = async (route: WhyRoute, way: Way, signal: AbortSignal): Promise<Child> => {
    const { application, start } = route;
    const bad = outputOf(start);
    const parameters = { bad, good: goodOf(route), limit: bad === null ? MOST_SUSPECTS : SHOWN };
    const answer = await context.client.suspects(application, parameters, { signal });
    if (bad === null) return suspectsOfFailure(way, answer);
    return [
      h("p", {}, summaryOf(answer)),
      answer.suspects.length > 0 && suspectsList(answer, context.announce),
      h("p", {}, h("a", { href: comparedHref(route) }, "All of them, and compared with outputs that are right")),
    ];
  };

  /** A failure is no output that the service could compare: those of all tasks, at its operations. */
  const suspectsOfFailure = (way: Way, answer: Suspects): Child => {
    const own = answer.suspects.filter(({ node_id: node }) => way.nodes.has(node)).slice(0, SHOWN);
    if (own.length > 0) return suspectsList({ ...answer, suspects: own }, context.announce);
    const looked = count(answer.suspects.length, "suspect");
    const none = `Of its operations there is none among the ${looked} of the application that ranked first.`;
    return notice("empty", answer.suspects.length === 0 ? summaryOf(answer) : none);
  };

  const slow = async ({ application }: WhyRoute, way: Way, signal: AbortSignal): Promise<Child> =>
    slowList(application, way, await context.client.slow(application, { limit: MOST_SLOW }, { signal }));

  const properties = async (route: WhyRoute, signal: AbortSignal): Promise<Child> => {
    const { application, start } = route;
    const bad = outputOf(start);
    const parameters = { bad, failures: bad === null ? true : null, good: goodOf(route), limit: SHOWN };
    return propertiesOf(await context.client.contrast(application, parameters, { signal }));
  };

  const replays = async ({ application }: WhyRoute, way: Way, signal: AbortSignal): Promise<Child> => {
    const answer = await context.client.replays(application, { signal });
    const items = [
      ...replaysOf(way, answer.replays).map(({ replay, verdict, rows }) =>
        h(
          "li",
          {},
          h("a", { href: replaysHref(application, replay) }, `Replay ${replay}`),
          ` on ${count(rows, "input row")}: `,
          h("strong", {}, verdict),
        ),
      ),
      ...influencesOf(way, answer.influences).map((influence) => influenceItem(application, influence)),
      ...siftsOf(way, answer.sifts).map((sift) => siftItem(application, sift)),
    ];
    return items.length === 0 ? notice("empty", "None on the service's machine.") : h("ul", {}, items);
  };

  update(first);
  return { update, close: () => asking.abort() };
}

/** A part that is asked by itself. */
function partOf(title: string, load: () => Promise<Child>, signal: AbortSignal): HTMLElement {
  const content = h("div", {});
  const ask = async () => {
    replace(content, loading());
    try {
      const child = await load();
      if (!signal.aborted) replace(content, child);
    } catch (error) {
      if (isAbort(error) || signal.aborted) return;
      if (error instanceof Problem && (error.status === 404 || error.status === 422)) replace(content, refusal(error));
      else showFailure(content, error, () => void ask());
    }
  };
  void ask();
  return h("section", { class: "why-part", "aria-label": title }, h("h2", {}, title), content);
}

/** Where else the record is shown. */
const waysOf = ({ application, start }: WhyRoute, way: Way): Child => [
  h("a", { href: traceHref(application, start) }, "Its trace"),
  h("a", { href: explanationHref(application, start) }, "What decided it"),
  h("a", { href: rowSetHref(application, start) }, "Its input rows"),
  way.isInput &&
    way.record?.source != null &&
    h(
      "a",
      { href: missingHref(application, queryOf({ path: way.record.source.path, row: way.record.source.row })) },
      "Why is it not in the output?",
    ),
];

function remarksOf({ remarks, looked }: Way): Child {
  if (remarks.length === 0) {
    return notice(
      "empty",
      looked === 0
        ? "None of its input rows has columns of numbers."
        : `No value among ${count(looked, "input row")} is far from all others.`,
    );
  }
  return h(
    "ul",
    {},
    remarks.map(({ node, remark }) =>
      h(
        "li",
        {},
        h(
          "a",
          { href: traceHref(applicationOf(node), { record: remark.record_id, node: nodeNumber(node) }) },
          remarkText(remark),
        ),
        " · ",
        h("a", { href: recordsHref(applicationOf(node), nodeNumber(node)) }, `operation ${nodeNumber(node)}`),
      ),
    ),
  );
}

/** The record by its id, which says that it was written; as the address has it where there are several. */
const recordStart = ({ start }: WhyRoute, { startNode, record }: Way): WhyRoute["start"] =>
  record === null || "failure" in start ? start : { record: record.record_id, node: nodeNumber(startNode) };

const goodOf = ({ query }: WhyRoute): string | null => startsOf(marksIn(query), "good");

/** The view of suspects, where other outputs can be called good. */
function comparedHref({ application, start, query }: WhyRoute): string {
  const bad = markOf("bad", start);
  const marks = [...(bad === null ? [] : [bad]), ...marksIn(query).filter(({ kind }) => kind === "good")];
  const compared = marksQuery(marks);
  if ("failure" in start) compared.set("failures", "1");
  return suspectsHref(application, compared);
}
