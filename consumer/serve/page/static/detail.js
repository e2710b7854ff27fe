// One changefeed, top to bottom: how it is, what to do, figures, charts, partitions, what was done.

import { adviceOf } from "./advice.js";
import { charts } from "./charts.js";
import { h } from "./dom.js";
import { flow } from "./flow.js";
import { count, rate, seconds } from "./format.js";
import { badge, icon } from "./icons.js";
import { BEHIND_S, STATES } from "./model.js";
import { partitions } from "./partitions.js";
import { quarantine } from "./quarantine.js";
import { ddls, instances, proofs, windows } from "./records.js";
import { RANGES, catchingUp, joined, rateNow } from "./series.js";
import { named, sentence } from "./table.js";
import { tables } from "./tables.js";
import { topics } from "./topics.js";

/** The changefeed's part of the page. */
export function detail(feed, { history, aside, written }, ui, act) {
  const speed = catchingUp(history.samples);
  return h(
    "article",
    { class: "detail", key: `feed ${feed.id}`, "aria-labelledby": "feed-title" },
    head(feed, ui, act),
    advices(adviceOf(feed, speed)),
    flow(feed, { events: rateOf(feed, history, "events"), rows: rateOf(feed, history, "rows") }),
    figures(feed, rateOf(feed, history, "events")),
    charts(past(history, ui), history.end, ui, act),
    partitions(feed, ui, act),
    topics(feed, ui, act),
    tables(feed, written, ui, act),
    quarantine(feed, aside, ui, act),
    h("div", { class: "pair" }, windows(feed, ui, act), instances(feed)),
    proofs(feed, ui, act),
    ddls(feed, ui, act),
  );
}

/** What the chosen range is drawn from; coarse samples end with the newest that is known. */
/** Events or rows per second now; null of a changefeed that does not run, whose last samples say nothing of now. */
function rateOf(feed, history, kind) {
  const stands = feed.state === "paused" || feed.state === "failed";
  return stands ? null : rateNow(history.samples, history.interval, kind);
}

function past(history, ui) {
  const step = RANGES[ui.range].samples;
  if (step === history.interval) return { samples: history.samples, interval: step };
  const coarse = history.coarse[step]?.items ?? [];
  return { samples: joined(coarse, history.samples.slice(-1)), interval: step };
}

function head(feed, ui, act) {
  const paused = feed.state === "paused" || feed.state === "failed";
  const [verb, word] = paused ? ["resume", "Resume"] : ["pause", "Pause"];
  return h(
    "header",
    { class: "feed-head" },
    h("h2", { id: "feed-title", tabindex: "-1" }, named(feed.id)),
    badge(feed.state, STATES[feed.state].word),
    h("span", { class: "grow" }),
    h("button", { type: "button", id: "feed-command", class: paused ? "primary" : "plain", disabled: !ui.live, onclick: () => act.command(verb, feed) }, `${word}…`),
    h("button", { type: "button", id: "feed-settings", class: "plain", disabled: !ui.live, onclick: () => act.settings(feed.id) }, "Settings…"),
    h("button", { type: "button", id: "feed-delete", class: "plain", disabled: !ui.live, onclick: () => act.remove(feed) }, "Delete…"),
  );
}

function advices(found) {
  return found.map((one) =>
    h(
      "section",
      { class: `advice ${one.level}`, key: `advice ${one.title}`, "aria-label": "What to do" },
      icon(one.level),
      h(
        "div",
        null,
        h("h3", null, named(one.title)),
        one.where ? h("p", { class: "where" }, named(one.where)) : null,
        h("p", null, sentence(one.text)),
        h("ul", null, one.steps.map((step) => h("li", { key: step }, sentence(step)))),
        one.code ? h("p", { class: "quiet small" }, one.code) : null,
      ),
    ),
  );
}

function figures(feed, speed) {
  const counts = feed.counts;
  const held = feed.quarantine.held ?? 0;
  const bad = (condition) => (condition ? "look" : "");
  const tiles = [
    tile("Behind now", seconds(feed.behindNow), "the target against the clock", `main ${bad(feed.behindNow > BEHIND_S && feed.state !== "paused")}`),
    tile("Behind watermark", seconds(feed.behindWatermark), `the target against Kafka${feed.isOld ? `, as of ${seconds(feed.probedAgo)} ago` : ""}`, "main"),
    tile("Events per second", rate(speed), speed === null ? "not running, or not measured yet" : "over ten seconds", "main"),
    tile("Held", count(feed.held), `messages in Kafka, not applied${feed.isOld ? `; as of ${seconds(feed.probedAgo)} ago` : ""}`),
    tile("Applied", count(counts.events), `events in ${count(counts.windows)} windows`),
    tile("Rows written", count(counts.rows_written), "after net effect"),
    tile("Duplicates", count(counts.duplicates), `dropped; ${count(counts.duplicates_unproven)} unproven`),
    tile("Late", count(counts.late), "since the process began", bad(counts.late > 0)),
    tile("Quarantined", count(held), `held of ${count(counts.quarantined)} ever`, bad(held > 0)),
    tile("Drifted", count(feed.drifted), "rows missing or unexpected", bad(feed.drifted > 0)),
  ];
  return h("section", { class: "tiles", key: "figures", "aria-label": "Figures" }, h("dl", null, tiles));
}

function tile(name, value, about, level = "") {
  return h(
    "div",
    { key: name, class: `tile ${level}`, "data-figure": name },
    h("dt", null, level.includes("look") ? icon("look") : null, name),
    h("dd", null, h("b", null, value), h("small", null, about)),
  );
}
