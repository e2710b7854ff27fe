// A new changefeed: a form, or the file's text; checked, then kept. What was changed since has to be checked again.

import { Refusal } from "./connection.js";
import { h } from "./dom.js";
import { badge } from "./icons.js";
import { closeSheet, openSheet, redraw } from "./sheet.js";
import { named, sentence } from "./table.js";
import { toToml } from "./toml.js";

const API = "/api/v2/changefeeds";
const REFERENCE = /^\$\{\w+\}$/;
const TARGETS = { postgresql: "PostgreSQL", mysql: "MySQL", mariadb: "MariaDB", tidb: "TiDB", sqlite: "SQLite" };
const CONSISTENCIES = {
  snapshot: "snapshot: the target equals the upstream at some moment",
  transaction: "transaction: every upstream state, in order",
  row: "row: parallel writes, consistent at each checkpoint",
};
const EMPTY = {
  id: "", servers: "", topics: "", protocol: "canal-json", kind: "postgresql", address: "", database: "", path: "", user: "",
  password: "", consistency: "snapshot", redis: "", rules: "", quarantine: false, text: "", isText: false,
}; // prettier-ignore
let form = EMPTY;
let checked = null;
let busy = "";
let fault = null;

/** Open the form. `act`: `ask`, `created(id)`. */
export function createChangefeed(act) {
  [form, checked, busy, fault] = [{ ...EMPTY }, null, "", null];
  openSheet("New changefeed", () => view(act));
  document.getElementById("new-id").focus();
}

/** The config that the fields say. `hidden`: with *** in the place of the password. */
export function configOf(fields, hidden = false) {
  const list = (text) => text.split(/[\s,]+/).filter(Boolean);
  const source = { "bootstrap-servers": fields.servers.trim(), topics: fields.topics.trim().startsWith("~") ? [fields.topics.trim()] : list(fields.topics) };
  if (fields.protocol !== "canal-json") source.protocol = fields.protocol;
  const config = { changefeed: fields.id.trim(), source, target: { uri: uriOf(fields, hidden), consistency: fields.consistency }, redis: { uri: fields.redis.trim() } };
  if (fields.rules.trim()) config.filter = { rules: list(fields.rules) };
  if (fields.quarantine) config.quarantine = { enabled: true };
  return config;
}

function uriOf(fields, hidden) {
  if (fields.kind === "sqlite") return `sqlite:///${fields.path.trim()}`;
  const part = (text) => (REFERENCE.test(text) ? text : encodeURIComponent(text));
  const password = hidden && fields.password && !REFERENCE.test(fields.password) ? "***" : part(fields.password);
  const login = fields.user ? `${part(fields.user)}${fields.password ? `:${password}` : ""}@` : "";
  const database = fields.kind === "postgresql" && fields.database.trim() ? `/${encodeURIComponent(fields.database.trim())}` : "";
  return `${fields.kind}://${login}${fields.address.trim()}${database}`;
}

function requestOf() {
  return form.isText ? { toml: form.text } : { body: configOf(form) };
}

function set(name, value) {
  form[name] = value;
  [checked, fault] = [null, null];
  redraw();
}

function view(act) {
  return h(
    "form",
    { class: "form", key: "new", onsubmit: (event) => submit(event, act) },
    modes(),
    h("fieldset", { disabled: busy !== "", key: form.isText ? "text" : "fields" }, form.isText ? text() : fields()),
    fault ? refusal(fault) : null,
    checked ? findings(checked) : null,
    h(
      "div",
      { class: "row end wrap", key: "act" },
      busy ? h("p", { class: "quiet grow", role: "status" }, busy) : null,
      h("button", { type: "submit", class: checked ? "plain" : "primary", disabled: busy !== "" }, "Check"),
      h("button", { type: "button", class: checked?.ok ? "primary" : "plain", id: "new-create", disabled: busy !== "" || !checked, onclick: () => create(act) }, checked && !checked.ok ? "Create all the same" : "Create and start"),
    ),
  );
}

function modes() {
  const button = (isText, word) => h("button", { key: word, type: "button", "aria-pressed": String(form.isText === isText), onclick: () => switchTo(isText) }, word);
  return h("div", { class: "ranges", role: "group", "aria-label": "How to say it", key: "modes" }, button(false, "Form"), button(true, "TOML"));
}

function switchTo(isText) {
  if (isText && !form.text) form.text = toToml(configOf(form, true));
  set("isText", isText);
}

function fields() {
  const isFile = form.kind === "sqlite";
  return [
    field("id", "Id", "names the progress in the target and the file", { required: true }),
    h("h3", { key: "source" }, "Source"),
    field("servers", "Kafka brokers", "HOST:PORT, several with commas", { required: true }),
    field("topics", "Topics", "names with commas, or one ~expression that matches whole names", { required: true }),
    choice("protocol", "Protocol of the messages", { "canal-json": "Canal-JSON", simple: "Simple" }),
    h("h3", { key: "target" }, "Target"),
    choice("kind", "Kind", TARGETS),
    isFile ? field("path", "Directory", "an absolute path on the server's machine", { required: true }) : field("address", "Address", "HOST:PORT", { required: true }),
    form.kind === "postgresql" ? field("database", "Database", "", { required: true }) : null,
    isFile ? null : field("user", "User", "", {}),
    isFile ? null : field("password", "Password", "or ${NAME}, if _serve.toml allows the variable", { type: "password" }),
    choice("consistency", "Consistency", CONSISTENCIES),
    h("h3", { key: "more" }, "More"),
    field("redis", "Redis", "redis://HOST:PORT; empty: without, repetitions of earlier windows are then dropped unproven", {}),
    field("rules", "Tables", "filter rules as in TiCDC, with commas; empty: all", {}),
    h("label", { class: "tick", key: "quarantine" }, h("input", { type: "checkbox", checked: form.quarantine, onchange: (event) => set("quarantine", event.target.checked) }), "Quarantine messages that can't be applied, instead of stopping"),
  ];
}

function field(name, label, hint, more) {
  const id = `new-${name}`;
  return h(
    "div",
    { class: "field", key: name },
    h("label", { for: id }, label),
    h("input", { id, type: "text", autocomplete: "off", spellcheck: "false", "aria-describedby": hint ? `${id}-hint` : null, ...more, value: form[name], oninput: (event) => set(name, event.target.value) }),
    hint ? h("small", { id: `${id}-hint` }, hint) : null,
  );
}

function choice(name, label, options) {
  const id = `new-${name}`;
  const entries = Object.entries(options).map(([value, word]) => h("option", { key: value, value, selected: form[name] === value }, word));
  return h("div", { class: "field", key: name }, h("label", { for: id }, label), h("select", { id, onchange: (event) => set(name, event.target.value) }, entries));
}

function text() {
  return h(
    "div",
    { class: "field wide", key: "text" },
    h("label", { for: "new-text" }, "The changefeed's file"),
    h("textarea", { id: "new-text", rows: "18", spellcheck: "false", value: form.text, oninput: (event) => set("text", event.target.value), "aria-describedby": "new-text-hint" }),
    h("small", { id: "new-text-hint" }, "All keys are allowed here. Put the password in the place of ***."),
  );
}

/** A refusal with where and what to do. */
export function refusal(error) {
  return h("div", { class: "refusal", key: "fault", role: "alert" }, h("p", { class: "fault" }, `${error.message}.`), error.where ? h("p", { class: "where" }, named(error.where)) : null, error.hint ? h("p", null, sentence(error.hint)) : null);
}

function findings({ ok, items }) {
  const level = (one) => (!one.ok ? ["failed", "fails"] : one.is_whole ? ["running", "ok"] : ["look", "look"]);
  const line = (one, i) =>
    h(
      "li",
      { key: String(i) },
      h("p", null, badge(...level(one)), h("b", null, ` ${one.subject} `), named(one.fact)),
      one.where ? h("p", { class: "where" }, named(one.where)) : null,
      one.hint ? h("p", { class: "quiet" }, sentence(one.hint)) : null,
    );
  return h("section", { class: "findings", key: "findings", "aria-label": "What the check says" }, h("div", { role: "status" }, h("h3", null, ok ? "The check passes" : "The check fails")), h("ul", { class: "results" }, items.map(line)));
}

async function submit(event, act) {
  event.preventDefault();
  await during("Checking Kafka, Redis and the target …", async () => {
    checked = await act.ask(`${API}/check`, { method: "POST", ...requestOf() });
  });
}

async function create(act) {
  await during("Creating …", async () => {
    const created = await act.ask(API, { method: "POST", ...requestOf() });
    closeSheet();
    act.created(created.id);
  });
}

async function during(words, work) {
  [busy, fault] = [words, null];
  redraw();
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    fault = error;
  } finally {
    busy = "";
    redraw();
  }
}
