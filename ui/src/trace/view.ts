// The view of a record's way: the record in the middle, what it came from above, what became of it below. One
// operation each way at first, more on demand. The address says all that is shown (state.ts).

import "./trace.css";
import { isAbort } from "../client";
import { h, replace } from "../dom";
import { href, type TraceRoute } from "../route";
import { showFailure, loading, notice } from "../states";
import type { View, ViewContext } from "../view";
import { applicationOf, count, nodeNumber } from "../format";
import { type Chosen, type Drawing, makeDrawing } from "./drawing";
import { type Ends, endsOf, goesOn } from "./endpoints";
import { makeList } from "./list";
import { type Direction, type Leg, type Side, type Way, wayOf } from "./model";
import { makePanel } from "./panel";
import { FIRST_DRAWN, MORE_DRAWN, pictureOf } from "./picture";
import { askLeg, Graphs, type Question } from "./queries";
import { type LinkTo, startOf } from "./rows";
import * as sentences from "./sentences";
import { asked, FIRST_STATE, MOST_ASKED, readState, type WayState, writtenState } from "./state";
import { makeTable, type Table } from "./table";
import { type Ways, waysOf } from "./adjacency";

/** What was answered about the way that is shown. */
interface Known {
  readonly legs: readonly Leg[];
  /** The whole way's counts, direction by direction, as far as they are there. */
  readonly whole: Map<Direction, Leg>;
  readonly way: Way;
  readonly ways: Ways;
  operations: sentences.Operations;
}

export function traceView(place: HTMLElement, context: ViewContext, first: TraceRoute): View<TraceRoute> {
  const heading = h("h1", { tabindex: -1 }, "A record's way");
  const whose = h("p", { class: "soft under" });
  const tabs = h("nav", { class: "way-tabs", "aria-label": "How much of the way" });
  const notices = h("div", { class: "way-notices" });
  const status = h("p", { class: "soft" });
  const stage = h("div", { class: "way-stage" });
  const tools = h("div", { class: "tools" });
  const tablePlace = h("div", {});
  const panel = makePanel();
  const list = makeList({ more: (node) => chosen({ kind: "more", node }), pointed });
  const left = h("div", { class: "way-left" }, status, stage, tools, tablePlace, list.place);
  const main = h("div", { class: "way-main" }, left, panel.place);
  const content = h("div", { class: "way" }, notices, main);
  replace(place, heading, whose, tabs, content);
  main.hidden = true; // until there is something to show

  const graphs = new Graphs(context.client);
  let route = first;
  let state: WayState = readState(first.query);
  let shownKey = "";
  let startKey = "";
  let known: Known | null = null;
  let running = new AbortController();
  let drawing: Drawing | null = null;
  let drawn: { of: Known; wanted: string } | null = null;
  let table: { of: string; table: Table } | null = null;
  let operations = 1; // of the application, as far as the whole way needs it
  let isClosed = false;

  const directions = (): readonly Direction[] =>
    route.direction === "both" ? ["backward", "forward"] : [route.direction];
  const question = (direction: Direction): Question => ({
    application: route.application,
    start: route.start,
    direction,
  });
  const to = (changes: Partial<WayState>, more: Partial<TraceRoute> = {}): TraceRoute => ({
    ...route,
    ...more,
    query: writtenState({ ...state, ...changes }),
  });
  const linkTo: LinkTo = (nodeId, record) =>
    href({
      ...route,
      application: applicationOf(nodeId),
      start: startOf(nodeId, record),
      query: new URLSearchParams(),
    });
  const listHref = (nodeId: string): string => href(to({ list: nodeId }));

  // -- asking ----------------------------------------------------------------------------------------

  async function load(): Promise<void> {
    running.abort();
    running = new AbortController();
    const { signal } = running;
    content.setAttribute("aria-busy", "true");
    if (known === null) replace(notices, loading());
    try {
      const limit = asked(state, await operationsToCome(signal));
      const legs = await Promise.all(
        directions().map((direction) => {
          const hops = route.whole ? null : direction === "backward" ? state.up : state.down;
          return askLeg(context.client, question(direction), { limit, hops, values: true }, signal);
        }),
      );
      const found = await graphs.of(applicationsOf(legs), signal);
      const way = wayOf(
        legs,
        found.flatMap((graph) => graph.edges),
      );
      const whole = new Map(route.whole ? legs.map((leg) => [leg.direction, leg]) : []);
      known = { legs, whole, way, ways: waysOf(way.flows), operations: sentences.operationsOf(found) };
      if (signal.aborted || isClosed) return;
      main.hidden = false;
      drawing ??= makeDrawing(stage, { chosen, pointed, came, left: settle });
      arrived();
      show();
      await Promise.all([...directions().map((direction) => lookAtEnds(direction, signal)), lookAtValues(signal)]);
    } catch (error) {
      if (signal.aborted) return;
      showFailure(notices, error, () => void load());
      shownKey = "";
    } finally {
      if (!signal.aborted) content.removeAttribute("aria-busy");
    }
  }

  /** How many operations an answer may have; a way of few hops has few. */
  async function operationsToCome(signal: AbortSignal): Promise<number> {
    if (!route.whole) return state.up + state.down;
    const [graph] = await graphs.of([route.application], signal);
    operations = graph?.nodes.length ?? 1;
    return operations;
  }

  /** The heading says the record's own text, and those who cannot see hear where they are. */
  function arrived(): void {
    if (known === null) return;
    const title = sentences.title(known.way);
    replace(heading, title);
    replace(whose, sentences.under(known.way));
    context.title(title);
    const key = JSON.stringify([route.application, route.start]);
    if (key === startKey) return;
    if (startKey !== "") {
      scrollTo(0, 0);
      heading.focus({ preventScroll: true });
    }
    startKey = key;
    context.announce(`${title}, ${sentences.under(known.way)}`);
  }

  /** Where the whole way leads, also where only a part of it is drawn. Counts only: no records are listed. */
  async function lookAtEnds(direction: Direction, signal: AbortSignal): Promise<void> {
    const of = known;
    if (of === null) return;
    try {
      if (!of.whole.has(direction)) {
        panel.ends(null, direction, of.operations, listHref, () => {});
        of.whole.set(direction, await askLeg(context.client, question(direction), { limit: 1, hops: null }, signal));
        const found = await graphs.of(applicationsOf([...of.legs, ...of.whole.values()]), signal);
        of.operations = sentences.operationsOf(found);
      }
      if (signal.aborted || of !== known) return;
      showEnds();
      show();
    } catch (error) {
      if (!isAbort(error) && !signal.aborted)
        showFailure(panel.endsPlace(direction), error, () => void lookAtEnds(direction, signal));
    }
  }

  async function lookAtValues(signal: AbortSignal): Promise<void> {
    const of = known;
    const [record] = of?.way.centre.records ?? [];
    if (of === null || record === undefined || of.way.centre.total > 1) {
      replace(panel.valuesPlace, h("p", {}, "Choose one of the records to see its values."));
      return;
    }
    panel.values(null);
    try {
      const asked = { record: record.record_id, node: of.way.centre.number };
      const values = await context.client.values(of.way.centre.application, asked, { signal });
      if (!signal.aborted) panel.values(values);
    } catch (error) {
      showFailure(panel.valuesPlace, error, () => void lookAtValues(signal));
    }
  }

  // -- showing ---------------------------------------------------------------------------------------

  function further(leg: Leg): boolean {
    if (known === null || route.whole) return false;
    const hops = leg.direction === "backward" ? state.up : state.down;
    return goesOn(leg, known.whole.get(leg.direction) ?? null) ?? leg.nodes.length > hops;
  }

  /** All that depends on what is known and on the address; the drawing only where something of it is another. */
  function show(): void {
    if (known === null || drawing === null) return;
    const sides = new Set<Side>(known.legs.filter(further).map((leg) => leg.direction));
    const wanted = JSON.stringify([[...sides], [...state.more]]);
    if (drawn?.of !== known || drawn.wanted !== wanted) {
      drawn = { of: known, wanted };
      draw(known, drawing, sides);
    }
    panel.directions(directions());
    showTabs(sides);
    showTable();
  }

  function draw({ way, ways, legs, operations }: Known, drawing: Drawing, sides: ReadonlySet<Side>): void {
    const picture = pictureOf(way, ways, { more: state.more, further: sides });
    drawing.show(way, ways, picture).catch((error: unknown) => showFailure(notices, error, () => void load()));
    list.show(way, picture, operations, linkTo, listHref);
    replace(status, sentences.drawn(picture));
    replace(
      notices,
      sentences.cautions(legs, operations).map((each) => notice("care", each)),
      legs
        .filter((leg) => leg.isSoFar)
        .map((leg) =>
          notice(
            "care",
            sentences.stopped(leg.direction),
            " ",
            h("button", { type: "button", click: () => void load() }, "Go on looking"),
          ),
        ),
    );
    settle();
    showTools();
  }

  function showTabs(sides: ReadonlySet<Side>): void {
    const link = (name: string, route: TraceRoute, isHere: boolean) =>
      h("a", { href: href(route), "aria-current": isHere ? "true" : null }, name);
    const fresh = writtenState(FIRST_STATE);
    const { direction, whole } = route;
    replace(
      tabs,
      link("Both ways", { ...route, direction: "both" }, direction === "both"),
      link("Where it came from", { ...route, direction: "backward" }, direction === "backward"),
      link("What became of it", { ...route, direction: "forward" }, direction === "forward"),
      h("span", { class: "gap" }),
      link("One operation", { ...route, whole: false, query: fresh }, !whole && state.up === 1 && state.down === 1),
      sides.has("backward") && link("One further back", to({ up: state.up + 1 }), false),
      sides.has("forward") && link("One further on", to({ down: state.down + 1 }), false),
      link("The whole way", { ...route, whole: true, query: writtenState({ ...state, up: 1, down: 1 }) }, whole),
    );
  }

  function showEnds(): void {
    if (known === null) return;
    for (const [direction, leg] of known.whole) {
      const ends: Ends = endsOf(leg);
      panel.ends(ends, direction, known.operations, listHref, () => {
        known?.whole.delete(direction);
        if (route.whole) void load();
        else void lookAtEnds(direction, running.signal);
      });
    }
  }

  function showTable(): void {
    const wanted = state.list;
    const direction = wanted === null ? undefined : directionOf(wanted);
    const key = wanted === null || direction === undefined ? null : JSON.stringify([startKey, wanted, direction]);
    if (key === (table?.of ?? null)) return;
    table?.table.close();
    table = null;
    replace(tablePlace);
    if (known === null || wanted === null || key === null || direction === undefined) return;
    const node = known.way.nodes.find((each) => each.id === wanted);
    const operation = known.operations.get(wanted);
    const made = makeTable(
      {
        nodeId: wanted,
        name: `${node?.name ?? operation?.name ?? "operation"} (${nodeNumber(wanted)})`,
        path: operation?.dataset?.name ?? null,
        question: question(direction),
      },
      { client: context.client, closeHref: href(to({ list: null })), linkTo, announce: context.announce },
    );
    table = { of: key, table: made };
    replace(tablePlace, made.place);
    made.place.scrollIntoView({ block: "start" });
    made.place.querySelector("h2")?.focus({ preventScroll: true });
  }

  /** On which side an operation is; undefined while nobody knows. */
  function directionOf(nodeId: string): Direction | undefined {
    const legs = [...(known?.whole.values() ?? []), ...(known?.legs ?? [])];
    return legs.find((leg) => leg.nodes.some((node) => node.node_id === nodeId))?.direction;
  }

  function showTools(): void {
    const said = h("span", { role: "status" });
    const put = async (event: Event): Promise<void> => {
      const { currentTarget: button } = event;
      if (!(button instanceof HTMLButtonElement)) return;
      button.disabled = true;
      replace(said, "Writing …");
      try {
        const lines: (string | HTMLElement)[] = [];
        for (const direction of directions()) {
          const made = await context.client.materialize(route.application, { ...route.start, direction });
          const all = made.truncated ? ", which is not all of them" : "";
          lines.push(
            `${count(made.records, "record")} and ${count(made.links, "link")} stand in Neo4j${all}. Show them in its Browser: `,
          );
          lines.push(h("code", {}, made.query), " ");
        }
        replace(said, ...lines);
      } catch (error) {
        replace(said, error instanceof Error ? error.message : String(error));
      } finally {
        button.disabled = false;
      }
    };
    replace(tools, h("button", { type: "button", click: (event: Event) => void put(event) }, "Put into Neo4j"), said);
  }

  // -- what people do --------------------------------------------------------------------------------

  function pointed(hash: string | null): void {
    if (known === null) return;
    const { way, ways, operations } = known;
    const place = hash === null ? undefined : way.places.get(hash);
    const lit = place === undefined || hash === null ? null : ways.through(hash);
    drawing?.light(lit, hash);
    list.light(lit);
    if (place !== undefined) panel.record(place, way, operations, linkTo); // and stays, for its links
  }

  /** Back to the record itself. */
  function settle(): void {
    if (known === null) return;
    const { way, operations } = known;
    pointed(null);
    const [record] = way.centre.records;
    panel.record(
      record !== undefined && way.centre.total <= 1 ? { node: way.centre, record } : undefined,
      way,
      operations,
      linkTo,
    );
  }

  function came(name: string, label: string): void {
    const place = known?.way.places.get(name);
    context.announce(known === null || place === undefined ? label : sentences.spoken(place, known.ways));
  }

  function chosen(what: Chosen): void {
    if (known === null) return;
    if (what.kind === "record") {
      const place = known.way.places.get(what.hash);
      if (place !== undefined && place.node.side !== "centre") location.hash = linkTo(place.node.id, place.record);
    } else if (what.kind === "further") {
      context.navigate(to(what.side === "backward" ? { up: state.up + 1 } : { down: state.down + 1 }));
    } else if (what.kind === "folded") {
      list.place.scrollIntoView();
    } else {
      const node = known.way.nodes.find((each) => each.id === what.node);
      const drawn = Math.max(state.more.get(what.node) ?? 0, FIRST_DRAWN);
      const wished: WayState = {
        ...state,
        more: new Map(state.more).set(what.node, Math.min(MOST_ASKED, drawn + MORE_DRAWN)),
      };
      const most = asked(wished, route.whole ? operations : state.up + state.down);
      // What is beyond the drawing's measure stands in the table.
      if (node === undefined || drawn >= Math.min(most, node.total)) context.navigate(to({ list: what.node }));
      else context.navigate(to({ more: wished.more }));
    }
  }

  function update(now: TraceRoute): void {
    route = now;
    state = readState(now.query);
    const { up, down } = state;
    const key = JSON.stringify([now.application, now.start, now.direction, now.whole, up, down, asked(state, 1)]);
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
      running.abort();
      table?.table.close();
      drawing?.close();
    },
  };
}

const applicationsOf = (legs: readonly Leg[]): Set<string> =>
  new Set(legs.flatMap((leg) => [leg.startNode, ...leg.nodes.map((node) => node.node_id)]).map(applicationOf));
