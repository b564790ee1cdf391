// A record's way. A place for the view to come.

import { h, replace } from "../dom";
import type { TraceRoute } from "../route";
import type { View, ViewContext } from "../view";

export function traceView(place: HTMLElement, context: ViewContext, route: TraceRoute): View<TraceRoute> {
  const update = (now: TraceRoute) => {
    replace(place, h("h1", { tabindex: -1 }, "A record's way"), h("p", {}, JSON.stringify(now.start)));
    context.announce("A record's way");
  };
  update(route);
  return { update, close: () => {} };
}
