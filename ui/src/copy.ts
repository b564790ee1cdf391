// Commands that a reader may copy, each with a button.

import { type Child, h } from "./dom";
import { type Command, curlOf } from "./commands";

/** `announce` says to screen readers what became of it. */
export function copyLine(name: string, text: string, announce: (text: string) => void): HTMLElement {
  const button = h("button", { type: "button", "aria-label": `Copy ${name}`, click: () => void copy() }, "Copy");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
      button.setAttribute("aria-label", `Copied ${name}`);
      announce("Copied");
    } catch {
      announce("This browser does not let the page copy: select the text");
    }
  };
  return h("div", { class: "command" }, button, " ", h("code", {}, text));
}

/** Each command for a terminal and for curl. */
export function copyLines(commands: readonly Command[], announce: (text: string) => void): Child {
  const base = new URL(".", location.href.split("#")[0]).href;
  return commands.map(({ path, ...command }) => {
    const of = command.name === "" ? "" : ` of ${command.name}`;
    return [
      command.name !== "" && h("h2", {}, command.name),
      copyLine(`the command line${of}`, command.terminal, announce),
      path !== null && copyLine(`the line for curl${of}`, curlOf(base, { ...command, path }), announce),
    ];
  });
}

/** Lines for a terminal, each below what it does. */
export const captionedLines = (
  lines: readonly (readonly [caption: string, line: string])[],
  announce: (text: string) => void,
): Child =>
  lines.map(([caption, line]) =>
    h("div", { class: "captioned" }, h("p", { class: "small soft" }, caption), copyLine(line, line, announce)),
  );
