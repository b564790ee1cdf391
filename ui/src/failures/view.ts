// The failures of an application: the error, the operation, and the record and input rows that it is about.

import "./failures.css";
import type { Failure, Failures } from "../api";
import { isAbort } from "../client";
import { type Child, h, replace } from "../dom";
import { count, fileName, nodeNumber } from "../format";
import { inputRows } from "../inputrows";
import {
  applicationHref,
  failuresHref,
  type FailuresRoute,
  recordsHref,
  rowSetHref,
  suspectsHref,
  traceHref,
  whyHref,
} from "../route";
import { loading, notice, showFailure } from "../states";
import { readable } from "../trace/texts";
import type { View, ViewContext } from "../view";
import { attemptsText, failureLine, operationText, taskText } from "./sentences";

/** Failures that are named above a graph. */
const SHOWN_LINES = 3;

export function failuresView(container: HTMLElement, context: ViewContext, first: FailuresRoute): View<FailuresRoute> {
  let asking = new AbortController();
  const heading = h("h1", { tabindex: -1 }, "Failures");
  const results = h("div", {});
  replace(container, heading, results);
  context.title("Failures");

  const show = async (application: string, signal: AbortSignal) => {
    replace(results, loading("Looking for the records that made tasks fail …"));
    try {
      const failures = await context.client.failures(application, { signal });
      if (signal.aborted) return;
      context.named(application, failures.name);
      replace(heading, "Failures ", h("small", {}, failures.name));
      replace(results, resultOf(failures));
      context.announce(count(failures.failures.length, "failure"));
    } catch (error) {
      if (!isAbort(error)) showFailure(results, error, () => update(first));
    }
  };
  const update = ({ application }: FailuresRoute) => {
    asking.abort();
    asking = new AbortController();
    void show(application, asking.signal);
  };
  update(first);
  return { update, close: () => asking.abort() };
}

const resultOf = ({ application_id: application, failures, how }: Failures): Child => [
  how !== "" && notice("caution", how),
  failures.length === 0 &&
    notice("empty", "No task of this application is known to have failed: see its ", graphLink(application), "."),
  failures.some(({ record }) => record !== null) &&
    h(
      "p",
      {},
      h(
        "a",
        { href: suspectsHref(application, new URLSearchParams({ failures: "1" })) },
        "What do the input rows of these records share?",
      ),
    ),
  h(
    "ol",
    { class: "failures-list" },
    failures.map((failure) => h("li", {}, failureOf(application, failure))),
  ),
];

const graphLink = (application: string): HTMLElement => h("a", { href: applicationHref(application) }, "graph");

/** What is said of a failure, with its name before it. */
const fact = (name: string, ...value: Child[]): Child => [h("dt", {}, name), h("dd", {}, value)];

const failureOf = (application: string, failure: Failure): Child => [
  h(
    "h2",
    { class: "is-failed" },
    readable(failure.message === "" ? failure.error : `${failure.error}: ${failure.message}`),
  ),
  h(
    "dl",
    {},
    fact("Operation", operationOf(application, failure)),
    failure.record !== null && fact("Record", recordOf(application, failure)),
    failure.sources_total > 0 &&
      fact(failure.exact ? "Input rows" : "Input rows, perhaps", inputRows(failure.sources, failure.sources_total)),
    fact(
      "Attempts",
      attemptsText(failure),
      taskText(failure) !== "" && h("span", { class: "soft" }, `, ${taskText(failure)}`),
    ),
    fact(
      "Exact",
      failure.exact ? "yes: this record, and no other" : h("span", { class: "warning" }, `no: ${failure.reason}`),
    ),
  ),
];

const operationOf = (application: string, { node_id, name, call_site, frame }: Failure): Child => [
  node_id === null
    ? operationText({ name, call_site })
    : h(
        "a",
        { href: recordsHref(application, nodeNumber(node_id)), title: call_site },
        operationText({ name, call_site }),
      ),
  frame !== null && h("span", { class: "soft", title: frame }, `, raised at ${fileName(frame)}`),
];

const recordOf = (application: string, { failure, record }: Failure): Child =>
  record !== null && [
    record.value !== null ? h("code", {}, readable(record.value)) : record.record_id,
    " · ",
    h("a", { href: traceHref(application, { failure }) }, "its trace"),
    " · ",
    h("a", { href: rowSetHref(application, { failure }) }, "its input rows"),
    " · ",
    h("a", { href: whyHref(application, { failure }) }, "why?"),
  ];

/** The first failures above the graph of an application, and the way to all of them. */
export const failureNotice = (application: string, failures: readonly Failure[]): Child =>
  failures.length > 0 &&
  notice(
    "failure",
    failures.slice(0, SHOWN_LINES).map((failure) => h("span", { class: "failure-line" }, `${failureLine(failure)}.`)),
    h(
      "a",
      { href: failuresHref(application) },
      failures.length === 1 ? "How it failed" : `All ${count(failures.length, "failure")}`,
    ),
  );
