// Why an operation has no record with a key: the last operations before it that have the key, and where it ended.

import type { Absence, KeyedOperation, KeyHolder } from "../api";
import { isAbort, Problem } from "../client";
import { type Child, h, replace } from "../dom";
import { recordOf } from "../explanation/rows";
import { count, nodeNumber } from "../format";
import { type AbsenceRoute, explanationHref, recordsHref } from "../route";
import { loading, notice, refusal, showFailure } from "../states";
import type { View, ViewContext } from "../view";
import { absenceText, endTexts, hasText, operationText, reasonsOf, totalText } from "./sentences";

/** Records that are shown of each operation. */
const MOST_RECORDS = 20;

export function absenceView(container: HTMLElement, context: ViewContext, first: AbsenceRoute): View<AbsenceRoute> {
  let asking = new AbortController();
  const heading = h("h1", { tabindex: -1 });
  const results = h("div", {});
  replace(container, heading, results);

  const show = async (route: AbsenceRoute, signal: AbortSignal) => {
    const { application, node, key } = route;
    replace(heading, "Why is there no record with the key ", h("small", {}, key), "?");
    context.title("Why is there no such key?");
    replace(results, loading("Looking for the operation at which it ended …"));
    try {
      const absence = await context.client.absence(application, { node, key, limit: MOST_RECORDS }, { signal });
      if (signal.aborted) return;
      context.named(application, absence.name);
      replace(results, ...resultOf(absence));
      context.announce(absenceText(absence));
    } catch (error) {
      if (isAbort(error)) return;
      if (error instanceof Problem && (error.status === 404 || error.status === 400 || error.status === 422))
        replace(results, refusal(error));
      else showFailure(results, error, () => update(route));
    }
  };
  const update = (route: AbsenceRoute) => {
    asking.abort();
    asking = new AbortController();
    void show(route, asking.signal);
  };
  update(first);
  return { update, close: () => asking.abort() };
}

function resultOf(absence: Absence): Child[] {
  const { application_id: application, key, holders, without, complete } = absence;
  return [
    h("p", {}, absenceText(absence), "."),
    !complete && notice("caution", "The lineage is not complete: a record with the key may be there."),
    reasonsOf(absence).map((reason) => notice("caution", reason)),
    holders.map((holder) => holderOf(application, key, holder)),
    holders.length === 0 && notice("empty", "No operation before it is known to have the key."),
    holders.length === 0 &&
      without.length > 0 && [
        h("h2", {}, "These do not have it, either"),
        h(
          "ul",
          {},
          without.map((operation) => h("li", {}, linkTo(application, operation))),
        ),
      ],
  ];
}

const linkTo = (application: string, operation: KeyedOperation): Child =>
  h("a", { href: recordsHref(application, nodeNumber(operation.node_id)) }, operationText(operation));

function holderOf(application: string, key: string, holder: KeyHolder): HTMLElement {
  const node = nodeNumber(holder.node_id);
  const became = holder.became_total - holder.became.length;
  return h(
    "section",
    { "aria-label": operationText(holder) },
    h("h2", {}, linkTo(application, holder), ` ${totalText(holder)}`),
    holder.records.map((record) => h("div", {}, recordOf(application, node, record))),
    holder.total > holder.records.length &&
      h("div", { class: "soft" }, `and ${count(holder.total - holder.records.length, "more record")}`),
    h(
      "ul",
      {},
      endTexts(holder).map((text) => h("li", {}, text)),
      holder.other_sides.map((side) =>
        h("li", {}, "The other side: ", linkTo(application, side), `, ${hasText(side)}`),
      ),
      holder.became.map((record) => h("li", {}, "It went into ", h("code", {}, record.key ?? record.record_id))),
      became > 0 && h("li", {}, `and into ${count(became, "more record")}`),
    ),
    h("p", {}, h("a", { href: explanationHref(application, { node, key }) }, "Why it had the key there")),
  );
}
