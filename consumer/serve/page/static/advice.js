// What to do, per state: the fact, then steps. Commands stand in backquotes and are shown as code.

import { capital, count, plural, quoted, seconds } from "./format.js";
import { BEHIND_S } from "./model.js";

/** What needs a human, heaviest first: {level, title, where, text, steps}. */
export function adviceOf(feed, speed) {
  return [fault(feed), stall(feed), late(feed), behind(feed, speed), retention(feed), quarantine(feed), differing(feed), drift(feed), archived(feed), silent(feed), bare(feed)]
    .filter(Boolean);
}

function fault(feed) {
  const error = feed.error;
  if (!error) return null;
  const again = error.retry_in_seconds !== null;
  const next = error.retry_in_seconds > 0 ? ` The next try is in ${seconds(error.retry_in_seconds)}.` : "";
  return {
    level: again ? "retrying" : "failed",
    title: error.message,
    where: error.where,
    text: again
      ? `This error may be temporary, so the changefeed is started again by itself. Nothing is lost.${next}`
      : "Nothing is applied until somebody acts. What was applied stays right, and what comes waits in Kafka.",
    steps: again ? [capital(error.hint)] : stepsAfter(feed, error),
    code: `${error.code}, exit code ${error.exit_code}`,
  };
}

function stepsAfter(feed, error) {
  if (feed.waiting.some((one) => one.state === "skip" || one.state === "take")) return ["This DDL is decided, as DDL history shows. Press Resume."];
  const decide = "The same can be decided on this page, under DDL history: Leave out, or Done by hand.";
  const here = feed.waiting.some((one) => one.state === "failed") ? [decide] : [];
  return [capital(error.hint), ...here, "Then press Resume."].filter(Boolean);
}

function stall(feed) {
  const first = feed.stalled[0];
  if (!first) return null;
  const more = feed.stalled.length > 1 ? ` (and ${plural(feed.stalled.length - 1, "other")})` : "";
  return {
    level: "stalled",
    title: first.resolvedMs === null
      ? `No watermark has come to ${first.topic}, partition ${first.partition}${more}, for ${seconds(first.still)}`
      : `The watermark of ${first.topic}, partition ${first.partition}${more}, has not risen for ${seconds(first.still)}`,
    text: first.resolvedMs === null
      ? "Nothing can be applied before each partition has one. What comes meanwhile waits in Kafka."
      : "Everything above it, in all partitions, waits in Kafka; what was applied is right. The cause is upstream.",
    steps: [
      first.resolvedMs === null ? "Does TiCDC's sink URI have `enable-tidb-extension=true`? Without it there are no watermarks." : "",
      "Is the TiCDC changefeed running and not lagging? `cdc cli changefeed query --changefeed-id ID` upstream.",
      "Did TiCDC stop writing to this topic for good? Then, and only then: " +
        "retire it under Topics below.",
      "Are brokers or partitions of Kafka offline?",
    ].filter(Boolean),
  };
}

function behind(feed, speed) {
  if (feed.state !== "running" || !(feed.behindNow > BEHIND_S)) return null;
  const done = speed > 0.05 ? ` At the speed of the last minute it has caught up in about ${seconds(feed.behindNow / speed)}.` : "";
  const own = feed.behindWatermark > BEHIND_S;
  return {
    level: "look",
    title: `${seconds(feed.behindNow)} behind`,
    text: own
      ? `What Kafka holds is not applied fast enough.${done}`
      : `All that TiCDC has resolved is applied: the delay is upstream.${done}`,
    steps: own
      ? [
          done ? "It catches up: watch the lag fall." : `${speed === null ? "If the lag does not fall, look" : "The lag does not fall. Look"} at the target first: locks, load, disk.`,
          "A larger `limits.window-rows`, more `limits.writers` with `target.consistency = \"row\"`, or more cores help.",
        ]
      : ["Look at TiCDC's own lag and at what holds back the watermark below."],
  };
}

function retention(feed) {
  const first = feed.nearRetention[0];
  if (!first) return null;
  return {
    level: "stalled",
    title: `Retention is near in ${first.topic}, partition ${first.partition}`,
    text: `Kafka deletes from offset ${count(first.begin)} on; reading goes on from ${count(first.offset)}. What is deleted unread is lost to this changefeed.`,
    steps: ["Raise `retention.ms` and `retention.bytes` of the topic now, then see to the lag."],
  };
}

function late(feed) {
  if (!feed.counts.late || feed.error) return null;
  return {
    level: "look",
    title: `${plural(feed.counts.late, "late event")} stopped this changefeed since the process began`,
    text: "An event came whose commitTs was already applied and which nobody ever saw: TiCDC broke its promise.",
    steps: ["See `late event` in the log for the position; compare with `reconciler verify`."],
  };
}

function quarantine(feed) {
  const held = feed.quarantine.held ?? 0;
  if (held === 0) return null;
  return {
    level: "look",
    title: `${plural(held, "message")} in quarantine`,
    text: "The target lacks what is held there, until it is replayed or discarded.",
    steps: ["Quarantine below shows reason and content of each. Fix the cause, then replay; discard what is not wanted."],
  };
}

function differing(feed) {
  const wrong = feed.proof.filter((one) => one.verdict === "different");
  if (wrong.length === 0) return null;
  const first = wrong.slice(0, 3).map((one) => `${one.table}: ${one.reason || `${count(one.rows)} rows, ${count(one.rows_expected)} expected, buckets ${one.buckets.join(", ")} differ`}`);
  const more = wrong.length > 3 ? `; ${wrong.length - 3} more tables` : "";
  return {
    level: "look",
    title: `Drift: ${plural(wrong.length, "table")} not as the events say`,
    text: `The last proof compared what the target holds with what the events say: ${first.join("; ")}${more}.`,
    steps: [`\`reconciler verify ${quoted(feed.file)} --tables ${quoted(wrong[0].table)} --fix-sql FILE\` names the rows and writes the repair.`],
  };
}

function drift(feed) {
  if (feed.drifted === 0) return null;
  const tables = feed.drift.slice(0, 3).map((one) => `${one.table}: ${one.missing} missing, ${one.unexpected} unexpected`);
  const more = feed.drift.length > 3 ? `; ${feed.drift.length - 3} more tables` : "";
  return {
    level: "look",
    title: `${plural(feed.drifted, "row")} of the target ${feed.drifted === 1 ? "was" : "were"} not as the events say`,
    text: `Somebody else changed the target, or rows were lost: ${tables.join("; ")}${more}.`,
    steps: [`\`reconciler verify ${quoted(feed.file)}\` names the rows; \`--fix-sql\` writes what repairs them.`],
  };
}

function archived(feed) {
  if (!feed.archived) return null;
  return {
    level: "look",
    title: "The archive is read instead of the topics",
    text: `Retention deleted what the topics held: ${feed.archived}. The files hold the same changes; the topics are read again once they hold all that is left.`,
    steps: ["Nothing has to be done. A longer `retention.ms` of the topics keeps it from coming back."],
  };
}

function silent(feed) {
  if (!feed.targetSilent) return null;
  return {
    level: "look",
    title: `The target has not answered for ${seconds(feed.targetSeen)}`,
    text: "Leader, stand-bys, quarantine and DDL history below are as old as that.",
    steps: ["Is the target up and within reach of this machine?"],
  };
}

function bare(feed) {
  if (feed.ledger.state !== "out of reach") return null;
  return {
    level: "look",
    title: "Redis is out of reach",
    text: "Rows stay right. Repetitions of earlier windows are dropped unproven, and a hand-over to a stand-by takes longer.",
    steps: ["Start Redis, or set `redis.uri = \"\"` to do without."],
  };
}
