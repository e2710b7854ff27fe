// The head line and the notice: whether what is shown is alive, and how old it is if not.

import { SLOW_MS } from "./connection.js";
import { h } from "./dom.js";
import { capital, clock, seconds } from "./format.js";

/** A dot and a word: live or not. */
export function pulse(standing) {
  const [kind, word] = {
    first: ["waiting", "connecting"],
    live: ["live", "live"],
    slow: ["old", "slow"],
    gone: ["old", "no connection"],
    locked: ["waiting", "signed out"],
  }[standing.state];
  return h("span", { class: `pulse ${kind}`, "data-standing": standing.state }, h("i", { "aria-hidden": "true" }), word);
}

/** What is wrong with the connection, or nothing. */
export function notice(standing, failure, act) {
  if (standing.state === "slow") return slow(standing);
  if (standing.state !== "gone") return null;
  const next = standing.next === null ? "Trying now." : `Next try in ${Math.ceil(standing.next)} s.`;
  return h(
    "div",
    { class: "notice", key: "notice" },
    h("div", null, h("strong", { role: "alert" }, "No answer from the API."), h("p", null, `${capital(failure.message)}. `, shown(standing)), failure.hint ? h("p", null, failure.hint) : null),
    h("span", { class: "grow" }),
    h("span", { class: "quiet" }, next),
    h("button", { type: "button", onclick: act.retry }, "Try now"),
  );
}

function slow(standing) {
  const [title, text] = slowness(standing);
  return h(
    "div",
    { class: "notice", key: "notice" },
    h("div", null, h("strong", { role: "alert" }, title), h("p", null, text, shown(standing))),
  );
}

function slowness({ waiting, took }) {
  const slowFrom = SLOW_MS / 1000;
  if (waiting > Math.max(took, slowFrom)) return ["The API is slow.", `It has been silent for ${seconds(waiting)}. `];
  if (took > slowFrom) return ["The API is slow.", `It took ${seconds(took)} to answer. `];
  return ["Asking again.", "This page was asleep. "]; // its tab was hidden, or the machine
}

function shown(standing) {
  if (standing.age === null) return "Nothing was shown yet.";
  return h("span", { class: "age", key: "age" }, `What you see is ${seconds(Math.floor(standing.age))} old, from ${clock(standing.since)} UTC.`);
}
