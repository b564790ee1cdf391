// The form in which outputs are called bad or good: rows of an output, each with two buttons, and those that are chosen.

import type { Graph, Node, Record } from "../api";
import { isAbort, Problem } from "../client";
import { type Child, h, replace } from "../dom";
import { count, nodeNumber } from "../format";
import { type Kind, KINDS, type Mark, marksIn, marksQuery } from "../marks";
import type { SuspectsRoute } from "../route";
import { loading, notice, refusal, showFailure } from "../states";
import type { Column } from "../table";
import { recordTable } from "../trace/rows";
import { placeOf, readable, shortened, textOf } from "../trace/texts";
import type { ViewContext } from "../view";

const PAGE = 20;
const LABEL_CHARACTERS = 80;

export interface Picker {
  readonly element: HTMLElement;
  /** Shows what the address says. */
  set(query: URLSearchParams): void;
  close(): void;
}

/** `chosen` gets the address that the form says. */
export function makePicker(
  context: ViewContext,
  { application }: SuspectsRoute,
  chosen: (query: URLSearchParams) => void,
): Picker {
  let marks: Mark[] = [];
  let asking = new AbortController();
  let outputs: Node[] | null = null;
  /** What a marked record says, by its name. */
  const labels = new Map<string, string>();
  const list = h("ul", { class: "marks", "aria-label": "Chosen outputs" });
  const rows = h("div", { class: "found" });
  const output = h("select", { name: "output", change: () => void showRows() });
  const outputLabel = h("label", {}, h("span", {}, "Output"), output);
  const where = h("input", {
    name: "where",
    type: "search",
    class: "code",
    size: 34,
    spellcheck: "false",
    autocomplete: "off",
    placeholder: "total < 0",
  });
  const method = h(
    "select",
    { name: "method" },
    h("option", { value: "" }, "bits of surprise"),
    h("option", { value: "newt" }, "Newt's rule"),
  );
  const failures = h("input", { name: "failures", type: "checkbox" });

  const isMarked = (kind: Kind, name: string) => marks.some((mark) => mark.kind === kind && mark.name === name);
  const mark = (kind: Kind, name: string, isCondition: boolean) => {
    const isOff = isMarked(kind, name);
    marks = marks.filter((other) => other.name !== name || other.isCondition !== isCondition);
    if (!isOff) marks.push({ kind, name, isCondition });
    showMarks();
    context.announce(isOff ? "no longer chosen" : `called ${kind}`);
  };

  const showMarks = () => {
    replace(
      list,
      marks.map((one) =>
        h(
          "li",
          { class: one.kind },
          h("strong", {}, one.kind),
          " ",
          labels.has(one.name) ? h("span", { title: one.name }, labels.get(one.name)) : h("code", {}, one.name),
          " ",
          h(
            "button",
            {
              type: "button",
              "aria-label": `Take back that ${labels.get(one.name) ?? one.name} is ${one.kind}`,
              click: () => mark(one.kind, one.name, one.isCondition),
            },
            "×",
          ),
        ),
      ),
    );
    for (const button of rows.querySelectorAll<HTMLElement>("[data-mark]")) {
      const [kind, name] = [button.dataset.kind as Kind, button.dataset.mark ?? ""];
      button.setAttribute("aria-pressed", String(isMarked(kind, name)));
    }
  };

  // -- rows of an output -----------------------------------------------------------------------------

  const showOutputs = async () => {
    if (outputs !== null) return;
    replace(rows, loading());
    try {
      outputs = outputsOf(await context.client.graph(application, { signal: asking.signal }));
    } catch (error) {
      showFailure(rows, error, () => void showOutputs());
      return;
    }
    replace(
      output,
      outputs.map((sink) => h("option", { value: sink.node }, outputText(sink))),
    );
    outputLabel.hidden = outputs.length < 2;
    if (outputs.length === 0) replace(rows, notice("empty", "No output of this application has records."));
    else await showRows();
  };

  const showRows = async (cursor: string | null = null) => {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const condition = where.value.trim();
    replace(rows, loading("Looking at the rows …"));
    try {
      const parameters = { limit: PAGE, columns: "*", where: condition, cursor };
      const page = await context.client.records(application, output.value, parameters, { signal });
      if (signal.aborted) return;
      const node = nodeNumber(page.node_id);
      for (const record of page.records) {
        labels.set(nameOf(node, record), shortened(readable(textOf(record)), LABEL_CHARACTERS));
      }
      replace(
        rows,
        page.warnings.map((warning) => notice("caution", warning)),
        condition !== "" && outputs?.length === 1 && page.records.length > 0 && allButtons(condition),
        page.records.length === 0
          ? notice("empty", "No row fulfils the condition.")
          : recordTable({
              caption: "Rows of the output",
              records: page.records,
              schema: page.schema,
              keyOf: ({ record_id: id }) => id,
              hrefOf: null,
              leading: markColumn(node),
            }),
        page.next !== null &&
          h("p", {}, h("button", { type: "button", click: () => void showRows(page.next) }, "More rows")),
      );
      showMarks();
    } catch (error) {
      if (isAbort(error)) return;
      if (error instanceof Problem && error.status === 422) replace(rows, refusal(error));
      else showFailure(rows, error, () => void showRows(cursor));
    }
  };

  const markColumn = (node: string): Column<Record> => ({
    name: "It is",
    kind: "narrow",
    cell: (record) => {
      const name = nameOf(node, record);
      const place = placeOf(record);
      return KINDS.map((kind) => markButton(kind, name, false, `${kind}: ${place}`, kind));
    },
  });
  const allButtons = (condition: string): Child =>
    h(
      "p",
      { class: "tools" },
      "All rows that fulfil it are ",
      KINDS.map((kind) => markButton(kind, condition, true, `All are ${kind}`, kind)),
    );
  const markButton = (kind: Kind, name: string, isCondition: boolean, label: string, text: string): HTMLElement =>
    h(
      "button",
      {
        type: "button",
        class: `mark ${kind}`,
        "data-mark": name,
        "data-kind": kind,
        "aria-label": label,
        "aria-pressed": "false",
        click: () => mark(kind, name, isCondition),
      },
      text,
    );

  const search = (event: SubmitEvent) => {
    event.preventDefault();
    void showRows();
  };
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const query = marksQuery(marks);
    if (method.value !== "") query.set("method", method.value);
    if (failures.checked) query.set("failures", "1");
    chosen(query);
  };
  const element = h(
    "section",
    { class: "picker", "aria-label": "Which outputs are wrong" },
    h(
      "p",
      { class: "soft" },
      "Name outputs that are wrong, and some that are right: then what they are made of is compared.",
    ),
    list,
    h(
      "details",
      {
        toggle: ({ currentTarget }: Event) => {
          if (currentTarget instanceof HTMLDetailsElement && currentTarget.open) void showOutputs();
        },
      },
      h("summary", {}, "Choose bad and good rows of an output"),
      h(
        "form",
        { class: "fields", role: "search", submit: search },
        outputLabel,
        h("label", {}, h("span", {}, "Rows for which"), where),
        h("button", { type: "submit" }, "Show rows"),
      ),
      rows,
    ),
    h(
      "form",
      { class: "fields", submit },
      h("label", {}, h("span", {}, "Scored by"), method),
      h("label", { class: "check" }, failures, " the records that made tasks fail are bad, too"),
      h("button", { type: "submit" }, "Compare"),
    ),
  );
  outputLabel.hidden = true;
  return {
    element,
    set(query) {
      marks = marksIn(query);
      method.value = query.get("method") === "newt" ? "newt" : "";
      failures.checked = query.get("failures") === "1";
      showMarks();
    },
    close: () => asking.abort(),
  };
}

const outputsOf = ({ nodes }: Graph): Node[] =>
  nodes.filter(({ kind, records }) => kind === "sink" && records !== null && records > 0);

const outputText = ({ node, name, dataset, records }: Node): string =>
  `${dataset?.name ?? name} (${node}), ${count(records ?? 0, "record")}`;

const nameOf = (node: string, { record_id: id }: Record): string => `${node}#${id}`;
