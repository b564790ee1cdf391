// The states that every view may be in: loading, failed, empty, or with a sentence that must not be missed.

import { isAbort, Problem } from "./client";
import { type Child, h, replace } from "./dom";
import { applicationsHref, datasetsHref } from "./route";

/** A sentence that must not be missed. */
export const notice = (kind: "caution" | "failure" | "empty", ...children: Child[]): HTMLElement =>
  h("p", { class: `notice ${kind}${begins(children[0])}`, role: kind === "failure" ? "alert" : null }, ...children);

/** The class of a text whose first word gets a capital: a word, and no path or name of a file. */
const begins = (first: Child): string => (typeof first === "string" && /^[a-z]+[ ,:]/.test(first) ? " begins" : "");

/** Shown until the result is there. It appears only after a moment (style.css). */
export const loading = (what = "Loading …"): HTMLElement => h("p", { class: "loading", role: "status" }, what);

/** The service's words: the place in a condition has a caret below it, so every character has the same width. */
export function refusal({ status, message }: Problem): HTMLElement {
  const kind = status === 404 ? "empty" : "failure";
  if (!message.includes("\n")) return h("p", { class: `notice ${kind}${begins(message)}`, role: "alert" }, message);
  return h("pre", { class: `notice code ${kind}`, role: "alert" }, message);
}

/** Where to go on from an address that leads nowhere. */
export const waysOn = (): HTMLElement =>
  h(
    "p",
    {},
    "Start from the ",
    h("a", { href: datasetsHref() }, "datasets"),
    " or the ",
    h("a", { href: applicationsHref() }, "applications"),
    ".",
  );

/** Event for the shell, which then asks for the token in place of the view. */
export class TokenNeeded extends Event {
  constructor(readonly problem: Problem) {
    super("token-needed", { bubbles: true });
  }
}

/**
 * Shows a failure, with a button to try again. A 401 goes to the shell instead; an aborted request is no
 * failure.
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
        h("p", {}, `The service can be asked again in ${error.retryAfter} s.`),
      error instanceof Problem && error.status === 404 && waysOn(),
      h("button", { type: "button", click: retry }, "Try again"),
    ),
  );
}
