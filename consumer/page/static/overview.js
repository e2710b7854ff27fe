// The first ten seconds: one sentence, and a line for each changefeed.

import { h } from "./dom.js";
import { clock, seconds } from "./format.js";
import { badge, icon } from "./icons.js";
import { STATES, verdictOf } from "./model.js";
import { named, table } from "./table.js";

/** The sentence about all of them. */
export function verdict(list) {
  const { level, id, text } = verdictOf(list);
  return h(
    "section",
    { class: `verdict ${level}`, key: "verdict", "aria-label": "Verdict" },
    icon(level),
    h("p", { role: "status" }, id ? named(id) : null, text),
  );
}

/** All changefeeds, those that need somebody first. */
export function changefeeds(list, chosen) {
  const columns = [
    { name: "Changefeed", cell: (one) => link(one, chosen) },
    { name: "State", cell: (one) => badge(one.state, STATES[one.state].word) },
    { name: "Behind now", class: "figure", cell: (one) => lag(one.behindNow, one.looksLate) },
    { name: "Behind watermark", class: "figure", cell: (one) => seconds(one.behindWatermark) },
    { name: "Applied up to", class: "figure", cell: (one) => clock(one.checkpointMs) },
    { name: "Target", class: "wide", cell: (one) => named(one.target || "–") },
  ];
  return h(
    "section",
    { class: "panel", key: "list", "aria-labelledby": "list-title" },
    h("h2", { id: "list-title" }, "Changefeeds"),
    table({
      name: "changefeeds",
      caption: "Changefeeds with state and lag",
      columns,
      rows: list,
      keyOf: (one) => one.id,
      classOf: (one) => `state-${one.state}${one.id === chosen ? " chosen" : ""}`,
    }),
  );
}

function link(one, chosen) {
  return h("a", { href: `#/${encodeURIComponent(one.id)}`, "aria-current": one.id === chosen ? "true" : null }, named(one.id));
}

function lag(value, looksLate) {
  return looksLate ? h("span", { class: "warn" }, icon("look"), seconds(value)) : seconds(value);
}
