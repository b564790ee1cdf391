// How far the stores are behind, live: what waits in Kafka, how fast it gets less, and what applications lack.

import type { ApplicationLag, GroupLag, Lag, PartitionLag } from "./api";
import type { Problem } from "./client";
import { type Child, h, replace } from "./dom";
import { poll } from "./poll";
import { applicationHref, type LagRoute } from "./route";
import { fail, loading, notice } from "./states";
import { table } from "./table";
import { type Look, recent, trend } from "./trend";
import type { View, ViewContext } from "./view";
import { clock, count, duration, number, rate } from "./format";

const EVERY_MS = 2_000;
const SPAN_MS = 5 * 60_000;

export function lagView(place: HTMLElement, context: ViewContext, _route: LagRoute): View<LagRoute> {
  const waiting: Look[] = [];
  const rates: Look[] = [];
  let isPaused = false;
  const when = h("span", { class: "soft" });
  const [summary, rest] = [h("div", {}, loading()), h("div")];
  const pause = h(
    "button",
    {
      type: "button",
      "aria-pressed": "false",
      click: () => {
        isPaused = !isPaused;
        pause.setAttribute("aria-pressed", String(isPaused));
        polling.pause(isPaused);
      },
    },
    "Pause",
  );
  context.title("Lag");
  replace(
    place,
    h("h1", { tabindex: -1 }, "How far the stores are behind"),
    h("div", { class: "tools" }, pause, when),
    summary,
    rest,
  );

  let said = "";
  let old = "";
  const show = (lag: Lag) => {
    const now = Date.now();
    waiting.push({ at: now, value: lag.group.messages });
    rates.push({ at: now, value: lag.group.rate });
    waiting.splice(0, waiting.length - recent(waiting, SPAN_MS).length);
    rates.splice(0, rates.length - recent(rates, SPAN_MS).length);
    replace(summary, verdict(lag.group), figures(lag.group, waiting, rates));
    when.textContent = `Looked at ${clock(now)}, again every ${EVERY_MS / 1000} s while this window is seen`;
    const tables = JSON.stringify([lag.applications, lag.unread_applications, lag.group.partitions]);
    if (tables !== old) {
      old = tables;
      const focused = document.activeElement?.closest("tr")?.dataset.key;
      replace(rest, applications(lag), partitions(lag.group.partitions));
      if (focused !== undefined) rest.querySelector<HTMLElement>(`tr[data-key="${CSS.escape(focused)}"] a`)?.focus();
    }
    // Heard once, and again when it changes from "something waits" to "nothing waits", not on every look.
    const sentence = lag.group.messages === 0 ? "Nothing waits" : "Messages wait";
    if (sentence !== said) context.announce(sentence);
    said = sentence;
  };
  const polling = poll(
    async (signal) => show(await context.client.lag({ signal })),
    EVERY_MS,
    (problem) => {
      if ((problem as Problem).status === 401) polling.stop();
      old = "";
      when.textContent = "";
      replace(rest);
      fail(summary, problem, () => polling.now());
    },
  );
  return { update: () => {}, close: () => polling.stop() };
}

/** The state of it all in one sentence each. */
function verdict(group: GroupLag): Child {
  const waits = group.messages > 0;
  return [
    group.members === 0 &&
      notice(
        "care",
        waits ? "Nobody consumes, and messages wait: start " : "Nobody consumes. To start a consumer: ",
        h("code", {}, "lineage consume"),
        ".",
      ),
    group.dead_letters > 0 &&
      notice(
        "care",
        `${count(group.dead_letters, "message")} could not be used and ${group.dead_letters === 1 ? "stands" : "stand"} in the topic of dead letters: see `,
        h("code", {}, "lineage dead-letters"),
        ".",
      ),
    h(
      "p",
      {},
      waits
        ? `${count(group.messages, "message")} ${group.messages === 1 ? "waits" : "wait"}${drain(group)}.`
        : "Nothing waits: all that was sent is stored.",
    ),
  ];
}

const drain = ({ drain_seconds: seconds }: GroupLag) =>
  seconds === null ? "" : `; at these rates all is stored in ${duration(seconds)}`;

function figures(group: GroupLag, waiting: Look[], rates: Look[]): HTMLElement {
  const figure = (name: string, value: string, line?: Element) =>
    h("div", { class: "figure" }, h("dt", {}, name), h("dd", {}, h("strong", {}, value), line));
  const perhaps = (value: number | null, words: (value: number) => string) =>
    value === null ? "not known yet" : words(value);
  return h(
    "dl",
    { class: "figures" },
    figure(
      "Messages that wait",
      number(group.messages),
      trend(waiting, SPAN_MS, "Messages that waited, the last five minutes"),
    ),
    figure("Age of the oldest", group.seconds === null ? "not known" : duration(group.seconds)),
    figure(
      "Consumed",
      perhaps(group.rate, rate),
      trend(rates, SPAN_MS, "Messages consumed a second, the last five minutes"),
    ),
    figure("Coming in", perhaps(group.incoming_rate, rate)),
    figure("Consumers", group.members === null ? "not known now" : number(group.members)),
    figure("Dead letters", number(group.dead_letters)),
    figure("Group", group.name),
  );
}

function applications({ applications: found, unread_applications: unread }: Lag): Child {
  const counted =
    (
      name: keyof ApplicationLag &
        ("messages" | "incomplete_runs" | "missing_blocks" | "missing_runs" | "missing_events" | "dropped"),
    ) =>
    (each: ApplicationLag) => (each[name] === 0 ? h("span", { class: "soft" }, "0") : number(each[name]));
  return [
    h("h2", {}, "Applications that run or are not complete"),
    unread > 0 &&
      notice(
        "care",
        `${count(unread, "application")} changed and ${unread === 1 ? "was" : "were"} not read yet; the next look goes on with them.`,
      ),
    found.length === 0
      ? notice("empty", "None: every application that ended is complete.")
      : table<ApplicationLag>({
          caption: "Applications that run or are not complete",
          rows: found,
          key: ({ application_id }) => application_id,
          opens: true,
          columns: [
            {
              name: "Application",
              cell: ({ application_id: id, name }) => [
                h("a", { href: applicationHref(id) }, name),
                h("div", { class: "id" }, id),
              ],
            },
            { name: "State", cell: ({ state }) => state },
            { name: "Waits for", kind: "count", cell: counted("messages") },
            { name: "Since", kind: "count", cell: ({ seconds }) => (seconds > 0 ? duration(seconds) : "") },
            { name: "Incomplete runs", kind: "count", cell: counted("incomplete_runs") },
            { name: "Missing blocks", kind: "count", cell: counted("missing_blocks") },
            { name: "Missing runs", kind: "count", cell: counted("missing_runs") },
            { name: "Missing events", kind: "count", cell: counted("missing_events") },
            { name: "Dropped", kind: "count", cell: counted("dropped") },
            { name: "What is missing", cell: ({ missing }) => missing },
          ],
        }),
  ];
}

function partitions(found: PartitionLag[]): Child {
  return [
    h("h2", {}, "Partitions of the topics"),
    table<PartitionLag>({
      caption: "Partitions of the topics",
      rows: found,
      key: ({ topic, partition }) => `${topic}-${partition}`,
      columns: [
        { name: "Topic", cell: ({ topic }) => topic },
        { name: "Partition", kind: "count", cell: ({ partition }) => partition },
        { name: "Waiting", kind: "count", cell: ({ messages }) => number(messages) },
        {
          name: "Oldest",
          kind: "count",
          cell: ({ seconds }) => (seconds === null ? "not known" : seconds > 0 ? duration(seconds) : ""),
        },
        {
          name: "Committed",
          kind: "count",
          cell: ({ committed }) => (committed === null ? "never" : number(committed)),
        },
        { name: "Next", kind: "count", cell: ({ next }) => number(next) },
      ],
    }),
  ];
}
