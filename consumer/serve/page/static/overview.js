// The first ten seconds: one sentence, and a line for each changefeed.

import { h } from "./dom.js";
import { plural, seconds } from "./format.js";
import { badge, icon } from "./icons.js";
import { STATES, verdictOf } from "./model.js";
import { at, named, table } from "./table.js";

const SHOWN = 8;

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

/** Changefeeds, those that need somebody first; of many, only the first ones and the chosen one until all are asked for. */
export function changefeeds(list, chosen, ui, act) {
  const shown = ui.wholeList ? list : list.filter((one, i) => i < SHOWN || one.id === chosen);
  const columns = [
    { name: "Changefeed", cell: (one) => link(one, chosen) },
    { name: "State", cell: (one) => badge(one.state, STATES[one.state].word) },
    { name: "Behind now", class: "figure", cell: (one) => lag(one.behindNow, one.looksLate) },
    { name: "Behind watermark", class: "figure", cell: (one) => seconds(one.behindWatermark) },
    { name: "Applied up to", class: "figure", cell: (one) => at(one.checkpointMs) },
    { name: "Target", class: "wide", cell: (one) => named(one.target || "–") },
  ];
  return h(
    "section",
    { class: "panel", key: "list", "aria-labelledby": "list-title" },
    h("header", { class: "row bar" }, h("h2", { id: "list-title", class: "grow" }, "Changefeeds"), newButton(ui.live, act)),
    table({
      name: "changefeeds",
      caption: "Changefeeds with state and lag",
      columns,
      rows: shown,
      keyOf: (one) => one.id,
      classOf: (one) => `state-${one.state}${one.id === chosen ? " chosen" : ""}`,
    }),
    list.length > SHOWN ? h("button", { type: "button", class: "plain", onclick: () => act.set("wholeList", !ui.wholeList) }, ui.wholeList ? `Show only ${SHOWN}` : `Show all ${plural(list.length, "changefeed")}`) : null,
  );
}

/** Opens the form for another one. */
export function newButton(isLive, act) {
  return h("button", { type: "button", id: "new-changefeed", class: "plain", disabled: !isLive, onclick: act.create }, "New changefeed…");
}

function link(one, chosen) {
  return h("a", { href: `#/${encodeURIComponent(one.id)}`, "aria-current": one.id === chosen ? "true" : null }, named(one.id));
}

function lag(value, looksLate) {
  return looksLate ? h("span", { class: "warn" }, icon("look"), seconds(value)) : seconds(value);
}
