// Who behaves oddly in an application, and what the input rows of its bad outputs have in common.

import "./suspects.css";
import { isAbort, Problem } from "../client";
import { type Child, h, replace } from "../dom";
import { marksIn, startsOf } from "../marks";
import type { SuspectsRoute } from "../route";
import { loading, notice, refusal, showFailure } from "../states";
import type { View, ViewContext } from "../view";
import { suspectsList } from "./list";
import { makePicker } from "./picker";
import { propertiesOf } from "./properties";
import { summaryOf } from "./sentences";

export function suspectsView(container: HTMLElement, context: ViewContext, first: SuspectsRoute): View<SuspectsRoute> {
  let route = first;
  let asking = new AbortController();
  const heading = h("h1", { tabindex: -1 }, "Who behaves oddly");
  const suspects = h("section", { "aria-label": "Suspects" });
  const properties = h("section", { "aria-label": "What bad outputs share" });
  const picker = makePicker(context, first, (query) => {
    if (query.toString() === route.query.toString()) ask();
    else context.navigate({ ...route, query });
  });
  replace(container, heading, picker.element, properties, suspects);
  context.title("Who behaves oddly");

  const ask = () => {
    asking.abort();
    asking = new AbortController();
    picker.set(route.query);
    void showSuspects(asking.signal);
    void showProperties(asking.signal);
  };

  const showSuspects = async (signal: AbortSignal) => {
    const { application, query } = route;
    const marks = marksIn(query);
    replace(suspects, loading("Comparing tasks …"));
    try {
      const parameters = {
        bad: startsOf(marks, "bad"),
        good: startsOf(marks, "good"),
        method: query.get("method"),
        limit: query.get("limit"),
      };
      const result = await context.client.suspects(application, parameters, { signal });
      if (signal.aborted) return;
      context.named(application, result.name);
      replace(heading, "Who behaves oddly ", h("small", {}, result.name));
      replace(
        suspects,
        h("h2", {}, "Suspects"),
        h("p", {}, h("strong", {}, summaryOf(result))),
        !result.complete && notice("caution", "The lineage is not complete: missing records look like dropped ones."),
        result.suspects.length > 0 && suspectsList(result, context.announce),
        result.total > result.suspects.length && moreOf(result.total),
        result.how.map((text) => h("p", { class: "small soft" }, text)),
      );
      context.announce(summaryOf(result));
    } catch (error) {
      failed(suspects, error, () => void showSuspects(signal));
    }
  };

  const moreOf = (total: number): Child => {
    const query = new URLSearchParams(route.query);
    query.set("limit", String(Math.min(total, 1000)));
    return h(
      "p",
      {},
      h("button", { type: "button", click: () => context.navigate({ ...route, query }) }, "List all that have a score"),
    );
  };

  const showProperties = async (signal: AbortSignal) => {
    const { application, query } = route;
    const marks = marksIn(query);
    const [bad, hasFailures] = [startsOf(marks, "bad"), query.get("failures") === "1"];
    properties.hidden = bad === null && !hasFailures;
    if (properties.hidden) return;
    const title = h("h2", {}, "What bad outputs share");
    replace(properties, title, loading("Reading input rows …"));
    try {
      const parameters = { bad, good: startsOf(marks, "good"), failures: hasFailures ? true : null };
      const contrast = await context.client.contrast(application, parameters, { signal });
      if (!signal.aborted) replace(properties, title, propertiesOf(contrast));
    } catch (error) {
      failed(properties, error, () => void showProperties(signal));
    }
  };

  /** What the service does not understand is said in its words. */
  const failed = (element: HTMLElement, error: unknown, retry: () => void) => {
    if (isAbort(error)) return;
    if (error instanceof Problem && (error.status === 404 || error.status === 422)) replace(element, refusal(error));
    else showFailure(element, error, retry);
  };

  ask();
  return {
    update(next) {
      route = next;
      ask();
    },
    close() {
      asking.abort();
      picker.close();
    },
  };
}
