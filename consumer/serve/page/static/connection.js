// Asks the API again and again, and knows how old the answers are. Old answers are never shown as new ones.

import { parse } from "./json.js";

const EVERY_MS = 1000;
const GIVE_UP_MS = 8000;
/** An answer that takes longer makes the API "slow", and what is shown old. */
export const SLOW_MS = 3000;
const WAITS_MS = [1000, 2000, 4000, 8000, 15000];

/** An answer that is no success. `status` is 0 where there was none. */
export class Refusal extends Error {
  constructor(status, told) {
    super(told.fact);
    this.status = status;
    this.where = told.where ?? "";
    this.hint = told.hint ?? "";
  }
}

/** One request. Resolves with the parsed body; raises Refusal. */
export async function ask(path, token, { method = "GET", body, toml, signal } = {}) {
  let response;
  let text;
  try {
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    if (body || toml !== undefined) headers["Content-Type"] = body ? "application/json" : "application/toml";
    response = await fetch(path, { method, headers, body: body ? JSON.stringify(body) : toml, signal, cache: "no-store", credentials: "same-origin" });
    text = await response.text();
  } catch (error) {
    const fact = error.name === "TimeoutError" ? "the API did not answer in time" : "the API can't be reached";
    throw new Refusal(0, { fact });
  }
  const told = read(text);
  if (response.ok && told !== null) return told;
  throw new Refusal(response.status, told?.fact ? told : { fact: `the API answered ${response.status}` });
}

function read(text) {
  if (text === "") return {};
  try {
    return parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** Repeats `look(signal)` for ever; tells `changed` after each end. */
export class Connection {
  constructor(look, changed) {
    this.look = look;
    this.changed = changed;
    this.failure = null;
    this.failures = 0;
    this.answeredAt = null;
    this.answeredClock = null;
    this.beganAt = null;
    this.tookMs = 0;
    this.nextAt = null;
    this.timer = null;
  }

  /** Ask now, whatever was planned. */
  hurry() {
    clearTimeout(this.timer);
    if (this.beganAt === null) this.once();
    else this.again = true;
  }

  stop() {
    clearTimeout(this.timer);
    this.nextAt = null;
  }

  async once() {
    this.beganAt = performance.now();
    this.nextAt = null;
    this.again = false;
    try {
      await this.look(AbortSignal.timeout(GIVE_UP_MS));
      this.answered();
    } catch (error) {
      this.failure = error instanceof Refusal ? error : notUnderstood(error);
      this.failures += 1;
    } finally {
      this.tookMs = performance.now() - this.beganAt;
      this.beganAt = null;
    }
    this.plan();
    this.changed();
  }

  answered() {
    this.failure = null;
    this.failures = 0;
    this.answeredAt = performance.now();
    this.answeredClock = Date.now();
  }

  plan() {
    if (this.failure?.status === 401) return; // only a token helps
    const wait = this.again ? 0 : this.failures ? backoff(this.failures) : Math.max(EVERY_MS - this.tookMs, this.tookMs, 100);
    this.nextAt = performance.now() + wait;
    this.timer = setTimeout(() => this.once(), wait);
  }

  /** How it stands: `state` is first, live, slow, gone or locked; ages in seconds, null where there is none. */
  standing() {
    const now = performance.now();
    const age = this.answeredAt === null ? null : (now - this.answeredAt) / 1000;
    const waiting = this.beganAt === null ? 0 : now - this.beganAt;
    const next = this.nextAt === null ? null : Math.max(0, (this.nextAt - now) / 1000);
    return { state: this.stateNow(waiting, age), age, waiting: waiting / 1000, took: this.tookMs / 1000, next, since: this.answeredClock };
  }

  stateNow(waiting, age) {
    if (this.failure?.status === 401) return "locked";
    if (this.failure) return "gone";
    if (waiting > SLOW_MS || this.tookMs > SLOW_MS) return "slow";
    if (age === null) return "first";
    return age * 1000 > 2 * SLOW_MS ? "slow" : "live";
  }
}

function notUnderstood(error) {
  console.error(error);
  return new Refusal(0, { fact: "the API's answer is not what this page expects", hint: "Reload the page: the server may be of another version." });
}

function backoff(failures) {
  const wait = WAITS_MS[Math.min(failures, WAITS_MS.length) - 1];
  return wait * (0.8 + 0.4 * Math.random());
}
