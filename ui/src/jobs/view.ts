// A job: its last execution, what it reads and writes, what was decided over time, and what that saved.

import "./jobs.css";
import type { Job, Trigger } from "../api";
import { isAbort, type Problem } from "../client";
import { type Child, h, replace } from "../dom";
import { colourOf, count, time } from "../format";
import { poll } from "../poll";
import { applicationHref, datasetHref, jobHref, type JobRoute, queryOf } from "../route";
import { loading, notice, showFailure } from "../states";
import type { View, ViewContext } from "../view";
import { waveDrawing } from "./drawing";
import {
  chargeRest,
  chargeText,
  complianceRest,
  complianceText,
  isBelow,
  knownCompliance,
  phaseOf,
  savedRest,
  signedDuration,
  spentRest,
  wavesText,
} from "./sentences";
import { waveTable } from "./waves";

const POLL_MS = 10_000;
/** What is said once it was asked for. */
const DONE = { runNext: "The next wave is run", retrain: "It trains anew from the next wave on" } as const;
/** Rows of the table, unless the address wants all. */
const SHOWN_WAVES = 200;

export function jobView(container: HTMLElement, context: ViewContext, first: JobRoute): View<JobRoute> {
  let route = first;
  let shownJob = "";
  let known: { job: Job; waves: readonly Trigger[] } | null = null;
  const closing = new AbortController();
  const name = first.job;
  const heading = h("h1", { tabindex: -1 }, name);
  const about = h("div", {}, loading());
  const outcome = h("div", { role: "status" });
  const runNext = h("button", { type: "button", click: () => void ask("runNext") });
  const retrain = h("button", { type: "button", hidden: true, click: () => void ask("retrain") });
  const tools = h("div", { class: "tools", hidden: true }, runNext, retrain);
  const waves = h("div");
  context.title(name);
  replace(container, heading, about, tools, outcome, waves);

  const show = () => {
    if (known === null) return;
    const { job } = known;
    replace(about, factsOf(job, known.waves), figuresOf(job, known.waves));
    tools.hidden = false;
    runNext.disabled = job.run_next;
    runNext.textContent = job.run_next ? DONE.runNext : "Run next time";
    retrain.disabled = job.retrain;
    retrain.textContent = job.retrain ? DONE.retrain : "Train anew";
    retrain.hidden = (known.waves[0]?.bound ?? null) === null; // nothing is learned without a bound
    showWaves();
  };
  const showWaves = () => {
    if (known === null) return;
    const all = known.waves;
    const shown = route.query.get("waves") === "all" ? all : all.slice(0, SHOWN_WAVES);
    replace(
      waves,
      h("h2", {}, "Waves"),
      all.length === 0
        ? notice(
            "empty",
            "Nobody has asked whether to run it. Ask before the next run: ",
            h("code", {}, "lineage trigger"),
            ".",
          )
        : [
            waveDrawing(all, container.clientWidth - 30),
            waveTable(shown),
            shown.length < all.length &&
              h(
                "p",
                {},
                h("a", { href: jobHref(name, queryOf({ waves: "all" })) }, `All ${count(all.length, "wave")}`),
              ),
          ],
    );
  };
  /** What is to happen with the next wave. */
  const ask = async (what: keyof typeof DONE) => {
    const button = what === "runNext" ? runNext : retrain;
    button.disabled = true;
    replace(outcome);
    try {
      await context.client[what](name, { signal: closing.signal });
      context.announce(DONE[what]);
      polling.now();
    } catch (error) {
      button.disabled = false;
      if (!isAbort(error)) showFailure(outcome, error, () => void ask(what));
    }
  };
  const polling = poll(
    async (signal) => {
      const job = await context.client.job(name, { signal });
      const text = JSON.stringify(job);
      if (text === shownJob) return; // what is known of earlier waves grows with later answers
      const { waves } = await context.client.waves(name, { signal });
      shownJob = text;
      if (known === null) context.announce(`${name}: ${wavesText(job)}`);
      known = { job, waves };
      show();
    },
    POLL_MS,
    (problem) => {
      shownJob = "";
      if ((problem as Problem).status === 401) polling.stop();
      tools.hidden = true;
      replace(waves);
      showFailure(about, problem, () => polling.now());
    },
  );
  return {
    update(next) {
      route = next;
      showWaves();
    },
    close() {
      closing.abort();
      polling.stop();
    },
  };
}

function factsOf(job: Job, waves: readonly Trigger[]): Child {
  const { application_id: id, began, state, complete, inputs, outputs } = job;
  const facts: [string, Child][] = [
    [
      "Last execution",
      id === null || began === null
        ? "never ran with lineage"
        : [
            h("a", { href: applicationHref(id) }, id),
            ", ",
            h("time", { datetime: new Date(began).toISOString() }, time(began)),
            state !== null && [", ", h("span", { class: colourOf(state) }, state)],
            complete === false && [", ", h("span", { class: "warning" }, "lineage incomplete")],
          ],
    ],
    ["Reads", placesOf(inputs)],
    ["Writes", placesOf(outputs)],
    ["Answers rest on", waves.length > 0 && phaseOf(waves)],
  ];
  return h(
    "dl",
    { class: "facts" },
    facts
      .filter(([, value]) => value !== false)
      .map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, value))),
  );
}

/** Paths lead to their datasets; what is no file has no page. */
const placesOf = (places: readonly string[]): Child =>
  places.length === 0
    ? "nothing that is known"
    : h(
        "ul",
        { class: "places" },
        places.map((place) =>
          h(
            "li",
            {},
            place.includes("/") ? h("a", { href: datasetHref({ namespace: "", name: place }) }, place) : place,
          ),
        ),
      );

function figuresOf(job: Job, waves: readonly Trigger[]): Child {
  if (job.waves === 0) return null;
  const [compliance, model, wanted] = [knownCompliance(waves), job.in_charge, waves[0]?.confidence ?? null];
  const net = job.saved_seconds - job.spent_seconds;
  const isPartial = job.saved_unknown > 0 || job.spent_unknown > 0;
  return [
    h(
      "dl",
      { class: "figures" },
      figure("Asked about", wavesText(job)),
      compliance === null
        ? figure("Compliance", "not known", "no answer rests on a tested model")
        : figure("Compliance in the test", complianceText(compliance), complianceRest(compliance)),
      model !== null && figure("Compliance in charge", chargeText(model), chargeRest(model)),
      figure("Saved by skips", signedDuration(job.saved_seconds), savedRest(job)),
      figure("Spent on answers", signedDuration(job.spent_seconds), spentRest(job)),
      figure("Saved minus spent", signedDuration(net), isPartial ? "of what is known" : ""),
    ),
    isBelow(model, wanted) && notice("caution", "By its audits, it keeps the bound less often than is wanted."),
    net < 0 && notice("caution", "Until now, asking costs more than skipping saves."),
  ];
}

const figure = (name: string, value: string, rest = ""): HTMLElement =>
  h(
    "div",
    { class: "figure" },
    h("dt", {}, name),
    h("dd", {}, h("strong", {}, value), rest !== "" && h("div", { class: "soft small" }, rest)),
  );
