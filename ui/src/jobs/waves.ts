// The waves of a job as a table: what was decided when, why, and how far off the output would have been.

import type { Trigger } from "../api";
import { type Child, h } from "../dom";
import { duration, time } from "../format";
import { applicationHref } from "../route";
import { table } from "../table";
import { errorText, isMissed, probabilityText } from "./sentences";

export const waveTable = (waves: readonly Trigger[]): HTMLElement =>
  table<Trigger>({
    caption: "Waves, the latest first",
    rows: waves,
    key: ({ wave }) => wave,
    columns: [
      {
        name: "Asked",
        kind: "narrow",
        cell: ({ asked }) => h("time", { datetime: new Date(asked).toISOString() }, time(asked)),
      },
      { name: "Wave", cell: ({ wave }) => h("div", { class: "id" }, wave) },
      { name: "Decision", cell: decisionOf },
      {
        name: "Why",
        cell: ({ reason, why }) => [h("code", {}, reason), h("div", { class: "small" }, why)],
      },
      {
        name: "Probability",
        kind: "count",
        isUsed: waves.some(({ probability }) => probability !== null),
        cell: probabilityText,
      },
      {
        name: "Error if skipped",
        kind: "count",
        isUsed: waves.some(({ error }) => error !== null),
        cell: (wave) => h("span", { class: isMissed(wave) ? "is-failed" : null }, errorText(wave)),
      },
      {
        name: "Took",
        kind: "count",
        isUsed: waves.some(({ seconds }) => seconds !== null),
        cell: ({ seconds }) => (seconds === null ? "" : duration(seconds)),
      },
      {
        name: "Execution before it",
        isUsed: waves.some(({ application_id: id }) => id !== null),
        cell: ({ application_id: id }) =>
          id !== null && h("div", { class: "id" }, h("a", { href: applicationHref(id) }, id)),
      },
    ],
  });

const decisionOf = ({ decision, phase, is_audit: isAudit }: Trigger): Child => [
  h("strong", {}, decision),
  h("div", { class: "id" }, isAudit === true ? `${phase}, audit` : phase),
];
