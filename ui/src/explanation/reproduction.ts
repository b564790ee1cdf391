// The commands that run the job on these rows and save them as a reproduction, to copy.

import type { Explanation } from "../api";
import { captionedLines } from "../copy";
import { type Child, h } from "../dom";
import type { ExplanationRoute } from "../route";
import { questionsIn, reproductionLines } from "./questions";

/** Of rows of outputs: only these can be seen to come out again. */
export const reproductionOf = (
  { starts }: Explanation,
  route: ExplanationRoute,
  announce: (text: string) => void,
): Child =>
  questionsIn(route.query).same === null &&
  starts.every(({ records }) => records.every(({ record_id: id }) => id.startsWith("write#"))) &&
  h(
    "details",
    { class: "reproduction" },
    h("summary", {}, "Save as a reproduction"),
    h(
      "p",
      { class: "soft" },
      "At a terminal, with the command of the job behind the dashes. None of its files is touched.",
    ),
    captionedLines(reproductionLines(route), announce),
  );
