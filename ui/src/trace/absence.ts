// What is shown in place of a record that is not there.

import type { Problem } from "../client";
import { type Child, h } from "../dom";
import { applicationHref, failuresHref } from "../route";
import { refusal } from "../states";

export const NO_RECORD = "There is no such record";

/** The service's words, and where to go on: perhaps only a task has read it that failed. */
export const absence = (application: string, problem: Problem): Child => [
  refusal(problem),
  h(
    "p",
    {},
    "Go on with ",
    h("a", { href: failuresHref(application) }, "the failures"),
    " or ",
    h("a", { href: applicationHref(application) }, "the operations"),
    " of this application.",
  ),
];
