// The lag, live: what waits in Kafka, how fast it decreases, and what applications lack.

import type { ApplicationLag, GroupLag, Lag, PartitionLag } from "./api";
import type { Problem } from "./client";
import { type Child, h, replace } from "./dom";
import { clock, colourOf, count, duration, number, rate } from "./format";
import { poll } from "./poll";
import { applicationHref, type LagRoute } from "./route";
import { loading, notice, showFailure } from "./states";
import { type Column, table } from "./table";
import { recent, type Sample, trend } from "./trend";
import type { View, ViewContext } from "./view";

const POLL_MS = 2_000;
const SPAN_MS = 5 * 60_000;

export function lagView(container: HTMLElement, context: ViewContext, _route: LagRoute): View<LagRoute> {
  const waiting: Sample[] = [];
  const rates: Sample[] = [];
  let isPaused = false;
  const when = h("span", { class: "soft" });
  const [summary, details] = [h("div", {}, loading()), h("div")];
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
    container,
    h("h1", { tabindex: -1 }, "Lag of the stores"),
    h("div", { class: "tools" }, pause, when),
    summary,
    details,
  );

  let announced = "";
  let shownTables = "";
  const show = (lag: Lag) => {
    const now = Date.now();
    waiting.push({ at: now, value: lag.group.messages });
    rates.push({ at: now, value: lag.group.rate });
    waiting.splice(0, waiting.length - recent(waiting, SPAN_MS).length);
    rates.splice(0, rates.length - recent(rates, SPAN_MS).length);
    replace(summary, notices(lag.group), figures(lag.group, waiting, rates));
    when.textContent = `Updated at ${clock(now)}, every ${POLL_MS / 1000} s while this window is visible`;
    const tablesKey = JSON.stringify([lag.applications, lag.unread_applications, lag.group.partitions]);
    if (tablesKey !== shownTables) {
      shownTables = tablesKey;
      const focused = document.activeElement?.closest("tr")?.dataset.key;
      const isUnfolded = details.querySelector("details")?.open ?? false;
      replace(details, applications(lag), partitions(lag.group.partitions));
      const fold = details.querySelector("details");
      if (fold !== null) fold.open = isUnfolded;
      if (focused !== undefined) details.querySelector<HTMLElement>(`tr[data-key="${CSS.escape(focused)}"] a`)?.focus();
    }
    // Announced once, and again when messages begin or cease to wait, not at every update.
    const sentence = lag.group.messages === 0 ? "No messages are waiting" : "Messages are waiting";
    if (sentence !== announced) context.announce(sentence);
    announced = sentence;
  };
  const polling = poll(
    async (signal) => show(await context.client.lag({ signal })),
    POLL_MS,
    (problem) => {
      if ((problem as Problem).status === 401) polling.stop();
      shownTables = "";
      when.textContent = "";
      replace(details);
      showFailure(summary, problem, () => polling.now());
    },
  );
  return { update: () => {}, close: () => polling.stop() };
}

/** What needs attention, in one sentence each. */
function notices(group: GroupLag): Child {
  const waits = group.messages > 0;
  return [
    group.members === 0 &&
      notice(
        "caution",
        waits ? "No consumer is running, and messages are waiting: start " : "No consumer is running. To start one: ",
        h("code", {}, "lineage consume"),
        ".",
      ),
    group.dead_letters > 0 &&
      notice(
        "caution",
        `${count(group.dead_letters, "message")} could not be used and ${group.dead_letters === 1 ? "is" : "are"} in the topic of dead letters: see `,
        h("code", {}, "lineage dead-letters"),
        ".",
      ),
    h(
      "p",
      {},
      waits
        ? `${count(group.messages, "message")} ${group.messages === 1 ? "is" : "are"} waiting${drain(group)}.`
        : "No messages are waiting: everything that was sent is stored.",
    ),
  ];
}

const drain = ({ drain_seconds: seconds }: GroupLag) =>
  seconds === null ? "" : `; at these rates everything is stored in ${duration(seconds)}`;

function figures(group: GroupLag, waiting: Sample[], rates: Sample[]): HTMLElement {
  const figure = (name: string, value: string, line?: Element) =>
    h("div", { class: "figure" }, h("dt", {}, name), h("dd", {}, h("strong", {}, value), line));
  const orUnknown = (value: number | null, words: (value: number) => string) =>
    value === null ? "not known yet" : words(value);
  return h(
    "dl",
    { class: "figures" },
    figure(
      "Waiting messages",
      number(group.messages),
      trend(waiting, SPAN_MS, "Waiting messages in the last five minutes"),
    ),
    figure("Age of the oldest", group.seconds === null ? "not known" : duration(group.seconds)),
    figure(
      "Consumed",
      orUnknown(group.rate, rate),
      trend(rates, SPAN_MS, "Messages consumed per second in the last five minutes"),
    ),
    figure("Incoming", orUnknown(group.incoming_rate, rate)),
    figure("Consumers", group.members === null ? "not known now" : number(group.members)),
    figure("Dead letters", number(group.dead_letters)),
    figure("Group", group.name),
  );
}

type Counted = keyof ApplicationLag &
  ("messages" | "incomplete_runs" | "missing_blocks" | "missing_runs" | "missing_events" | "dropped");

function applications({ applications: lagging, unread_applications: unread }: Lag): Child {
  /** A column of counts, where any application has some. */
  const column = (name: string, counted: Counted): Column<ApplicationLag> => ({
    name,
    kind: "count",
    isUsed: lagging.some((application) => application[counted] > 0),
    cell: (application) => (application[counted] === 0 ? "" : number(application[counted])),
  });
  return [
    h("h2", {}, "Running or incomplete applications"),
    unread > 0 &&
      notice(
        "caution",
        `${count(unread, "application")} changed and ${unread === 1 ? "was" : "were"} not read yet; the next update continues with them.`,
      ),
    lagging.length === 0
      ? notice("empty", "None: every application that ended is complete.")
      : table<ApplicationLag>({
          caption: "Running or incomplete applications",
          rows: lagging,
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
            { name: "State", cell: ({ state }) => h("span", { class: colourOf(state) }, state) },
            column("Pending messages", "messages"),
            { name: "Pending for", kind: "count", cell: ({ seconds }) => (seconds > 0 ? duration(seconds) : "") },
            column("Incomplete task runs", "incomplete_runs"),
            column("Missing blocks", "missing_blocks"),
            column("Missing task runs", "missing_runs"),
            column("Missing events", "missing_events"),
            column("Dropped", "dropped"),
            { name: "What is missing", cell: ({ missing }) => missing },
          ],
        }),
  ];
}

/** Those with waiting messages; the others fold. */
function partitions(all: PartitionLag[]): Child {
  const waiting = all.filter(({ messages }) => messages > 0);
  const idle = all.filter(({ messages }) => messages === 0);
  return [
    h("h2", {}, "Topic partitions"),
    waiting.length > 0 && partitionTable("Topic partitions with waiting messages", waiting),
    idle.length > 0 &&
      h(
        "details",
        {},
        h(
          "summary",
          {},
          `Nothing waits in ${count(idle.length, waiting.length > 0 ? "other topic partition" : "topic partition")}`,
        ),
        partitionTable("Topic partitions where nothing waits", idle),
      ),
  ];
}

function partitionTable(caption: string, rows: PartitionLag[]): HTMLElement {
  return table<PartitionLag>({
    caption,
    rows,
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
  });
}
