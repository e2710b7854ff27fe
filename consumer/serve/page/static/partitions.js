// resolvedTs per partition: what holds back everything comes first, and a thousand of them are no wall of text.

import { h } from "./dom.js";
import { count, plural, seconds } from "./format.js";
import { badge } from "./icons.js";
import { matching } from "./model.js";
import { at, named, table } from "./table.js";

const SHOWN = 10;

/** The section. `ui`: filter and showAll; `act.set(name, value)` changes them. */
export function partitions(feed, ui, act) {
  const found = matching(feed.partitions, ui.filter);
  const shown = ui.showAll ? found : found.slice(0, SHOWN);
  return h(
    "section",
    { class: "panel partitions", key: "partitions", "aria-labelledby": "partitions-title" },
    h("h3", { id: "partitions-title" }, "Partitions"),
    h("p", { class: "lead" }, feed.partitions.length ? [feed.isOld ? `As of ${seconds(feed.probedAgo)} ago: ` : "", leading(feed)] : unknown(feed)),
    feed.partitions.length > SHOWN ? search(feed, found, ui, act) : null,
    feed.partitions.length ? list(shown) : null,
    found.length > SHOWN ? more(found, ui, act) : null,
  );
}

function unknown(feed) {
  if (feed.source.state === "connected") return "Kafka has no partition of these topics yet.";
  return "Nothing is known of the partitions: no run of this process has looked at Kafka yet.";
}

function leading(feed) {
  const holding = feed.partitions.filter((one) => one.holdsBack);
  if (holding.length === 0) return "No partition holds the others back.";
  const first = holding[0];
  const others = holding.length > 1 ? [" and ", plural(holding.length - 1, "other")] : [];
  if (first.resolvedMs === null) return [named(first.topic), ` partition ${first.partition}`, others, holding.length > 1 ? " have" : " has", " no watermark yet, so nothing can be applied."].flat();
  const verb = holding.length > 1 ? " hold" : " holds";
  return [named(first.topic), ` partition ${first.partition}`, others, verb, " back the rest: everything above ", at(first.resolvedMs), " waits."].flat();
}

function search(feed, found, ui, act) {
  return h(
    "div",
    { class: "search", role: "search" },
    h("label", { for: "filter" }, "Filter"),
    h("input", {
      id: "filter",
      type: "search",
      autocomplete: "off",
      spellcheck: "false",
      placeholder: "topic or partition",
      value: ui.filter,
      oninput: (event) => act.set("filter", event.target.value),
    }),
    h("span", { class: "quiet", role: "status" }, `${count(found.length)} of ${plural(feed.partitions.length, "partition")}`),
  );
}

function list(shown) {
  const columns = [
    { name: "Partition", cell: (one) => [named(one.topic), h("span", { class: "number" }, ` / ${one.partition}`)] },
    { name: "State", cell: mark },
    { name: "Resolved up to", class: "figure", cell: (one) => resolved(one) },
    { name: "Behind now", class: "figure", cell: (one) => seconds(one.age) },
    { name: "Still for", class: "figure", cell: (one) => seconds(one.still) },
    { name: "Unread", class: "figure", cell: (one) => count(one.unread) },
    { name: "Offset", class: "figure wide", cell: (one) => `${count(one.offset)} of ${count(one.end)}` },
  ];
  return table({
    name: "partitions",
    caption: "Partitions, those that hold back first",
    columns,
    rows: shown,
    keyOf: (one) => one.key,
    classOf: (one) => (one.stalled ? "stalled" : one.holdsBack ? "holding" : ""),
  });
}

function mark(one) {
  if (one.stalled) return badge("stalled", "stalled");
  return one.holdsBack ? badge("standby", "holds back") : h("span", { class: "quiet" }, one.alike ? "level" : "ahead");
}

function resolved(one) {
  if (one.resolvedMs === null) return "none yet";
  return at(one.resolvedMs, `, TSO ${one.resolvedTso}`);
}

function more(found, ui, act) {
  const text = ui.showAll ? `Show the first ${SHOWN}` : `Show all ${plural(found.length, "partition")}`;
  return h("button", { type: "button", class: "plain", onclick: () => act.set("showAll", !ui.showAll) }, text);
}
