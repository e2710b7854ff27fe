// A changefeed's config: shown with its secrets hidden, edited as text, the difference seen before it is saved.

import { Refusal } from "./connection.js";
import { refusal } from "./create.js";
import { h } from "./dom.js";
import { plural } from "./format.js";
import { closeSheet, openSheet, redraw } from "./sheet.js";
import { named } from "./table.js";

let state = null;

/** Open it. `act`: `ask`, `saved()`. */
export async function editSettings(id, act) {
  state = { id, text: null, edited: "", found: null, busy: "Reading the config …", fault: null };
  openSheet(`Settings of \u2068${id}\u2069`, () => view(act));
  await during("Reading the config …", async () => {
    const { text, file } = await act.ask(`${pathOf(id)}/config`);
    Object.assign(state, { text, file, edited: text ?? "" });
  });
}

function pathOf(id) {
  return `/api/v2/changefeeds/${encodeURIComponent(id)}`;
}

function view(act) {
  const { text, found, busy, fault } = state;
  return h(
    "form",
    { class: "form", key: "settings", onsubmit: (event) => preview(event, act) },
    text === null && !busy && !fault ? h("p", { key: "long" }, "This config is too long to be edited here: change its file, then resume the changefeed.") : null,
    text === null ? null : editor(),
    fault ? refusal(fault) : null,
    found ? difference(found) : null,
    h(
      "div",
      { class: "row end wrap", key: "act" },
      busy ? h("p", { class: "quiet grow", role: "status" }, busy) : null,
      h("button", { type: "submit", class: found ? "plain" : "primary", disabled: busy !== "" || text === null }, "Show what changes"),
      h("button", { type: "button", id: "settings-save", class: found?.keys.length ? "primary" : "plain", disabled: busy !== "" || !found?.keys.length, onclick: () => save(act) }, found?.restarts ? "Save and restart" : "Save"),
    ),
  );
}

function editor() {
  const oninput = (event) => {
    Object.assign(state, { edited: event.target.value, found: null, fault: null });
    redraw();
  };
  return h(
    "div",
    { class: "field wide", key: "text" },
    h("label", { for: "settings-text" }, "The config, as TOML"),
    h("textarea", { id: "settings-text", rows: "18", spellcheck: "false", value: state.edited, disabled: state.busy !== "", oninput, "aria-describedby": "settings-hint" }),
    h("small", { id: "settings-hint" }, "*** stands for a secret: left as it is, it stays. Comments in the file stay too. The target's place and the changefeed's id can't change; topics only as long as nothing has been applied."),
  );
}

/** Each key before and after. */
function difference({ keys, restarts }) {
  const what = keys.length === 0 ? "Nothing changes" : `${plural(keys.length, "key")} ${keys.length === 1 ? "changes" : "change"}${restarts ? "; the changefeed is restarted" : ""}`;
  const line = (sign, word, value) => (value === null ? null : h("span", { class: sign === "+" ? "added" : "removed" }, h("span", { "aria-hidden": "true" }, `${sign} `), h("span", { class: "unseen" }, `${word}: `), value));
  return h(
    "section",
    { class: "findings", key: "difference", "aria-label": "What changes" },
    h("div", { role: "status" }, h("h3", null, what)),
    h("dl", { class: "difference" }, keys.map((one) => h("div", { key: one.key }, h("dt", null, named(one.key)), h("dd", null, line("−", "before", one.before), line("+", "after", one.after ?? "(taken out: the default counts)"))))),
  );
}

async function preview(event, act) {
  event.preventDefault();
  await during("Comparing …", async () => {
    state.found = await act.ask(`${pathOf(state.id)}/preview`, { method: "POST", toml: state.edited });
  });
}

async function save(act) {
  await during("Saving …", async () => {
    await act.ask(pathOf(state.id), { method: "PUT", body: state.found.change });
    closeSheet();
    act.saved();
  });
}

async function during(words, work) {
  Object.assign(state, { busy: words, fault: null });
  redraw();
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    state.fault = error;
  } finally {
    state.busy = "";
    redraw();
  }
}
