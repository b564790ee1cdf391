// The states that every view may be in: loading, failed, empty, or with a sentence that must not be missed.

import { isAbort, Problem } from "./client";
import { type Child, h, replace } from "./dom";

/** A sentence that the reader must not miss. */
export const notice = (kind: "care" | "failure" | "empty", ...children: Child[]): HTMLElement =>
  h("p", { class: `notice ${kind}`, role: kind === "failure" ? "alert" : null }, ...children);

/** What stands in a place until its answer is there. It appears only after a moment (style.css). */
export const loading = (what = "Loading …"): HTMLElement => h("p", { class: "loading", role: "status" }, what);

/** Told to the shell, which asks for the token in the place of the view. */
export class TokenNeeded extends Event {
  constructor(readonly problem: Problem) {
    super("token-needed", { bubbles: true });
  }
}

/**
 * Shows a failure in a place, with a button to try again. A 401 goes up to the shell instead; an answer that nobody
 * waits for any more is nothing.
 */
export function showFailure(container: HTMLElement, error: unknown, retry: () => void): void {
  if (isAbort(error)) return;
  if (error instanceof Problem && error.status === 401) {
    container.dispatchEvent(new TokenNeeded(error));
    return;
  }
  const [title, message] =
    error instanceof Problem ? [error.title, error.message] : ["This page failed", String(error)];
  replace(
    container,
    h(
      "section",
      { class: "failed" },
      h("h2", {}, title),
      notice("failure", message),
      error instanceof Problem &&
        error.retryAfter !== null &&
        h("p", {}, `The service asks for patience: ${error.retryAfter} s.`),
      h("button", { type: "button", click: retry }, "Try again"),
    ),
  );
}
