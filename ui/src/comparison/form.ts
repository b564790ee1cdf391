// The form of a comparison: a dataset, or two applications, and the columns that name a row.

import { h } from "../dom";
import { queryOf } from "../route";

const FIELDS = [
  { name: "dataset", label: "Dataset", size: 44, hint: "/data/monthly" },
  { name: "before", label: "Earlier run", size: 24, hint: "its last run but one" },
  { name: "after", label: "Later run", size: 24, hint: "its last run" },
  { name: "key", label: "Columns that name a row", size: 24, hint: "airport,month" },
] as const;

export interface Form {
  element: HTMLElement;
  set(query: URLSearchParams): void;
}

/** `submitted` gets what the form says, without empty fields. */
export function makeForm(submitted: (query: URLSearchParams) => void): Form {
  const fields = FIELDS.map(({ name, label, size, hint }) => ({
    name,
    label,
    input: h("input", { name, type: "text", size, placeholder: hint, spellcheck: "false", autocomplete: "off" }),
  }));
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    submitted(queryOf(Object.fromEntries(fields.map(({ name, input }) => [name, input.value.trim()]))));
  };
  const element = h(
    "form",
    { class: "fields", submit },
    fields.map(({ label, input }) => h("label", {}, h("span", {}, label), input)),
    h("button", { type: "submit" }, "Compare"),
  );
  return {
    element,
    set(query) {
      for (const { name, input } of fields) input.value = query.get(name) ?? "";
    },
  };
}
