// What was done: the last windows, the DDLs; and who does it.

import { h } from "./dom.js";
import { ago, count, milliseconds, moment, plural, seconds, tsoMs } from "./format.js";
import { badge } from "./icons.js";
import { at, named, table } from "./table.js";

const WINDOWS_SHOWN = 8;
const DDLS_SHOWN = 5;
const PROOFS_SHOWN = 20;
/** A verdict of a proof: the state whose colour it has, and a word. */
export const VERDICTS = {
  equal: ["running", "equal"],
  different: ["failed", "differs"],
  base: ["none", "base taken"],
  unproven: ["look", "unproven"],
};
const VERDICTS_FIRST = ["different", "unproven", "base", "equal"];
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
    { name: "Done at", class: "figure", cell: (one) => at(one.at * 1000) },
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

/** What the last proof of each table has found, what needs a look first; nothing where nothing was ever proven. */
export function proofs(feed, ui, act) {
  if (feed.proof.length === 0) return null;
  const rank = (one) => VERDICTS_FIRST.indexOf(one.verdict);
  const all = [...feed.proof].sort((a, b) => rank(a) - rank(b));
  const shown = ui.allProofs ? all : all.slice(0, PROOFS_SHOWN);
  const columns = [
    { name: "Table", cell: (one) => named(one.table) },
    { name: "Verdict", cell: (one) => badge(...(VERDICTS[one.verdict] ?? ["none", one.verdict])) },
    { name: "At", class: "figure", cell: (one) => `${moment(tsoMs(one.checkpoint_ts))} UTC` },
    { name: "Rows", class: "figure spare", cell: (one) => count(one.rows) },
    { name: "Not proven", cell: (one) => named(unproven(one)) },
  ];
  const equal = feed.proof.filter((one) => one.verdict === "equal").length;
  const caption = "What the last proof of each table has found";
  return section("proofs", "Proof", [
    h("p", { class: "quiet" }, `${count(equal)} of ${plural(feed.proof.length, "table")} proven equal to what the events say.`),
    table({ name: "proofs", caption, columns, rows: shown, keyOf: (one) => one.table }),
    toggle(all.length > PROOFS_SHOWN, ui.allProofs, plural(all.length, "table"), () => act.set("allProofs", !ui.allProofs), PROOFS_SHOWN),
  ]);
}

function unproven(one) {
  const columns = one.columns_left_out.length ? `columns ${one.columns_left_out.join(", ")}` : "";
  return [one.reason, columns].filter(Boolean).join("; ") || "-";
}

/** DDLs, newest first, each with its statement as it came. */
export function ddls(feed, ui, act) {
  const open = feed.waiting.filter((one) => one.state === "failed");
  const shown = ui.allDdls ? feed.ddls : [...open, ...feed.ddls.filter((one) => !open.includes(one))].slice(0, Math.max(DDLS_SHOWN, open.length));
  const items = shown.map((one) => h("li", { key: `${one.commit_ts} ${one.database} ${one.table} ${one.statement}` }, ddl(one, feed, ui, act)));
  return section("ddls", "DDL history", [
    items.length ? h("ol", { class: "ddls" }, items) : h("p", { class: "empty" }, "No DDL was met yet."),
    toggle(feed.ddls.length > shown.length || ui.allDdls, ui.allDdls, plural(feed.ddls.length, "DDL"), () => act.set("allDdls", !ui.allDdls), DDLS_SHOWN),
  ]);
}

function ddl(one, feed, ui, act) {
  return [ddlEntry(one), one.state === "failed" && feed.waiting.includes(one) ? decisions(one, feed, ui, act) : null];
}

/** A DDL: what became of it, its statement, what was executed. */
export function ddlEntry(one) {
  const place = [one.database, one.table].filter(Boolean).join(".");
  const took = one.duration_ms === null ? null : h("span", { class: "quiet" }, `took ${milliseconds(one.duration_ms)}`);
  const differs = one.executed && one.executed !== one.statement;
  return [
    h(
      "p",
      { class: "ddl-line" },
      badge(...(DDL_STATES[one.state] ?? ["none", one.state])),
      place ? named(place) : null,
      h("span", { class: "quiet" }, at(tsoMs(one.commit_ts)), ` · ${ago(tsoMs(one.commit_ts))}`),
      took,
    ),
    statement("Statement", one.statement),
    differs ? statement("Executed in the target as", one.executed) : null,
    one.reason ? h("p", { class: "reason" }, named(one.reason)) : null,
  ];
}

/** What an operator may say of a DDL that stops the changefeed; `Resume` then goes on. */
function decisions(one, feed, ui, act) {
  const button = (verb, word) =>
    h("button", { type: "button", class: "plain", disabled: !ui.live, onclick: () => act.decide(verb, feed, one) }, `${word}…`);
  return h("p", { class: "row" }, button("skip", "Leave out"), button("done", "Done by hand"));
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
      fact("Epoch", count(feed.leaderEpoch), "how often an instance has begun to lead"),
      fact("Redis", standing(feed.ledger.state), feed.ledger.state === "absent by configuration" ? "" : asked(feed)),
      fact("Kafka", standing(feed.source.state), asked(feed)),
      fact("Target", named(feed.target), feed.targetSeen === null ? "has not answered yet" : `answered ${seconds(feed.targetSeen)} ago`),
      fact("Checkpoint", feed.checkpointMs === null ? "none yet" : `${moment(feed.checkpointMs)} UTC, ${ago(feed.checkpointMs)}`, `TSO ${feed.checkpointTso}`),
    ),
  ]);
}

/** Nothing is invented where nobody has asked: see the API's `unknown`. */
function standing(state) {
  return state === "unknown" ? "not asked yet" : state;
}

function asked(feed) {
  if (feed.probedAgo === null) return "";
  const when = `as of ${seconds(feed.probedAgo)} ago`;
  return feed.isOld && !feed.leads ? `${when}; not asked while it does not run` : when;
}

/** A name and what is said of it. */
export function fact(name, value, more = "") {
  return h("div", { key: name }, h("dt", null, name), h("dd", null, h("span", null, value), more ? h("small", null, more) : null));
}

/** A panel with a heading. */
export function section(id, title, children) {
  return h("section", { class: `panel ${id}`, key: id, "aria-labelledby": `${id}-title` }, h("h3", { id: `${id}-title` }, title), children);
}

function toggle(needed, all, what, act, few = WINDOWS_SHOWN) {
  if (!needed) return null;
  return h("button", { type: "button", class: "plain", onclick: act }, all ? `Show only ${few}` : `Show all ${what}`);
}
