// What stands in the place of every view until the service's token is there.

import { type Problem, storeToken } from "./client";
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
    h("h1", { tabindex: -1 }, "This service asks for its token"),
    problem.message.startsWith("That is not") && notice("failure", problem.message),
    h(
      "p",
      {},
      "Who runs ",
      h("code", {}, "lineage serve"),
      " knows it: it says at its start where the token is. It is kept until you close this tab.",
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
      h("button", { type: "submit" }, "Go on"),
    ),
  );
  input.focus();
}
