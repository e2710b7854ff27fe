// What was done: the last windows, the DDLs; and who does it.

import { h } from "./dom.js";
import { clock, count, milliseconds, moment, plural, seconds, tsoMs } from "./format.js";
import { badge } from "./icons.js";
import { named, table } from "./table.js";

const WINDOWS_SHOWN = 8;
const DDL_STATES = {
  intent: ["retrying", "about to run"],
  running: ["retrying", "running"],
  done: ["running", "done"],
  failed: ["failed", "failed"],
  ignored: ["none", "ignored"],
  skip: ["paused", "to be skipped"],
  take: ["running", "to be taken as done"],
  skipped: ["paused", "skipped"],
};

/** The last windows, newest first. */
export function windows(feed, ui, act) {
  const shown = ui.allWindows ? feed.windows : feed.windows.slice(0, WINDOWS_SHOWN);
  const columns = [
    { name: "Window", cell: (one) => count(one.window) },
    { name: "Done at", class: "figure", cell: (one) => clock(one.at * 1000) },
    { name: "Events", class: "figure", cell: (one) => count(one.events) },
    { name: "Rows written", class: "figure spare", cell: (one) => count(one.rows) },
    { name: "Duplicates", class: "figure spare", cell: (one) => count(one.duplicates) },
    { name: "Took", class: "figure", cell: (one) => milliseconds(one.seconds * 1000) },
  ];
  const body = table({ name: "windows", cards: false, caption: "The last windows, newest first", columns, rows: shown, keyOf: (one) => one.window });
  return section("windows", "Last windows", [
    feed.windows.length ? body : h("p", { class: "empty" }, "This process has applied none yet."),
    toggle(feed.windows.length > WINDOWS_SHOWN, ui.allWindows, plural(feed.windows.length, "window"), () => act.set("allWindows", !ui.allWindows)),
  ]);
}

/** DDLs, newest first, each with its statement as it came. */
export function ddls(feed) {
  const items = feed.ddls.map((one) => h("li", { key: `${one.commit_ts} ${one.database} ${one.table} ${one.statement}` }, ddl(one)));
  return section("ddls", "DDL history", [
    items.length ? h("ol", { class: "ddls" }, items) : h("p", { class: "empty" }, "No DDL was met yet."),
  ]);
}

function ddl(one) {
  const place = [one.database, one.table].filter(Boolean).join(".");
  const took = one.duration_ms === null ? null : h("span", { class: "quiet" }, `took ${milliseconds(one.duration_ms)}`);
  const differs = one.executed && one.executed !== one.statement;
  return [
    h(
      "p",
      { class: "ddl-line" },
      badge(...(DDL_STATES[one.state] ?? ["none", one.state])),
      place ? named(place) : null,
      h("span", { class: "quiet" }, `${moment(tsoMs(one.commit_ts))} UTC`),
      took,
    ),
    statement("Statement", one.statement),
    differs ? statement("Executed in the target as", one.executed) : null,
    one.reason ? h("p", { class: "reason" }, named(one.reason)) : null,
  ];
}

function statement(label, text) {
  const name = label === "Statement" ? null : h("p", { class: "quiet small" }, `${label}:`);
  return [name, h("pre", { tabindex: "0", dir: "ltr", role: "group", "aria-label": label }, h("code", null, text))];
}

/** Who leads and who stands by, and what they lean on. */
export function instances(feed) {
  const leader = feed.leader;
  const here = leader && feed.leads ? " (this process)" : "";
  return section("instances", "Instances", [
    h(
      "dl",
      { class: "facts" },
      fact("Leader", leader ? [named(leader.name), here] : "nobody leads", leader ? `last sign of life ${seconds(leader.silent_seconds)} ago` : ""),
      fact("Stand-bys", feed.standBys.length ? feed.standBys.map((one, i) => [i ? ", " : "", named(one.name)]).flat() : "none"),
      fact("Epoch", count(feed.leaderEpoch), "how often the lead has changed hands"),
      fact("Redis", feed.ledger.state),
      fact("Kafka", feed.source.state, feed.source.probed_seconds_ago === null ? "" : `looked at ${seconds(feed.source.probed_seconds_ago)} ago`),
      fact("Target", named(feed.target), feed.targetSeen === null ? "has not answered yet" : `answered ${seconds(feed.targetSeen)} ago`),
      fact("Checkpoint", feed.checkpointMs === null ? "none yet" : `${moment(feed.checkpointMs)} UTC`, `TSO ${feed.checkpointTso}`),
    ),
  ]);
}

function fact(name, value, more = "") {
  return h("div", { key: name }, h("dt", null, name), h("dd", null, h("span", null, value), more ? h("small", null, more) : null));
}

function section(id, title, children) {
  return h("section", { class: `panel ${id}`, key: id, "aria-labelledby": `${id}-title` }, h("h3", { id: `${id}-title` }, title), children);
}

function toggle(needed, all, what, act) {
  if (!needed) return null;
  return h("button", { type: "button", class: "plain", onclick: act }, all ? `Show the last ${WINDOWS_SHOWN}` : `Show all ${what}`);
}
