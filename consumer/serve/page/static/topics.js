// The topics of a changefeed: what each holds, and whether the others wait for it.

import { h } from "./dom.js";
import { count, plural, seconds } from "./format.js";
import { badge } from "./icons.js";
import { section } from "./records.js";
import { named, table } from "./table.js";

const SHOWN = 8;

/** The section; nothing while no topic is known. */
export function topics(feed, ui, act) {
  const all = feed.topics;
  if (all.length === 0) return null;
  const shown = ui.allTopics ? all : all.slice(0, SHOWN);
  const columns = [
    { name: "Topic", cell: (one) => named(one.name) },
    { name: "State", cell: mark },
    { name: "Partitions", class: "figure", cell: (one) => count(one.partitions) },
    { name: "Unread", class: "figure", cell: (one) => count(one.unread) },
    { name: "Behind now", class: "figure", cell: (one) => seconds(one.age) },
    { name: "Actions", class: "figure", cell: (one) => [look(one, feed, ui, act), " ", decide(one, feed, ui, act)] },
  ];
  return section("topics", "Topics", [
    table({ name: "topics", caption: "Topics, those that hold back first", columns, rows: shown, keyOf: (one) => one.name }),
    all.length > SHOWN ? h("button", { type: "button", class: "plain", onclick: () => act.set("allTopics", !ui.allTopics) }, ui.allTopics ? `Show the first ${SHOWN}` : `Show all ${plural(all.length, "topic")}`) : null,
  ]);
}

function mark(one) {
  if (one.retired) return badge("paused", "retired");
  if (one.stalled) return badge("stalled", "stalled");
  return one.holdsBack ? badge("standby", "holds back") : badge("running", "counts");
}

function look(one, feed, ui, act) {
  return h("button", { type: "button", class: "plain small", disabled: !ui.live || one.partitions === 0, onclick: () => act.browse(feed.id, one.name), "aria-label": `Messages of ${one.name}` }, "Messages…");
}

function decide(one, feed, ui, act) {
  const [verb, word] = one.retired ? ["return", "Let it count"] : ["retire", "Retire"];
  return h("button", { type: "button", class: "plain small decide", disabled: !ui.live, onclick: () => act.topic(verb, feed, one.name), "aria-label": `${word} ${one.name}` }, `${word}…`);
}
