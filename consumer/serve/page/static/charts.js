// The live charts: events/s above, seconds behind below, over one time axis. Read by pointer, touch, keys, or as a table.

import { h } from "./dom.js";
import { clock, moment, rate, seconds, short, when } from "./format.js";
import { area, linear, moments, path, ticks, timeTicks } from "./scale.js";
import { RANGES, pointsOf } from "./series.js";

const LEFT = 58;
const RIGHT = 10;
const TOP = 8;
const HEIGHT = 128;
const BOTTOM = 22;
const ROWS_MOST = 60;

const EVENTS = [{ name: "events/s", kind: "events", filled: true, value: (p) => p.rate, say: (v) => `${rate(v)} events/s` }];
const LAGS = [
  { name: "behind now", kind: "now", filled: true, value: (p) => p.behindNow, say: (v) => `${seconds(v)} behind now` },
  { name: "behind watermark", kind: "watermark", value: (p) => p.behindWatermark, say: (v) => `${seconds(v)} behind the watermark` },
];

/** The section. `ui`: range, width, cursor (a time) or null. */
export function charts({ samples, interval }, end, ui, act) {
  const range = RANGES[ui.range];
  const points = pointsOf(samples, interval, range, end);
  const known = points.filter((one) => one.rate !== null || one.behindNow !== null);
  const chosen = ui.cursor === null ? null : nearest(points, ui.cursor);
  return h(
    "section",
    { class: "panel charts", key: "charts", "aria-labelledby": "charts-title" },
    h("h3", { id: "charts-title" }, "Throughput and lag"),
    ranges(ui, act),
    h("p", { class: "reading", "aria-hidden": "true" }, reading(chosen)),
    h("div", slider(points, known, chosen, act), panels(points, chosen, range, ui, act)),
    asTable(known),
  );
}

function ranges(ui, act) {
  const buttons = RANGES.map((one, i) =>
    h("button", { key: one.name, type: "button", "aria-pressed": String(i === ui.range), onclick: () => act.set("range", i) }, one.name),
  );
  const zoom = (by, sign, word) =>
    h("button", { key: word, type: "button", "aria-label": word, disabled: !RANGES[ui.range + by], onclick: () => act.set("range", ui.range + by) }, sign);
  return h("div", { class: "ranges", role: "group", "aria-label": "Time shown" }, zoom(-1, "+", "Zoom in"), buttons, zoom(1, "\u2212", "Zoom out"));
}

function nearest(points, time) {
  return points.reduce((best, one) => (Math.abs(one.time - time) < Math.abs(best.time - time) ? one : best));
}

function said(point) {
  return [...EVENTS, ...LAGS].map((one) => one.say(one.value(point))).join(", ");
}

function reading(point) {
  if (!point) return "Touch or point at the charts, or use the arrow keys, to read them.";
  return [h("b", { key: "at" }, `${when(point.time * 1000)} `), said(point)];
}

function slider(points, known, chosen, act) {
  const at = chosen ?? known[known.length - 1] ?? points[points.length - 1];
  const index = points.indexOf(at);
  const value = `${when(at.time * 1000)} UTC: ${said(at)}`;
  const valueNow = { "aria-valuemin": 0, "aria-valuemax": points.length - 1, "aria-valuenow": index, "aria-valuetext": value };
  const zooms = { "+": -1, "=": -1, "-": 1 };
  const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -points.length, End: points.length };
  const onkeydown = (event) => {
    if (event.key === "Escape") return act.set("cursor", null);
    if (event.key in zooms) return zoomed(zooms[event.key], act);
    if (!(event.key in steps)) return undefined;
    event.preventDefault();
    const moved = (from) => Math.min(points.length - 1, Math.max(0, from + steps[event.key]));
    return act.set("cursor", (time) => points[moved(points.indexOf(nearest(points, time ?? at.time)))].time);
  };
  return { class: "plots", id: "plots", tabindex: "0", role: "slider", "aria-label": "Reading of the charts", ...valueNow, onkeydown };
}

function zoomed(by, act) {
  act.set("range", (range) => Math.min(RANGES.length - 1, Math.max(0, range + by)));
}

function panels(points, chosen, range, ui, act) {
  const lags = points.flatMap((one) => [one.behindNow ?? 0, one.behindWatermark ?? 0]);
  const rates = points.map((one) => one.rate ?? 0);
  const common = { points, chosen, range, width: ui.width, act };
  return [
    plot({ ...common, key: "events", title: "Events per second", series: EVENTS, steps: ticks(Math.max(...rates, 1)), unit: short }),
    plot({ ...common, key: "lags", title: "Seconds behind", series: LAGS, steps: timeTicks(Math.max(...lags, 1)), unit: (v) => (v ? seconds(v) : "0") }),
  ];
}

function plot({ key, title, series, points, chosen, range, width, steps, unit, act }) {
  const from = points[0].time - range.step;
  const to = points[points.length - 1].time;
  const x = linear([from, to], [LEFT, width - RIGHT]);
  const y = linear([0, steps[steps.length - 1]], [TOP + HEIGHT, TOP]);
  const at = (event) => from + ((event.clientX - event.currentTarget.getBoundingClientRect().left - LEFT) / (width - LEFT - RIGHT)) * (to - from);
  const handlers = { onpointermove: (event) => act.set("cursor", at(event)), onpointerdown: (event) => act.set("cursor", at(event)), onpointerleave: () => act.set("cursor", null) };
  return h(
    "figure",
    { key, class: "plot", "data-chart": key },
    h("figcaption", null, h("span", null, title), series.length > 1 ? legend(series) : null),
    h(
      "svg",
      { width, height: TOP + HEIGHT + BOTTOM, viewBox: `0 0 ${width} ${TOP + HEIGHT + BOTTOM}`, "aria-hidden": "true", ...handlers },
      grid(steps, y, unit, width),
      times(from, to, x, width),
      series.map((one) => drawn(one, points, x, y)),
      chosen ? cursor(chosen, series, x, y) : null,
    ),
  );
}

function legend(series) {
  return h("span", { class: "legend" }, series.map((one) => h("span", { key: one.name }, swatch(one.kind), one.name)));
}

function swatch(kind) {
  return h("svg", { class: "swatch", width: 22, height: 8, "aria-hidden": "true" }, h("path", { class: `line ${kind}`, d: "M1 4H21" }));
}

function grid(steps, y, unit, width) {
  return steps.map((step) =>
    h(
      "g",
      { key: `y${step}`, class: "grid" },
      h("line", { x1: LEFT, x2: width - RIGHT, y1: y(step), y2: y(step) }),
      h("text", { x: LEFT - 8, y: y(step) + 4, "text-anchor": "end" }, unit(step)),
    ),
  );
}

function times(from, to, x, width) {
  return moments(from, to, Math.max(2, Math.floor(width / 80))).map((at) =>
    h(
      "g",
      { key: `x${at}`, class: "grid" },
      h("line", { x1: x(at), x2: x(at), y1: TOP + HEIGHT, y2: TOP + HEIGHT + 4 }),
      h("text", { x: x(at), y: TOP + HEIGHT + 17, "text-anchor": edge(x(at), width) }, label(at)),
    ),
  );
}

/** A moment on the axis: midnight as its date. */
function label(at) {
  if (at % 86_400 === 0) return moment(at * 1000).slice(5, 10);
  return clock(at * 1000).slice(0, 5 + 3 * Number(at % 60 !== 0));
}

function edge(x, width) {
  if (x > width - 34) return "end";
  return x < LEFT + 10 ? "start" : "middle";
}

function drawn(one, points, x, y) {
  return h(
    "g",
    { key: one.kind },
    one.filled ? h("path", { class: `area ${one.kind}`, d: area(points, x, y, one.value) }) : null,
    h("path", { class: `line ${one.kind}`, d: path(points, x, y, one.value) }),
  );
}

function cursor(point, series, x, y) {
  const dots = series.map((one) => one.value(point) !== null && h("circle", { key: one.kind, class: `mark ${one.kind}`, cx: x(point.time), cy: y(one.value(point)), r: 3.5 }));
  return h("g", { key: "cursor" }, h("line", { class: "cursor", x1: x(point.time), x2: x(point.time), y1: TOP, y2: TOP + HEIGHT }), dots);
}

function asTable(known) {
  const rows = known.slice(-ROWS_MOST).reverse();
  const row = (one) =>
    h(
      "tr",
      { key: one.time },
      h("th", { scope: "row" }, when(one.time * 1000)),
      h("td", null, rate(one.rate)),
      h("td", null, seconds(one.behindNow)),
      h("td", null, seconds(one.behindWatermark)),
    );
  const heads = ["Until (UTC)", "Events/s", "Behind now", "Behind watermark"].map((name) => h("th", { key: name, scope: "col" }, name));
  return h(
    "details",
    { class: "as-table" },
    h("summary", null, "The same as a table"),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Throughput and lag as a table" },
      h("table", { class: "figures" }, h("thead", null, h("tr", null, heads)), h("tbody", null, rows.map(row)))),
  );
}
