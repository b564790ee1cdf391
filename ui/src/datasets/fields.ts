// The fields in which a person says which rows are meant.

import { type Attributes, h } from "../dom";

/** Where a condition on rows is typed. */
export const conditionField = (attributes: Attributes): HTMLInputElement =>
  h("input", {
    name: "where",
    type: "text",
    class: "code",
    size: 70,
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "off",
    ...attributes,
  });

/** Where the version of a table is typed; empty: the newest. */
export const versionField = (): HTMLInputElement =>
  h("input", { name: "version", type: "text", inputmode: "numeric", size: 8, placeholder: "newest" });
