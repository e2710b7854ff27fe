// What the API tells, in the words of the page. Everything that judges health is here and nowhere else.

import { isNumber, tsoMs } from "./format.js";
import { steady } from "./steady.js";

/** Seconds behind now from which a running changefeed wants a look. */
export const BEHIND_S = 60;
/** Seconds without an answer of the target from which its part of the page is old. */
const TARGET_SILENT_S = 15;
/** Seconds after which what Kafka and Redis said is shown as old. */
const OLD_S = 15;
/** Part of what a partition holds: reading that is nearer to the oldest message may lose a race with retention. */
const RETENTION_PART = 0.1;

/** Words and weight of each state; the heaviest come first in lists. */
export const STATES = {
  failed: { word: "failed", weight: 6 },
  stalled: { word: "stalled", weight: 5 },
  retrying: { word: "trying again", weight: 4 },
  starting: { word: "starting", weight: 3 },
  paused: { word: "paused", weight: 2 },
  standby: { word: "standing by", weight: 1 },
  running: { word: "running", weight: 0 },
};

/** The state to show of a line of the list or of a status. `stalled`: how many partitions are. */
function stateOf(id, told, stalled) {
  return steady(id, stateNow(told, stalled, told.leader));
}

function stateNow(told, stalled, leader) {
  if (told.state === "failed") return "failed";
  if (told.state === "stopped") return "paused";
  if (told.state === "warning") return "retrying";
  if (told.state === "pending") return leader && !told.leads ? "standby" : "starting";
  return stalled > 0 ? "stalled" : "running";
}

/** A line of the list. */
export function summaryOf(told) {
  const state = stateOf(told.id, told, told.stalled_partitions);
  return {
    id: told.id,
    state,
    target: told.target,
    leader: told.leader,
    behindNow: told.lag_now_seconds,
    behindWatermark: tsoMs(told.checkpoint_tso) === null ? null : told.lag_seconds,
    checkpointMs: tsoMs(told.checkpoint_tso),
    stalledPartitions: told.stalled_partitions,
    quarantineHeld: told.quarantine_held,
    error: told.error,
    looksLate: state === "running" && isNumber(told.lag_now_seconds) && told.lag_now_seconds > BEHIND_S,
  };
}

/** The list, those that need somebody first. */
export function listOf(answer) {
  const found = answer.items.map(summaryOf);
  return found.sort((a, b) => weightOf(b) - weightOf(a) || a.id.localeCompare(b.id, "en"));
}

function weightOf(summary) {
  return STATES[summary.state].weight + (summary.looksLate || summary.quarantineHeld > 0 ? 0.5 : 0);
}

/** Everything about one changefeed. */
export function feedOf(told) {
  const partitions = compared(told.source.partitions.map(partitionOf)).sort(worstFirst);
  const stalled = partitions.filter((one) => one.stalled);
  return {
    id: told.changefeed,
    file: told.file,
    state: stateOf(told.changefeed, told, stalled.length),
    target: told.target,
    leads: told.leads,
    error: told.error,
    checkpointTso: told.checkpoint_ts,
    checkpointMs: tsoMs(told.checkpoint_ts),
    behindNow: told.lag_now_seconds,
    behindWatermark: tsoMs(told.checkpoint_ts) === null ? null : told.source.lag_seconds,
    counts: told,
    held: told.held_events,
    quarantine: told.quarantine,
    drift: told.drift ?? [],
    proof: told.proof ?? [],
    drifted: (told.drift ?? []).reduce((rows, one) => rows + one.missing + one.unexpected, 0),
    leader: told.leader,
    leaderEpoch: told.leader_epoch,
    standBys: told.stand_bys,
    ledger: told.ledger,
    source: told.source,
    archived: told.archived,
    probedAgo: told.source.probed_seconds_ago,
    isOld: isNumber(told.source.probed_seconds_ago) && told.source.probed_seconds_ago > OLD_S,
    partitions,
    topics: topicsOf(partitions, told.retired_topics),
    stalled,
    stalledAfter: told.stalled_after_seconds,
    ddls: told.ddl_history,
    waiting: told.ddl_history.filter((one) => BigInt(one.commit_ts) >= BigInt(told.checkpoint_ts)),
    windows: told.last_windows,
    targetSeen: told.target_seen_seconds_ago,
    targetSilent: isNumber(told.target_seen_seconds_ago) && told.target_seen_seconds_ago > TARGET_SILENT_S,
    nearRetention: partitions.filter((one) => one.nearRetention),
  };
}

/** Where all partitions stand alike, none holds the others back. */
function compared(partitions) {
  const alike = partitions.every((one) => one.holdsBack && !one.stalled && one.resolvedMs !== null);
  return alike ? partitions.map((one) => ({ ...one, holdsBack: false, alike })) : partitions;
}

function partitionOf(told) {
  const kept = told.end_offset - told.begin_offset;
  return {
    key: `${told.topic}/${told.partition}`,
    topic: told.topic,
    partition: told.partition,
    resolvedTso: told.resolved_ts,
    resolvedMs: tsoMs(told.resolved_ts),
    age: told.watermark_age_seconds,
    still: told.still_seconds,
    begin: told.begin_offset,
    offset: told.offset,
    end: told.end_offset,
    unread: told.unread,
    holdsBack: told.holds_back,
    alike: false,
    stalled: told.stalled,
    nearRetention:
      told.begin_offset > 0 && told.unread > 0 && told.offset - told.begin_offset < RETENTION_PART * kept,
  };
}

/** What is known of each topic, those that hold back first; of a retired one that is gone, only its name. */
function topicsOf(partitions, retired) {
  const found = new Map(retired.map((name) => [name, { name, retired: true, partitions: 0, unread: 0, age: null, holdsBack: false, stalled: false }]));
  for (const one of partitions) {
    const topic = found.get(one.topic) ?? { name: one.topic, retired: false, partitions: 0, unread: 0, age: null, holdsBack: false, stalled: false };
    found.set(one.topic, topic);
    topic.partitions += 1;
    topic.unread += one.unread;
    topic.age = isNumber(one.age) ? Math.max(topic.age ?? 0, one.age) : topic.age;
    topic.holdsBack ||= one.holdsBack;
    topic.stalled ||= one.stalled;
  }
  const rank = (one) => (one.stalled ? 4 : 0) + (one.holdsBack ? 2 : 0) + (one.retired ? 1 : 0);
  return [...found.values()].sort((a, b) => rank(b) - rank(a) || a.name.localeCompare(b.name, "en"));
}

function worstFirst(a, b) {
  const rank = (one) => (one.stalled ? 2 : 0) + (one.holdsBack ? 1 : 0);
  const age = (one) => one.age ?? Infinity;
  const byAge = age(b) === age(a) ? 0 : age(b) - age(a);
  return rank(b) - rank(a) || byAge || a.topic.localeCompare(b.topic, "en") || a.partition - b.partition;
}

/** The partitions whose name or number a filter's words all match. */
export function matching(partitions, filter) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return partitions.filter((one) => words.every((word) => one.key.toLowerCase().includes(word)));
}

/** One sentence about all: what somebody who was paged reads first. */
export function verdictOf(list) {
  const bad = list.filter((one) => STATES[one.state].weight >= STATES.retrying.weight);
  const look = list.filter((one) => !bad.includes(one) && (one.looksLate || one.quarantineHeld > 0));
  if (list.length === 0) return { level: "none", text: "There is no changefeed yet." };
  if (bad.length === 1) {
    return { level: bad[0].state, id: bad[0].id, text: ` ${saidOf(bad[0])}.` };
  }
  if (bad.length > 1) return { level: bad[0].state, text: `${bad.length} of ${list.length} changefeeds need you.` };
  if (look.length > 0) return { level: "look", id: look[0].id, text: ` ${look[0].looksLate ? "is far behind" : "has messages in quarantine"}.` };
  return { level: list.every((one) => one.state === "paused") ? "paused" : "running", text: calmSentence(list) };
}

function saidOf(summary) {
  if (summary.state === "stalled") {
    const others = summary.stalledPartitions > 1 ? `${summary.stalledPartitions} watermarks stand` : "a watermark stands";
    return `is stalled: ${others} still`;
  }
  return summary.state === "failed" ? "has failed and needs you" : "meets trouble and is trying again";
}

function told(some, all, word) {
  return `${some} of ${all} ${some === 1 ? "is" : "are"} ${word}`;
}

function calmSentence(list) {
  const paused = list.filter((one) => one.state === "paused").length;
  const starting = list.filter((one) => one.state === "starting").length;
  const rest = [paused && told(paused, list.length, "paused"), starting && told(starting, list.length, "starting")].filter(Boolean);
  if (list.length === paused) return list.length === 1 ? "The changefeed is paused." : "All changefeeds are paused.";
  const all = list.length === 1 ? "The changefeed is healthy" : "All changefeeds are healthy";
  return rest.length ? `Nothing needs you. ${rest.join(", ")}.` : `${all}.`;
}
