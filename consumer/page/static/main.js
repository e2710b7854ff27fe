// The page: asks, keeps what came, draws. State is one object; every change ends in one drawing.

import { changefeeds, verdict } from "./overview.js";
import { confirmCommand } from "./confirm.js";
import { Connection, Refusal, ask } from "./connection.js";
import { detail } from "./detail.js";
import { h, render } from "./dom.js";
import { notice, pulse } from "./frame.js";
import { feedOf, listOf } from "./model.js";
import { joined } from "./series.js";
import { forgetToken, signIn, token } from "./token.js";

const API = "/api/v2/changefeeds";
const NO_HISTORY = { samples: [], interval: 2, end: 0 };
const NO_CHOICE = { filter: "", showAll: false, allWindows: false, range: 0, cursor: null };

const places = Object.fromEntries(["pulse", "notice", "main", "sign-out"].map((id) => [id, document.getElementById(id)]));
const state = {
  list: null,
  chosen: null,
  feed: null,
  missing: null,
  history: NO_HISTORY,
  ui: { ...NO_CHOICE, width: 600 },
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
    const asked = [ask(path, token(), { signal }), ask(`${path}/history?since=${since}`, token(), { signal })];
    const found = await Promise.all(asked).catch(gone);
    if (id !== state.chosen) return connection.hurry(); // another one was chosen meanwhile
    if (found) take(...found);
    else Object.assign(state, { feed: null, missing: id });
  }
  state.list = list;
  return undefined;
}

function gone(error) {
  if (error instanceof Refusal && error.status === 404) return null;
  throw error;
}

function take(status, told) {
  const samples = joined(state.history.samples, told.items);
  const end = samples.at(-1)?.at ?? 0;
  Object.assign(state, { feed: feedOf(status), missing: null, history: { samples, interval: told.interval_seconds, end } });
}

/** The changefeed of the address, else the one that needs somebody most. */
function choose(list) {
  const wanted = addressed() ?? state.chosen ?? list[0]?.id ?? null;
  if (wanted === state.chosen) return;
  Object.assign(state, { chosen: wanted, feed: null, missing: null, history: NO_HISTORY });
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
    draw();
  },
  retry: () => connection.hurry(),
  command: (verb, feed) => confirmCommand(verb, feed, (path) => ask(path, token(), { method: "POST" }), () => connection.hurry()),
};

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
  else render(places.main, ...body());
  title(standing);
}

function body() {
  if (state.list === null) return [h("p", { class: "empty", key: "first" }, "Asking the API …")];
  return [verdict(state.list), state.list.length ? changefeeds(state.list, state.chosen) : nothing(), chosen()];
}

function nothing() {
  return h("p", { class: "empty", key: "nothing" }, "Put a TOML file for each changefeed into the directory that reconciler serve was given.");
}

function chosen() {
  if (state.missing !== null) return h("p", { class: "empty", key: "missing" }, h("bdi", { class: "name" }, state.missing), " does not exist, or no more.");
  if (state.feed === null) return null;
  return detail(state.feed, state.history, { ...state.ui, live: connection.standing().state === "live" }, act);
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
connection.once();
