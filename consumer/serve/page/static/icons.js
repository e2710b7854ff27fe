// A shape for each state, so that nobody needs the colour.

import { h } from "./dom.js";

const SHAPES = {
  running: [["circle", { cx: 8, cy: 8, r: 7 }], ["path", { class: "cut", d: "M4.8 8.3l2.2 2.2 4.3-4.6" }]],
  standby: [["circle", { class: "line", cx: 8, cy: 8, r: 6 }], ["path", { class: "line", d: "M8 4.6V8l2.3 1.6" }]],
  starting: [["circle", { class: "line dashed", cx: 8, cy: 8, r: 6 }], ["circle", { cx: 8, cy: 8, r: 2.2 }]],
  paused: [["rect", { x: 1, y: 1, width: 14, height: 14, rx: 4 }], ["path", { class: "cut", d: "M6.2 5v6M9.8 5v6" }]],
  retrying: [["path", { class: "line", d: "M13.4 8a5.4 5.4 0 1 1-1.7-3.9" }], ["path", { d: "M13.9 1.4v4.4H9.5z" }]],
  stalled: [["path", { d: "M8 .9l7.4 13.4H.6z" }], ["path", { class: "cut", d: "M8 5.8v4" }], ["circle", { class: "dot", cx: 8, cy: 12, r: 0.9 }]],
  failed: [["path", { d: "M5 1h6l4 4v6l-4 4H5l-4-4V5z" }], ["path", { class: "cut", d: "M5.4 5.4l5.2 5.2M10.6 5.4l-5.2 5.2" }]],
  none: [["circle", { class: "line", cx: 8, cy: 8, r: 6 }]],
};
SHAPES.look = SHAPES.stalled;

/** The icon of a state; words stand beside it, so it is hidden from screen readers. */
export function icon(name) {
  const shapes = SHAPES[name].map(([tag, attributes]) => h(tag, attributes));
  return h("svg", { class: `icon ${name}`, key: `icon-${name}`, viewBox: "0 0 16 16", "aria-hidden": "true", focusable: "false" }, shapes);
}

/** Icon and word of a state. */
export function badge(name, word) {
  return h("span", { class: `badge ${name}` }, icon(name), h("span", null, word));
}
