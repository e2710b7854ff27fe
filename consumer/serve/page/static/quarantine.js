// Quarantined messages: the list, one of them with its content, and what may be done about them.

import { Refusal } from "./connection.js";
import { content } from "./content.js";
import { h } from "./dom.js";
import { count, moment, plural, tsoMs, visible } from "./format.js";
import { badge } from "./icons.js";
import { asideBadge } from "./questions.js";
import { openSheet, redraw } from "./sheet.js";
import { named, table } from "./table.js";
import { section } from "./records.js";

const SHOWN = 20;
const UNDECIDED = new Set(["held", "superseded"]);

/** The section. `aside`: `{items, failure}` of the API, or null while nothing was asked. */
export function quarantine(feed, aside, ui, act) {
  const known = Object.entries(feed.quarantine).filter(([, number]) => number > 0);
  if (known.length === 0) return section("quarantine", "Quarantine", [h("p", { class: "empty" }, "No message was quarantined.")]);
  const told = known.map(([state, number]) => `${count(number)} ${asideBadge(state)[1]}`).join(", ");
  return section("quarantine", "Quarantine", [
    h("p", { class: "lead" }, told, "."),
    aside?.failure ? failure(aside.failure, act) : null,
    aside?.items ? messages(feed, aside.items, ui, act) : null,
  ]);
}

function failure(refusal, act) {
  return h(
    "div",
    { class: "row wrap" },
    h("p", { class: "fault" }, `The list can't be read: ${refusal.message}. ${refusal.hint}`),
    h("button", { type: "button", class: "plain", onclick: act.reloadAside }, "Try again"),
  );
}

function messages(feed, items, ui, act) {
  const open = items.filter((one) => UNDECIDED.has(one.state));
  const wanted = ui.decided ? items : open;
  const shown = ui.allAside ? wanted : wanted.slice(0, SHOWN);
  const isHeld = open.some((one) => one.state === "held");
  const button = (word, disabled, onclick, level = "plain") => h("button", { key: word, type: "button", class: level, disabled, onclick }, word);
  return [
    h(
      "div",
      { class: "row wrap bar", key: "bar" },
      button("Replay all…", !ui.live || !isHeld, () => act.replay(feed.id, [])),
      button("Discard all…", !ui.live || open.length === 0, () => act.discard(feed.id, [])),
      items.length > open.length ? h("label", { class: "tick" }, h("input", { type: "checkbox", checked: ui.decided, onchange: (event) => act.set("decided", event.target.checked) }), "Show decided ones too") : null,
    ),
    shown.length ? list(feed, shown, act) : h("p", { class: "empty", key: "none" }, "No message waits for a decision."),
    wanted.length > SHOWN
      ? h("button", { type: "button", class: "plain", key: "more", onclick: () => act.set("allAside", !ui.allAside) }, ui.allAside ? `Show the first ${SHOWN}` : `Show all ${plural(wanted.length, "message")}`)
      : null,
  ];
}

function list(feed, shown, act) {
  const columns = [
    { name: "Message", cell: (one) => h("button", { type: "button", class: "link", onclick: () => showMessage(feed.id, one, act) }, named(one.message)) },
    { name: "State", cell: (one) => badge(...asideBadge(one.state)) },
    { name: "Row", cell: (one) => (one.about ? named(visible(one.about)) : h("span", { class: "quiet" }, "unknown")) },
    { name: "Why", cell: (one) => h("span", { class: "clip" }, named(visible(one.reason))) },
    { name: "Committed", class: "figure wide", cell: (one) => moment(tsoMs(one.commit_ts)).slice(5) },
  ];
  return table({ name: "messages", caption: "Quarantined messages by position", columns, rows: shown, keyOf: (one) => one.message });
}

/** One message in a dialog: asked for when it is opened. */
async function showMessage(id, one, act) {
  const state = { told: null, failure: "" };
  openSheet("Quarantined message", () => view(id, one, state, act));
  try {
    const [topic, partition, offset] = one.message.split("/");
    state.told = await act.ask(`/api/v2/changefeeds/${encodeURIComponent(id)}/quarantine/${encodeURIComponent(topic)}/${partition}/${offset}`);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    state.failure = `${error.message}. ${error.hint}`;
  }
  redraw();
}

function view(id, one, { told, failure: fault }, act) {
  const isOpen = UNDECIDED.has(one.state);
  return [
    h("dl", { class: "facts", key: "facts" }, facts(one)),
    fault ? h("p", { class: "fault", key: "fault", role: "alert" }, fault) : null,
    told ? content(told) : fault ? null : h("p", { class: "empty", key: "wait", role: "status" }, "Asking the target …"),
    isOpen
      ? h(
          "div",
          { class: "row end wrap", key: "act" },
          h("button", { type: "button", class: "plain", onclick: () => act.discard(id, [one.message]) }, "Discard…"),
          one.state === "held" ? h("button", { type: "button", class: "primary", onclick: () => act.replay(id, [one.message]) }, "Replay…") : null,
        )
      : null,
  ];
}

function facts(one) {
  const commit = one.commit_ts === null ? "unknown" : `${moment(tsoMs(one.commit_ts))} UTC, TSO ${one.commit_ts}`;
  const found = [
    ["Position", named(one.message)],
    ["State", badge(...asideBadge(one.state))],
    ["Row", one.about ? named(visible(one.about)) : "unknown"],
    ["Why", named(visible(one.reason))],
    ["Committed", commit],
    ["In Kafka since", one.timestamp === null ? "unknown" : `${moment(one.timestamp)} UTC`],
    ["Decided", one.note ? named(visible(one.note)) : ""],
  ];
  return found.filter(([, value]) => value).map(([name, value]) => h("div", { key: name }, h("dt", null, name), h("dd", null, value)));
}
