// The way of an event, from left to right: Kafka, its partitions, the window, the target; what holds back is marked.

import { h } from "./dom.js";
import { count, milliseconds, plural, rate, seconds } from "./format.js";
import { icon } from "./icons.js";
import { at, named } from "./table.js";

const BARS_MOST = 32;
const BAR = 7;
const HIGH = 34;

/** The picture. `speed`: events and rows per second, or null. */
export function flow(feed, speed) {
  return h(
    "section",
    { class: "panel flow", key: "flow", "aria-labelledby": "flow-title" },
    h("h3", { id: "flow-title", class: "unseen" }, "Flow"),
    h("ol", null, source(feed), lanes(feed), gathered(feed, speed), goal(feed)),
  );
}

function step(name, level, arrow, ...children) {
  return h("li", { key: name, class: `step ${level}` }, h("h4", null, level ? icon(level) : null, name), children, arrow ? h("p", { class: "arrow" }, arrow) : null);
}

function source(feed) {
  const state = { connected: ["", "connected"], unknown: ["", "not asked yet"] }[feed.source.state] ?? ["look", feed.source.state];
  const waiting = feed.held === null ? "" : `${count(feed.held)} unread`;
  return step(feed.archived ? "Archive" : "Kafka", state[0], waiting, h("p", null, h("b", null, feed.topics.length || feed.probedAgo !== null ? plural(feed.topics.length, "topic") : "–")), h("p", { class: "quiet" }, feed.isOld ? `as of ${seconds(feed.probedAgo)} ago` : state[1]));
}

function lanes(feed) {
  const holding = feed.partitions.filter((one) => one.holdsBack);
  const level = feed.stalled.length ? "stalled" : "";
  const first = holding[0];
  const alike = holding.filter((one) => one.stalled === first.stalled).length;
  const words = first && (first.stalled || holding.length < feed.partitions.length) ? behind(first, alike) : feed.partitions.length ? "none is behind the others" : "";
  return step(
    "Partitions",
    level,
    feed.behindWatermark === null ? "" : `${seconds(feed.behindWatermark)} behind`,
    bars(feed.partitions),
    words ? h("p", { class: first?.stalled ? "warn" : "quiet" }, h("span", null, words)) : null,
  );
}

function behind(first, number) {
  const others = number > 1 ? ` and ${plural(number - 1, "other")}` : "";
  const what = first.stalled ? `${first.resolvedMs === null ? "without a watermark" : "stalled"} for ${seconds(first.still)}` : number > 1 ? "are behind the rest" : "is behind the others";
  return [named(`${first.topic} / ${first.partition}`), `${others} ${what}`];
}

/** A bar for each partition: the longer, the older its watermark. Those that hold back come first. */
function bars(partitions) {
  const shown = partitions.slice(0, BARS_MOST);
  if (shown.length === 0) return h("p", { class: "quiet" }, "none known");
  const oldest = Math.max(...shown.map((one) => one.age ?? 0), 1);
  const height = (one) => Math.max(3, Math.round((HIGH * (one.age ?? oldest)) / oldest));
  const rects = shown.map((one, i) => h("rect", { key: one.key, class: one.stalled ? "stalled" : one.holdsBack ? "holding" : "", x: i * BAR, y: HIGH - height(one), width: BAR - 2, height: height(one), rx: 1.5 }));
  const more = partitions.length - shown.length;
  return h(
    "p",
    { class: "bars" },
    h("svg", { viewBox: `0 0 ${shown.length * BAR} ${HIGH}`, width: shown.length * BAR, height: HIGH, "aria-hidden": "true", focusable: "false" }, rects),
    h("span", null, more > 0 ? `and ${count(more)} more` : plural(partitions.length, "partition")),
  );
}

function gathered(feed, speed) {
  const last = feed.windows[0];
  return step(
    "Window",
    "",
    speed.rows === null ? "" : `${rate(speed.rows)} rows/s`,
    h("p", null, h("b", null, speed.events === null ? "–" : `${rate(speed.events)} events/s`)),
    h("p", { class: "quiet" }, last ? `the last: ${plural(last.events, "event")} in ${milliseconds(last.seconds * 1000)}` : "none applied yet"),
  );
}

function goal(feed) {
  return step(
    "Target",
    feed.targetSilent ? "look" : "",
    "",
    h("p", { class: "place" }, named(feed.target.replace(/^([a-z]+):\/\//, "$1 "))),
    h("p", { class: "quiet" }, feed.checkpointMs === null ? "nothing applied yet" : ["applied up to ", at(feed.checkpointMs), `, ${seconds(feed.behindNow)} behind`]),
  );
}
