// Why two records are one: the two, what they share, and where their explanations meet.

import type { ExplainedSide, Meeting, TraceStart } from "../api";
import { type Child, h } from "../dom";
import { count, nodeNumber } from "../format";
import { notice } from "../states";
import { recordOf } from "./rows";
import { meetingText, sharedText, sidesText } from "./sentences";

/** Records that are shown of each side, and where they meet. */
const MOST_RECORDS = 3;

export const pairOf = (application: string, meeting: Meeting): HTMLElement =>
  h(
    "section",
    { class: "pair", "aria-label": "The two records" },
    sideOf(application, "A", meeting.a),
    sideOf(application, "B", meeting.b),
    meeting.equal === true ? h("p", {}, h("strong", {}, sharedText(meeting))) : notice("caution", sharedText(meeting)),
    h("p", {}, meetingText(meeting), meeting.meets !== null && [": ", recordsOf(application, meeting.meets)]),
    h("p", { class: "soft" }, sidesText(meeting)),
  );

const sideOf = (application: string, name: string, { starts }: ExplainedSide): Child =>
  starts.map((start) => h("div", {}, h("span", { class: "holder" }, name), " ", recordsOf(application, start)));

function recordsOf(
  application: string,
  { node_id: id, records, total }: Pick<TraceStart, "node_id" | "records" | "total">,
) {
  const shown = records.slice(0, MOST_RECORDS);
  return [
    shown.map((record, at) => [at > 0 && ", ", recordOf(application, nodeNumber(id), record)]),
    total > shown.length && ` and ${count(total - shown.length, "more record")}`,
  ];
}
