// The head line and the notice: whether what is shown is alive, and how old it is if not.

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
  const waited = standing.waiting > standing.took ? `has been silent for ${seconds(standing.waiting)}` : `took ${seconds(standing.took)} to answer`;
  return h(
    "div",
    { class: "notice", key: "notice" },
    h("div", null, h("strong", { role: "alert" }, "The API is slow."), h("p", null, `It ${waited}. `, shown(standing))),
  );
}

function shown(standing) {
  if (standing.age === null) return "Nothing was shown yet.";
  return h("span", { class: "age", key: "age" }, `What you see is ${seconds(Math.floor(standing.age))} old, of ${clock(standing.since)} UTC.`);
}
