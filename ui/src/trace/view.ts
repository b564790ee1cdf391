// The view of a record's lineage: the record in the centre, its sources above, its results below. One
// operation in each direction at first, more on demand. The address holds the whole state (state.ts).

import "./trace.css";
import { isAbort, Problem } from "../client";
import { h, replace } from "../dom";
import { extentSwitch } from "../explanation/switch";
import { applicationOf, count, nodeNumber } from "../format";
import { href, rowSetHref, type TraceRoute, whyHref } from "../route";
import { loading, notice, showFailure } from "../states";
import type { View, ViewContext } from "../view";
import { absence, NO_RECORD } from "./absence";
import { type Adjacency, adjacencyOf } from "./adjacency";
import { type Choice, type Drawing, makeDrawing } from "./drawing";
import { continuesBeyond, type Endpoints, endpointsOf } from "./endpoints";
import { makeList } from "./list";
import { type DirectedTrace, type Direction, lineageOf, type RecordLineage, type Side } from "./model";
import { makePanel } from "./panel";
import { type Chosen, chosenOf, fetchChosen, NOTHING_CHOSEN, withChosen } from "./chosen";
import { FIRST_DRAWN, MORE_DRAWN, pictureOf } from "./picture";
import { fetchDirectedTrace, Graphs, type TraceQuery } from "./queries";
import { type RecordHref, startOf } from "./rows";
import * as sentences from "./sentences";
import { FIRST_STATE, FIRST_TABLE, limitOf, MAX_LIMIT, readState, stateQuery, type TraceState } from "./state";
import { makeTable, type Table } from "./table";

/** What the API answered about the lineage that is shown. */
interface LoadedTrace {
  readonly traces: readonly DirectedTrace[];
  /** The whole traces, by direction, with counts only; those that have arrived. */
  readonly whole: Map<Direction, DirectedTrace>;
  readonly lineage: RecordLineage;
  readonly adjacency: Adjacency;
  readonly chosen: Chosen;
  operations: sentences.Operations;
}

/** Layers that can be read beside the panel; of more, the drawing has all of the width. */
const BESIDE_PANEL = 6;

export function traceView(container: HTMLElement, context: ViewContext, first: TraceRoute): View<TraceRoute> {
  const heading = h("h1", { tabindex: -1 }, "Trace of a record");
  const subtitle = h("p", { class: "soft subtitle" });
  const tabs = h("nav", { class: "trace-tabs", "aria-label": "Extent of the trace" });
  const notices = h("div", { class: "trace-notices" });
  const status = h("p", { class: "soft" });
  const stage = h("div", { class: "trace-stage" });
  const tools = h("div", { class: "tools" });
  const tableContainer = h("div", {});
  const panel = makePanel();
  const list = makeList({ onMore: (node) => onChoose({ kind: "more", node }), onPoint });
  const left = h("div", { class: "trace-left" }, status, stage, tools, tableContainer, list.element);
  const main = h("div", { class: "trace-main" }, left, panel.element);
  const content = h("div", { class: "trace-content" }, notices, main);
  replace(container, heading, subtitle, tabs, content);
  main.hidden = true; // until there is something to show

  const graphs = new Graphs(context.client);
  let route = first;
  let state: TraceState = readState(first.query);
  let shownKey = "";
  let startKey = "";
  let loaded: LoadedTrace | null = null;
  let requests = new AbortController();
  let drawing: Drawing | null = null;
  let drawn: { trace: LoadedTrace; key: string } | null = null;
  let table: { key: string; table: Table } | null = null;
  let operations = 1; // of the application, if the whole trace is shown
  let isClosed = false;

  const directions = (): readonly Direction[] =>
    route.direction === "both" ? ["backward", "forward"] : [route.direction];
  const queryIn = (direction: Direction): TraceQuery => ({
    application: route.application,
    start: route.start,
    direction,
  });
  const routeWith = (changes: Partial<TraceState>, more: Partial<TraceRoute> = {}): TraceRoute => ({
    ...route,
    ...more,
    query: stateQuery({ ...state, ...changes }),
  });
  const recordHref: RecordHref = (nodeId, record) =>
    href({
      ...route,
      application: applicationOf(nodeId),
      direction: "failure" in route.start ? "both" : route.direction,
      start: startOf(nodeId, record),
      query: new URLSearchParams(),
    });
  const listHref = (nodeId: string): string => href(routeWith({ list: nodeId, table: FIRST_TABLE }));

  // -- loading ---------------------------------------------------------------------------------------

  async function load(): Promise<void> {
    requests.abort();
    requests = new AbortController();
    const { signal } = requests;
    content.setAttribute("aria-busy", "true");
    if (loaded === null) replace(notices, loading());
    try {
      const limit = limitOf(state, await operationsToCome(signal));
      const traces = await Promise.all(
        directions().map((direction) => {
          const hops = route.whole ? null : direction === "backward" ? state.up : state.down;
          return fetchDirectedTrace(
            context.client,
            queryIn(direction),
            { limit, hops, values: true, remarks: route.whole, columns: "*" },
            signal,
          );
        }),
      );
      const loadedGraphs = await graphs.of(applicationsOf(traces), signal);
      const lineage = lineageOf(
        traces,
        loadedGraphs.flatMap((graph) => graph.edges),
      );
      const whole = new Map(route.whole ? traces.map((trace) => [trace.direction, trace]) : []);
      loaded = {
        traces,
        whole,
        lineage,
        adjacency: adjacencyOf(lineage.flows),
        chosen: NOTHING_CHOSEN,
        operations: sentences.operationsOf(loadedGraphs),
      };
      if (signal.aborted || isClosed) return;
      main.hidden = false;
      drawing ??= makeDrawing(stage, { onChoose, onPoint, onFocus, onLeave: resetSelection });
      announceRecord();
      show();
      await Promise.all([...directions().map((direction) => loadEndpoints(direction, signal)), loadValues(signal)]);
      await loadChosen(signal);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && error.status === 404) showMissing(error);
      else showFailure(notices, error, () => void load());
      shownKey = "";
    } finally {
      if (!signal.aborted) content.removeAttribute("aria-busy");
    }
  }

  /** Nothing of the record that was shown before may stay. */
  function showMissing(problem: Problem): void {
    loaded = null;
    main.hidden = true;
    replace(heading, NO_RECORD);
    replace(subtitle);
    replace(tabs);
    context.title(NO_RECORD);
    replace(notices, absence(route.application, problem));
  }

  /** How many operations a result may have at most. */
  async function operationsToCome(signal: AbortSignal): Promise<number> {
    if (!route.whole) return state.up + state.down;
    const [graph] = await graphs.of([route.application], signal);
    operations = graph?.nodes.length ?? 1;
    return operations;
  }

  /** The heading is the record's own text, which screen readers announce. */
  function announceRecord(): void {
    if (loaded === null) return;
    const title = sentences.title(loaded.lineage);
    replace(heading, title);
    context.named(loaded.lineage.centre.application, loaded.lineage.centre.applicationName);
    const [record, ...others] = loaded.lineage.centre.records;
    // The id of a record says of itself whether it was read or written: a command line needs no more.
    const isOfOne = !["where", "key", "failure"].some((name) => name in route.start);
    if (record !== undefined && others.length === 0 && isOfOne)
      context.commands({ ...route, start: { record: record.record_id, node: loaded.lineage.centre.number } });
    const starts = sentences.startsText(loaded.traces);
    replace(subtitle, sentences.subtitle(loaded.lineage), starts && ` ${starts}`);
    context.title(title);
    const key = JSON.stringify([route.application, route.start]);
    if (key === startKey) return;
    if (startKey !== "") {
      scrollTo(0, 0);
      heading.focus({ preventScroll: true });
    }
    startKey = key;
    context.announce(`${title}, ${sentences.subtitle(loaded.lineage)}`);
  }

  /** The endpoints of the whole trace, even where only a part of it is drawn. Counts only: no records are listed. */
  async function loadEndpoints(direction: Direction, signal: AbortSignal): Promise<void> {
    const current = loaded;
    if (current === null) return;
    try {
      if (!current.whole.has(direction)) {
        panel.endpoints(null, direction, current.operations, listHref, recordHref, () => {});
        current.whole.set(
          direction,
          await fetchDirectedTrace(context.client, queryIn(direction), { limit: 1, hops: null, remarks: true }, signal),
        );
        const loadedGraphs = await graphs.of(applicationsOf([...current.traces, ...current.whole.values()]), signal);
        current.operations = sentences.operationsOf(loadedGraphs);
      }
      if (signal.aborted || current !== loaded) return;
      showEndpoints();
      show();
    } catch (error) {
      if (!isAbort(error) && !signal.aborted)
        showFailure(panel.endpointsContainer(direction), error, () => void loadEndpoints(direction, signal));
    }
  }

  /** Draws the rows that stand out and a sample of all, which are mostly not among those that were listed. */
  async function loadChosen(signal: AbortSignal): Promise<void> {
    const current = loaded;
    const [record] = current?.lineage.centre.records ?? [];
    if (current === null || record === undefined || current.lineage.centre.total > 1) return;
    const { id: node } = current.lineage.centre;
    const drawnNodes = current.lineage.nodes;
    if (drawnNodes.every(({ total, records }) => total <= records.length)) return;
    const listed = new Set(drawnNodes.filter(({ total, records }) => total <= records.length).map(({ id }) => id));
    const centre = { hash: `${node}#${record.record_id}`, node };
    const paths = await fetchChosen(context.client, current.whole.values(), centre, listed, signal);
    if (paths.length === 0 || signal.aborted || current !== loaded) return;
    const traces = current.traces.map((trace) => withChosen(trace, paths));
    const loadedGraphs = await graphs.of(applicationsOf(traces), signal);
    const lineage = lineageOf(
      traces,
      loadedGraphs.flatMap((graph) => graph.edges),
    );
    loaded = { ...current, traces, lineage, adjacency: adjacencyOf(lineage.flows), chosen: chosenOf(paths) };
    show();
  }

  async function loadValues(signal: AbortSignal): Promise<void> {
    const current = loaded;
    const [record] = current?.lineage.centre.records ?? [];
    if (current === null || record === undefined || current.lineage.centre.total > 1) {
      replace(panel.valuesContainer, h("p", {}, "Select one of the records to see its values."));
      return;
    }
    if ("failure" in route.start) {
      replace(panel.valuesContainer, h("p", {}, "What a task that failed has captured does not count."));
      return;
    }
    panel.values(null);
    try {
      const parameters = { record: record.record_id, node: current.lineage.centre.number };
      const values = await context.client.values(current.lineage.centre.application, parameters, { signal });
      if (!signal.aborted) panel.values(values);
    } catch (error) {
      showFailure(panel.valuesContainer, error, () => void loadValues(signal));
    }
  }

  // -- showing ---------------------------------------------------------------------------------------

  function further(trace: DirectedTrace): boolean {
    if (loaded === null || route.whole) return false;
    const hops = trace.direction === "backward" ? state.up : state.down;
    return continuesBeyond(trace, loaded.whole.get(trace.direction) ?? null) ?? trace.nodes.length > hops;
  }

  /** Shows all that depends on the results and the address; draws only what has changed. */
  function show(): void {
    if (loaded === null || drawing === null) return;
    const sides = new Set<Side>(loaded.traces.filter(further).map((trace) => trace.direction));
    const key = JSON.stringify([[...sides], [...state.more], [...state.unfolded]]);
    if (drawn?.trace !== loaded || drawn.key !== key) {
      drawn = { trace: loaded, key };
      draw(loaded, drawing, sides);
    }
    panel.directions(directions());
    showTabs(sides);
    showTable();
  }

  function draw(
    { lineage, adjacency, traces, operations, chosen }: LoadedTrace,
    drawing: Drawing,
    sides: ReadonlySet<Side>,
  ): void {
    const picture = pictureOf(lineage, adjacency, {
      more: state.more,
      further: sides,
      chosen,
      unfolded: state.unfolded,
    });
    main.classList.toggle("is-long", picture.layers > BESIDE_PANEL); // before the drawing measures its room
    drawing.show(lineage, adjacency, picture).catch((error: unknown) => showFailure(notices, error, () => void load()));
    list.show(lineage, picture, operations, recordHref, listHref);
    replace(status, sentences.drawn(picture));
    replace(
      notices,
      sentences.cautions(traces, operations).map((text) => notice("caution", text)),
      traces
        .filter((trace) => trace.isPartial)
        .map((trace) =>
          notice(
            "caution",
            sentences.stopped(trace.direction),
            " ",
            h("button", { type: "button", click: () => void load() }, "Continue the trace"),
          ),
        ),
    );
    resetSelection();
    showTools();
  }

  function showTabs(sides: ReadonlySet<Side>): void {
    const link = (name: string, route: TraceRoute, isCurrent: boolean) =>
      h("a", { href: href(route), "aria-current": isCurrent ? "true" : null }, name);
    const firstQuery = stateQuery(FIRST_STATE);
    const { direction, whole } = route;
    replace(
      tabs,
      link("Both directions", { ...route, direction: "both" }, direction === "both"),
      link("Where it came from", { ...route, direction: "backward" }, direction === "backward"),
      link("What became of it", { ...route, direction: "forward" }, direction === "forward"),
      h("span", { class: "gap" }),
      link(
        "One operation",
        { ...route, whole: false, query: firstQuery },
        !whole && state.up === 1 && state.down === 1,
      ),
      sides.has("backward") && link("One operation back", routeWith({ up: state.up + 1 }), false),
      sides.has("forward") && link("One operation forward", routeWith({ down: state.down + 1 }), false),
      link("Whole trace", { ...route, whole: true, query: stateQuery({ ...state, up: 1, down: 1 }) }, whole),
      direction !== "forward" && extentSwitch(route.application, route.start, "everything"),
      h("a", { href: rowSetHref(route.application, route.start) }, "Input rows"),
      h("a", { href: whyHref(route.application, route.start) }, "Why?"),
    );
  }

  function showEndpoints(): void {
    if (loaded === null) return;
    for (const [direction, trace] of loaded.whole) {
      const endpoints: Endpoints = endpointsOf(trace);
      panel.endpoints(endpoints, direction, loaded.operations, listHref, recordHref, () => {
        loaded?.whole.delete(direction);
        if (route.whole) void load();
        else void loadEndpoints(direction, requests.signal);
      });
    }
  }

  function showTable(): void {
    const listedNode = state.list;
    const direction = listedNode === null ? undefined : directionOf(listedNode);
    const key =
      listedNode === null || direction === undefined
        ? null
        : JSON.stringify([startKey, listedNode, direction, state.table]);
    if (key === (table?.key ?? null)) return;
    table?.table.close();
    table = null;
    replace(tableContainer);
    if (loaded === null || listedNode === null || key === null || direction === undefined) return;
    const node = loaded.lineage.nodes.find((lineageNode) => lineageNode.id === listedNode);
    const operation = loaded.operations.get(listedNode);
    const newTable = makeTable(
      {
        nodeId: listedNode,
        name: `${node?.name ?? operation?.name ?? "operation"} (${nodeNumber(listedNode)})`,
        path: operation?.dataset?.name ?? null,
        query: queryIn(direction),
        state: state.table,
      },
      {
        client: context.client,
        closeHref: href(routeWith({ list: null })),
        hrefWith: (changes) => href(routeWith({ table: { ...state.table, ...changes } })),
        recordHref,
        announce: context.announce,
      },
    );
    table = { key: key, table: newTable };
    replace(tableContainer, newTable.element);
    newTable.element.scrollIntoView({ block: "start" });
    newTable.element.querySelector("h2")?.focus({ preventScroll: true });
  }

  /** The direction in which an operation lies; undefined while it is unknown. */
  function directionOf(nodeId: string): Direction | undefined {
    const traces = [...(loaded?.whole.values() ?? []), ...(loaded?.traces ?? [])];
    return traces.find((trace) => trace.nodes.some((node) => node.node_id === nodeId))?.direction;
  }

  function showTools(): void {
    const message = h("span", { role: "status" });
    const putIntoNeo4j = async (event: Event): Promise<void> => {
      const { currentTarget: button } = event;
      if (!(button instanceof HTMLButtonElement)) return;
      button.disabled = true;
      replace(message, "Writing …");
      try {
        const lines: (string | HTMLElement)[] = [];
        for (const direction of directions()) {
          const result = await context.client.materialize(route.application, { ...route.start, direction });
          const all = result.truncated ? ", which is not all of them" : "";
          lines.push(
            `${count(result.records, "record")} and ${count(result.links, "link")} are in Neo4j${all}. To show them in Neo4j Browser: `,
          );
          lines.push(h("code", {}, result.query), " ");
        }
        replace(message, ...lines);
      } catch (error) {
        replace(message, error instanceof Error ? error.message : String(error));
      } finally {
        button.disabled = false;
      }
    };
    replace(
      tools,
      h("button", { type: "button", click: (event: Event) => void putIntoNeo4j(event) }, "Write to Neo4j"),
      message,
    );
  }

  // -- user actions ----------------------------------------------------------------------------------

  function onPoint(hash: string | null): void {
    if (loaded === null) return;
    const { lineage, adjacency, operations } = loaded;
    const tracedRecord = hash === null ? undefined : lineage.recordsByHash.get(hash);
    const lit = tracedRecord === undefined || hash === null ? null : adjacency.connected(hash);
    drawing?.light(lit, hash);
    list.light(lit);
    if (tracedRecord !== undefined) panel.record(tracedRecord, lineage, operations, recordHref); // and stays, for its links
  }

  /** Selects the record itself again. */
  function resetSelection(): void {
    if (loaded === null) return;
    const { lineage, operations } = loaded;
    onPoint(null);
    const [record] = lineage.centre.records;
    panel.record(
      record !== undefined && lineage.centre.total <= 1 ? { node: lineage.centre, record } : undefined,
      lineage,
      operations,
      recordHref,
    );
  }

  function onFocus(name: string, label: string): void {
    const tracedRecord = loaded?.lineage.recordsByHash.get(name);
    context.announce(
      loaded === null || tracedRecord === undefined ? label : sentences.spoken(tracedRecord, loaded.adjacency),
    );
  }

  function onChoose(choice: Choice): void {
    if (loaded === null) return;
    if (choice.kind === "record") {
      const tracedRecord = loaded.lineage.recordsByHash.get(choice.hash);
      if (tracedRecord !== undefined && tracedRecord.node.side !== "centre")
        location.hash = recordHref(tracedRecord.node.id, tracedRecord.record);
    } else if (choice.kind === "further") {
      context.navigate(routeWith(choice.side === "backward" ? { up: state.up + 1 } : { down: state.down + 1 }));
    } else if (choice.kind === "folded") {
      if (choice.key === "backward" || choice.key === "forward") list.element.scrollIntoView();
      else context.navigate(routeWith({ unfolded: new Set([...state.unfolded, choice.key]) }));
    } else {
      const node = loaded.lineage.nodes.find((lineageNode) => lineageNode.id === choice.node);
      const drawn = Math.max(state.more.get(choice.node) ?? 0, FIRST_DRAWN);
      const newState: TraceState = {
        ...state,
        more: new Map(state.more).set(choice.node, Math.min(MAX_LIMIT, drawn + MORE_DRAWN)),
      };
      const limit = limitOf(newState, route.whole ? operations : state.up + state.down);
      // The table has what does not fit into the drawing.
      if (node === undefined || drawn >= Math.min(limit, node.total))
        context.navigate(routeWith({ list: choice.node, table: FIRST_TABLE }));
      else context.navigate(routeWith({ more: newState.more }));
    }
  }

  function update(next: TraceRoute): void {
    route = next;
    state = readState(next.query);
    const { up, down } = state;
    const key = JSON.stringify([next.application, next.start, next.direction, next.whole, up, down, limitOf(state, 1)]);
    if (key === shownKey) {
      show();
      return;
    }
    shownKey = key;
    void load();
  }

  update(first);
  return {
    update,
    close() {
      isClosed = true;
      requests.abort();
      table?.table.close();
      drawing?.close();
    },
  };
}

const applicationsOf = (traces: readonly DirectedTrace[]): Set<string> =>
  new Set(traces.flatMap((trace) => [trace.startNode, ...trace.nodes.map((node) => node.node_id)]).map(applicationOf));
