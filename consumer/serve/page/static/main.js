// The page: asks, keeps what came, draws. State is one object; every change ends in one drawing.

import { changefeeds, newButton, verdict } from "./overview.js";
import { confirm } from "./confirm.js";
import { Connection, Refusal, ask } from "./connection.js";
import { createChangefeed } from "./create.js";
import { detail } from "./detail.js";
import { h, render } from "./dom.js";
import { notice, pulse } from "./frame.js";
import { browseMessages } from "./messages.js";
import { feedOf, listOf } from "./model.js";
import * as questions from "./questions.js";
import { RANGES, joined } from "./series.js";
import { editSettings } from "./settings.js";
import { closeSheet } from "./sheet.js";
import { SHOWN as TABLES } from "./tables.js";
import { forgetToken, signIn, token } from "./token.js";

const API = "/api/v2/changefeeds";
const NO_HISTORY = { samples: [], interval: 2, end: 0, coarse: {} };
const NO_CHOICE = { filter: "", showAll: false, allWindows: false, allTopics: false, allAside: false, allDdls: false, allProofs: false, decided: false, range: 0, cursor: null, tableFilter: "" };

const places = Object.fromEntries(["pulse", "notice", "main", "sign-out"].map((id) => [id, document.getElementById(id)]));
const state = {
  list: null,
  chosen: null,
  feed: null,
  missing: null,
  history: NO_HISTORY,
  aside: null,
  written: null,
  ui: { ...NO_CHOICE, width: 600, wholeList: false },
  goThere: false,
};
const connection = new Connection(look, draw);
let drawing = false;

/** One look at everything that is shown. Raises Refusal. */
async function look(signal) {
  const list = listOf(await ask(API, token(), { signal }));
  choose(list);
  const id = state.chosen;
  if (id !== null) {
    const path = `${API}/${encodeURIComponent(id)}`;
    const since = state.history.samples.at(-1)?.at ?? 0;
    const tables = `${path}/tables?limit=${TABLES}&contains=${encodeURIComponent(state.ui.tableFilter)}`;
    const asked = [path, `${path}/history?since=${since}`, tables].map((each) => ask(each, token(), { signal }));
    const found = await Promise.all(asked).catch(gone);
    if (id !== state.chosen) return connection.hurry(); // another one was chosen meanwhile
    if (found) take(...found);
    else Object.assign(state, addressed() === id ? { feed: null, missing: id } : { feed: null, chosen: null });
  }
  state.list = list;
  return undefined;
}

function gone(error) {
  if (error instanceof Refusal && error.status === 404) return null;
  throw error;
}

function take(status, told, written) {
  const samples = joined(state.history.samples, told.items);
  const end = samples.at(-1)?.at ?? 0;
  Object.assign(state, { feed: feedOf(status), missing: null, written, history: { ...state.history, samples, interval: told.interval_seconds, end } });
  askAside();
  askPast();
}

/** Ask for the coarse samples that the chosen range needs, as often as there are new ones. */
async function askPast() {
  const step = RANGES[state.ui.range].samples;
  const { history, feed } = state;
  const known = history.coarse[step];
  if (step === history.interval || (known && performance.now() - known.at < step * 1000)) return;
  history.coarse[step] = { items: known?.items ?? [], at: performance.now() };
  try {
    history.coarse[step].items = (await ask(`${API}/${encodeURIComponent(feed.id)}/history?step=${step}`, token())).items;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    delete history.coarse[step]; // asked again with the next look, which tells what is wrong
  }
  draw();
}

/** Ask for the quarantined messages, once for each change of their numbers: this asks the target. */
async function askAside() {
  const { id, quarantine } = state.feed;
  const version = JSON.stringify([id, quarantine]);
  if (state.aside?.version === version || !Object.values(quarantine).some((number) => number > 0)) return;
  const aside = { version, items: state.aside?.id === id ? state.aside.items : null, id, failure: null };
  state.aside = aside;
  try {
    aside.items = (await ask(`${API}/${encodeURIComponent(id)}/quarantine`, token())).items;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    aside.failure = error;
  }
  draw();
}

/** The changefeed of the address, else the one that needs somebody most. */
function choose(list) {
  const wanted = addressed() ?? state.chosen ?? list[0]?.id ?? null;
  if (wanted === state.chosen) return;
  Object.assign(state, { chosen: wanted, feed: null, missing: null, history: { ...NO_HISTORY, coarse: {} }, aside: null, written: null });
  Object.assign(state.ui, NO_CHOICE, { range: state.ui.range });
}

function addressed() {
  if (!location.hash.startsWith("#/")) return null;
  try {
    return decodeURIComponent(location.hash.slice(2)) || null;
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}

const act = {
  set(name, value) {
    state.ui[name] = typeof value === "function" ? value(state.ui[name]) : value;
    if (name === "range" && state.feed) askPast();
    draw();
  },
  tableFilter(text) {
    act.set("tableFilter", text);
    connection.hurry();
  },
  retry: () => connection.hurry(),
  ask: (path, more) => ask(path, token(), more),
  command: (verb, feed) => confirm(questions.command(verb, feed, send), hurry),
  decide: (verb, feed, ddl) => confirm(questions.ddlDecision(verb, feed, ddl, send), hurry),
  replay: (id, messages) => confirm(questions.replay(id, messages, send), decided),
  discard: (id, messages) => confirm(questions.discard(id, messages, send), decided),
  reloadAside: () => decided(),
  topic: (verb, feed, name) => confirm(questions.topic(verb, feed, name, send), hurry),
  browse: (id, topic) => browseMessages(id, topic, act),
  create: () => createChangefeed(act),
  created: (id) => {
    location.hash = `#/${encodeURIComponent(id)}`;
    hurry();
  },
  settings: (id) => editSettings(id, act),
  saved: () => hurry(),
  remove: (feed) => confirm(questions.deletion(feed, send), () => {
    state.list = state.list.filter((one) => one.id !== feed.id);
    location.hash = "";
    state.chosen = null;
    choose(state.list);
    hurry();
  }),
};

function send(path, body, method = "POST") {
  return ask(path, token(), { method, body });
}

function hurry() {
  connection.hurry();
}

/** Quarantined messages were decided about: ask for them again. */
function decided() {
  closeSheet();
  if (state.aside) state.aside.version = null;
  connection.hurry();
}

/** Draw soon, once, however much has changed. */
function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    drawNow();
  });
}

function drawNow() {
  const standing = connection.standing();
  const locked = standing.state === "locked";
  render(places.pulse, pulse(standing));
  render(places.notice, notice(standing, connection.failure, act));
  places["sign-out"].hidden = locked || token() === "";
  document.body.dataset.standing = standing.state;
  places.main.classList.toggle("old", standing.state === "slow" || standing.state === "gone");
  if (locked) signIn(places.main, connection.failure, () => connection.hurry());
  else letIn(...body());
  goThere();
  title(standing);
}

/** Show the page. The form of the token leaves with the focus: the keyboard goes on where the page begins, not at its foot. */
function letIn(...parts) {
  const asked = places.main.querySelector("form.sign-in") !== null;
  render(places.main, ...parts);
  if (asked) places.main.focus({ preventScroll: true });
}

/** On a phone the chosen one lies below the list: go there once it is drawn, after it was chosen by hand. */
function goThere() {
  const head = document.getElementById("feed-title");
  if (!state.goThere || head === null || state.feed?.id !== state.chosen) return;
  state.goThere = false;
  if (matchMedia("(max-width: 640px)").matches) head.closest("header").scrollIntoView();
}

function body() {
  if (state.list === null) return [h("p", { class: "empty", key: "first" }, "Asking the API …")];
  const isLive = connection.standing().state === "live";
  return [verdict(state.list), state.list.length ? changefeeds(state.list, state.chosen, { ...state.ui, live: isLive }, act) : nothing(isLive), chosen()];
}

function nothing(isLive) {
  return h(
    "div",
    { class: "empty panel", key: "nothing" },
    h("p", null, "Each changefeed is a TOML file in the directory that ", h("code", null, "reconciler serve"), " was given. ", h("code", null, "reconciler init ID.toml"), " writes one; or fill in a form:"),
    newButton(isLive, act),
  );
}

function chosen() {
  if (state.missing !== null) return h("p", { class: "empty", key: "missing" }, h("bdi", { class: "name" }, state.missing), " does not exist, or no more.");
  if (state.feed === null) return null;
  const aside = state.aside?.id === state.feed.id ? state.aside : null;
  return detail(state.feed, { history: state.history, aside, written: state.written }, { ...state.ui, live: connection.standing().state === "live" }, act);
}

function title(standing) {
  const old = standing.state === "slow" || standing.state === "gone";
  const text = old || !state.list ? "" : `${verdictWord()} · `;
  document.title = `${old ? "? · " : text}ticdc-reconciler`;
}

function verdictWord() {
  const bad = state.list.filter((one) => ["failed", "stalled", "retrying"].includes(one.state)).length;
  return bad ? `${bad} need you` : "healthy";
}

places["sign-out"].addEventListener("click", () => {
  forgetToken();
  location.reload(); // nothing of what was shown stays in memory
});
addEventListener("hashchange", () => {
  state.goThere = addressed() !== null;
  choose(state.list ?? []);
  connection.hurry();
  draw();
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) connection.stop();
  else connection.hurry();
  draw();
});
new ResizeObserver(() => {
  const plots = document.getElementById("plots");
  const width = Math.floor(plots?.clientWidth ?? places.main.clientWidth);
  if (width > 0 && width !== state.ui.width) act.set("width", width);
}).observe(places.main);
setInterval(draw, 500);
ask("/api/v2/health", "").then(
  ({ version }) => {
    document.getElementById("version").textContent = `ticdc-reconciler ${version}`;
  },
  () => undefined, // the notice says that nothing answers
);
connection.once();
