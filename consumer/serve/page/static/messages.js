// The messages of a topic: the newest, or those from a moment on, by table and key; one of them with its content.

import { Refusal } from "./connection.js";
import { content } from "./content.js";
import { h } from "./dom.js";
import { count, moment, tsoMs, visible } from "./format.js";
import { openSheet, redraw, shows } from "./sheet.js";
import { at, named, table } from "./table.js";

const LIMIT = 50;
const FOLLOW_MS = 2000;
const KINDS = { INSERT: "insert", UPDATE: "update", DELETE: "delete", WATERMARK: "watermark", "?": "unreadable" };
let state = null;

/** Open it for a topic. `act`: `ask`. */
export function browseMessages(id, topic, act) {
  state = { id, topic, table: "", key: "", since: "", watermarks: false, follow: false, told: null, one: null, busy: "", fault: "", draw: () => view(act) };
  openSheet(`Messages of \u2068${topic}\u2069`, state.draw);
  look(act);
}

/** The TSO of what was typed: a TSO, or a time in UTC; empty for nothing, null for what is neither. */
export function tsoOf(text) {
  const typed = text.trim();
  if (typed === "" || /^\d{15,19}$/.test(typed)) return typed;
  const time = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d)?))?Z?$/.exec(typed);
  const ms = time ? Date.parse(`${time[1]}T${time[2] ?? "00:00"}Z`) : NaN;
  return Number.isNaN(ms) ? null : String(BigInt(ms) << 18n);
}

function pathOf() {
  return `/api/v2/changefeeds/${encodeURIComponent(state.id)}/topics/${encodeURIComponent(state.topic)}/messages`;
}

async function look(act) {
  const mine = state;
  const since = tsoOf(mine.since);
  if (since === null) {
    mine.fault = "From has to be a time in UTC, such as 2026-11-25 07:30:00, or a TSO.";
    redraw();
    return;
  }
  const query = new URLSearchParams({ limit: LIMIT, watermarks: mine.watermarks });
  for (const [name, value] of Object.entries({ table: mine.table.trim(), key: mine.key, since })) if (value) query.set(name, value);
  await during(mine, "Reading Kafka …", async () => {
    mine.told = await act.ask(`${pathOf()}?${query}`);
  });
  if (mine.follow && mine === state && shows(mine.draw)) setTimeout(() => again(mine, act), FOLLOW_MS);
}

function again(mine, act) {
  if (mine === state && shows(mine.draw) && mine.follow && !mine.busy && !mine.one) look(act);
}

async function during(mine, words, work) {
  Object.assign(mine, { busy: words, fault: "" });
  redraw();
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    Object.assign(mine, { fault: `${error.message}. ${error.hint}`, follow: false });
  } finally {
    mine.busy = "";
    if (mine === state && shows(mine.draw)) redraw();
  }
}

function view(act) {
  return state.one ? single(act) : [asked(act), state.fault ? h("p", { class: "fault", key: "fault", role: "alert" }, visible(state.fault)) : null, listed(act)];
}

function asked(act) {
  const set = (name, value) => {
    state[name] = value;
    redraw();
  };
  const field = (name, label, placeholder) =>
    h(
      "div",
      { class: "field", key: name },
      h("label", { for: `look-${name}` }, label),
      h("input", { id: `look-${name}`, type: "text", autocomplete: "off", spellcheck: "false", maxlength: "500", placeholder, value: state[name], oninput: (event) => set(name, event.target.value) }),
    );
  const tick = (name, label, then) => h("label", { class: "tick", key: name }, h("input", { type: "checkbox", checked: state[name], onchange: (event) => (set(name, event.target.checked), then()) }), label);
  const submit = (event) => {
    event.preventDefault();
    look(act);
  };
  return h(
    "form",
    { class: "form", key: "asked", onsubmit: submit },
    h("div", { class: "look-fields" }, field("table", "Table", "shop.orders or shop.*"), field("key", "Key", "a value of the row's key"), field("since", "From (UTC time or TSO)", "empty: the newest")),
    h(
      "div",
      { class: "row wrap" },
      tick("watermarks", "Watermarks too", () => look(act)),
      tick("follow", "Follow", () => look(act)),
      h("span", { class: "quiet grow small", role: "status" }, state.busy && !state.told ? state.busy : ""),
      h("button", { type: "submit", class: "primary", disabled: state.busy !== "" && !state.follow }, "Look"),
    ),
  );
}

function listed(act) {
  const { told } = state;
  if (told === null) return null;
  const rows = tsoOf(state.since) ? told.items : [...told.items].reverse();
  const columns = [
    { name: "Message", cell: (one) => h("button", { type: "button", class: "link", onclick: () => open(one, act), "aria-label": `Message ${placeOf(one)}` }, named(`${one.partition}/${one.offset}`)) },
    { name: "Committed", class: "figure", cell: (one) => at(tsoMs(one.commit_ts)) },
    { name: "Kind", cell: (one) => h("span", { class: `kind ${KINDS[one.type] ?? "other"}` }, wordOf(one)) },
    { name: "Table", cell: (one) => named(visible([one.database, one.table].filter(Boolean).join(".")) || "–") },
    { name: "Content", class: "wide", cell: (one) => h("span", { class: "clip" }, named(visible(one.error ?? one.content))) },
  ];
  return [
    h("p", { class: "quiet small", key: "said", role: "status" }, said(told)),
    rows.length ? table({ name: "looked", caption: "Messages, by commit time", columns, rows, keyOf: placeOf }) : null,
  ];
}

function said(told) {
  const first = tsoOf(state.since) ? "the first from there on" : "newest first";
  const found = told.items.length ? `${count(told.items.length)} shown, ${first}` : "No message matches";
  const rest = told.is_whole ? "." : told.items.length < LIMIT ? `. Only ${count(told.read)} messages were read, the topic holds more: narrow it down with From.` : "; there are more.";
  return found + rest;
}

/** The kind of an event; whatever else a message says there is shown, but not in full. */
function wordOf(one) {
  return one.type === "?" ? "unreadable" : visible(one.type.toLowerCase().slice(0, 40));
}

function placeOf(one) {
  return `${one.topic}/${one.partition}/${one.offset}${one.part ? `/${one.part}` : ""}`;
}

async function open(one, act) {
  const mine = state;
  Object.assign(mine, { one, content: null });
  await during(mine, "Reading Kafka …", async () => {
    mine.content = await act.ask(`${pathOf()}/${one.partition}/${one.offset}`);
  });
}

function single(act) {
  const { one } = state;
  const back = () => {
    Object.assign(state, { one: null, fault: "" });
    redraw();
    again(state, act);
  };
  const commit = one.commit_ts === null ? "unknown" : `${moment(tsoMs(one.commit_ts))} UTC, TSO ${one.commit_ts}`;
  const facts = [
    ["Position", named(`${one.topic}/${one.partition}/${one.offset}`)],
    ["Kind", named(wordOf(one))],
    ["Table", named(visible([one.database, one.table].filter(Boolean).join(".")) || "–")],
    ["Committed", commit],
    ["In Kafka since", one.timestamp === null ? "unknown" : `${moment(one.timestamp)} UTC`],
  ];
  return [
    h("div", { class: "row", key: "back" }, h("button", { type: "button", class: "plain", onclick: back }, "Back to the list")),
    h("dl", { class: "facts", key: "facts" }, facts.map(([name, value]) => h("div", { key: name }, h("dt", null, name), h("dd", null, value)))),
    state.fault ? h("p", { class: "fault", key: "fault", role: "alert" }, visible(state.fault)) : null,
    state.content ? content(state.content) : state.fault ? null : h("p", { class: "empty", key: "wait", role: "status" }, "Reading Kafka …"),
  ];
}
