// The replays of an application, newest first, or one of them: what was asked for, and what came out.

import "./replays.css";
import type { Replay } from "../api";
import { isAbort } from "../client";
import { type Child, h, replace } from "../dom";
import { count, time } from "../format";
import { replaysHref, type ReplaysRoute } from "../route";
import { loading, notice, showFailure } from "../states";
import { table } from "../table";
import type { View, ViewContext } from "../view";
import { replayOf } from "./report";
import { effortText, outputPlace, rowsText } from "./sentences";

export function replaysView(container: HTMLElement, context: ViewContext, first: ReplaysRoute): View<ReplaysRoute> {
  let asking = new AbortController();
  const heading = h("h1", { tabindex: -1 }, "Replays");
  const results = h("div", {});
  replace(container, heading, results);

  const show = async ({ application, replay: id }: ReplaysRoute, signal: AbortSignal) => {
    const title = id === null ? "Replays" : `Replay ${id}`;
    replace(heading, title);
    context.title(title);
    replace(results, loading());
    try {
      const { replays } = await context.client.replays(application, { signal });
      if (signal.aborted) return;
      if (id === null) {
        replace(results, ...listOf(application, replays));
        context.announce(count(replays.length, "replay"));
        return;
      }
      const replay = replays.find((one) => one.replay === id);
      replace(results, ...(replay === undefined ? goneOf(application, id) : replayOf(replay, context.announce)));
      context.announce(replay === undefined ? "It is not there" : replay.verdict);
    } catch (error) {
      if (!isAbort(error)) showFailure(results, error, () => update({ view: "replays", application, replay: id }));
    }
  };
  const update = (route: ReplaysRoute) => {
    asking.abort();
    asking = new AbortController();
    void show(route, asking.signal);
  };
  update(first);
  return { update, close: () => asking.abort() };
}

const goneOf = (application: string, id: string): Child[] => [
  notice(
    "empty",
    `There is no replay ${id} of this application on the service's machine: sandboxes are removed after a day.`,
  ),
  h("p", {}, h("a", { href: replaysHref(application) }, "Its replays")),
];

function listOf(application: string, replays: readonly Replay[]): Child[] {
  if (replays.length === 0) {
    return [
      notice(
        "empty",
        "No replay of this application is on the service's machine. The trace of an output row has the command that makes one.",
      ),
    ];
  }
  return [
    table<Replay>({
      caption: "Replays",
      rows: replays,
      key: ({ replay }) => replay,
      opens: true,
      columns: [
        {
          name: "Replay",
          kind: "narrow",
          cell: ({ replay }) => h("a", { href: replaysHref(application, replay) }, replay),
        },
        { name: "Verdict", kind: "narrow", cell: verdictOf },
        { name: "Of", cell: ({ outputs }) => outputsOf(outputs) },
        { name: "It ran", cell: (replay) => [rowsText(replay), h("div", { class: "soft small" }, effortText(replay))] },
        {
          name: "Began",
          kind: "narrow",
          cell: ({ began }) => h("time", { datetime: new Date(began).toISOString() }, time(began)),
        },
      ],
    }),
  ];
}

const verdictOf = ({ verdict }: Replay): Child => h("span", { class: `verdict ${verdict}` }, verdict);

function outputsOf([first, ...others]: Replay["outputs"]): Child {
  if (first === undefined) return h("span", { class: "soft" }, "all outputs");
  return [
    outputPlace(first),
    others.length > 0 && h("span", { class: "soft" }, ` and ${count(others.length, "more row")}`),
  ];
}
