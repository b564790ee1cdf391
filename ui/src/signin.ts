// The form that asks for the service's token, in place of the view.

import { hasToken, type Problem, storeToken } from "./client";
import { h, replace } from "./dom";
import { notice } from "./states";

export function signIn(container: HTMLElement, problem: Problem, onToken: () => void): void {
  const input = h("input", {
    name: "token",
    type: "password",
    autocomplete: "current-password",
    required: true,
    spellcheck: "false",
  });
  replace(
    container,
    h("h1", { tabindex: -1 }, "This service requires a token"),
    hasToken() && notice("failure", problem.message),
    h(
      "p",
      {},
      h("code", {}, "lineage serve"),
      " says at its start where the token is. This page stores it until you close the tab.",
    ),
    h(
      "form",
      {
        class: "fields",
        submit: (event: SubmitEvent) => {
          event.preventDefault();
          storeToken(input.value);
          onToken();
        },
      },
      h("label", {}, h("span", {}, "Token"), input),
      h("button", { type: "submit" }, "Continue"),
    ),
  );
  input.focus();
}
