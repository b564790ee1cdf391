// The form of further questions about a record: why it is one with another, which rows it must name, and so on.

import { h, replace } from "../dom";
import type { ExplanationRoute, Start } from "../route";
import { hasPair, isAsked, type Questions, questionsIn, questionsQuery } from "./questions";

export interface QuestionForm {
  readonly element: HTMLElement;
  /** Shows what the address asks. */
  set(route: ExplanationRoute): void;
}

const OTHER_ROW = "/data/out/part-00000:3";

/** `submitted` gets the questions as an address has them. */
export function makeQuestionForm(submitted: (query: URLSearchParams) => void): QuestionForm {
  const text = (name: string, placeholder: string, size = 34) =>
    h("input", { name, type: "text", class: "code", size, placeholder, spellcheck: "false", autocomplete: "off" });
  const same = text("same", OTHER_ROW);
  const demanded = text("with", "/data/edges.csv:7");
  const compare = text("compare", "last", 24);
  const compareStart = text("compare-start", "found by its key or text");
  const how = h("input", { name: "how", type: "checkbox" });
  const sameLabel = h("span", {});
  const sameField = h("label", {}, sameLabel, same);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    submitted(
      questionsQuery({
        same: sameField.hidden ? null : same.value.trim() || null,
        demanded: demanded.value.split(/\s*;\s*/).filter((row) => row.trim() !== ""),
        how: how.checked,
        compare: compare.value.trim() || null,
        compareStart: compareStart.value.trim() || null,
      }),
    );
  };
  const element = h(
    "details",
    { class: "questions" },
    h("summary", {}, "Ask more about it"),
    h(
      "form",
      { class: "fields", submit },
      sameField,
      h("label", {}, h("span", {}, "These input rows must be among them (FILE:LINE; FILE:LINE)"), demanded),
      h("label", {}, h("span", {}, "What changed in another run (its id)"), compare),
      h("label", {}, h("span", {}, "The record in that run"), compareStart),
      h("label", { class: "check" }, how, " which of the rows are needed together"),
      h("button", { type: "submit" }, "Ask"),
    ),
  );
  return {
    element,
    set({ start, query }) {
      const questions = questionsIn(query);
      replace(sameLabel, sameText(start));
      same.placeholder = otherText(start);
      sameField.hidden = !hasPair(start);
      fill(questions);
      element.open ||= isAsked(questions);
    },
  };

  function fill(questions: Questions): void {
    same.value = questions.same ?? "";
    demanded.value = questions.demanded.join("; ");
    how.checked = questions.how;
    compare.value = questions.compare ?? "";
    compareStart.value = questions.compareStart ?? "";
  }
}

const sameText = (start: Start): string =>
  "key" in start ? "Why is it one with this key" : "Why is it one with this record (FILE:LINE or id)";

const otherText = (start: Start): string =>
  "key" in start ? "another key" : "path" in start ? `${start.path}:1` : OTHER_ROW;
