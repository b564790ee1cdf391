// The interface of a view, and what a view may use of the shell around it.

import type { Client } from "./client";
import type { NoRoute, Route } from "./route";

export interface ViewContext {
  client: Client;
  /** Goes to another route; with `replace` the back button does not return to this one. */
  navigate(route: Exclude<Route, NoRoute>, options?: { replace?: boolean }): void;
  /** Announces a short sentence to screen readers. */
  announce(text: string): void;
  /** The title of the window, of bookmarks and of the history. */
  title(text: string): void;
  /** Another address of what is shown, for the commands that give the same. */
  commands(route: Route): void;
  /** The name of an application, for the links that lead to it. */
  named(application: string, name: string): void;
}

/**
 * A view that fills its container until it is closed. `update` gets another address of the same view and the
 * same application; for any other the shell closes the view and makes a new one.
 */
export interface View<R extends Route = Route> {
  update(route: R): void;
  close(): void;
}

/** Fills the container. Its first element is an h1 that can be focused (`tabindex: -1`), for screen readers. */
export type MakeView<R extends Route> = (container: HTMLElement, context: ViewContext, route: R) => View<R>;
