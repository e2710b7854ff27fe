// What is asked before each command, and the request that it is. Only what is said here can be done from the page.

import { plural } from "./format.js";

const STATES = {
  held: ["look", "held"],
  superseded: ["standby", "superseded"],
  replayed: ["running", "replayed"],
  discarded: ["paused", "discarded"],
  retried: ["retrying", "read again"],
};
const ASIDE = "A running changefeed is stopped meanwhile and goes on afterwards.";

/** Icon and word of a quarantined message's state. */
export function asideBadge(state) {
  return STATES[state] ?? ["none", state];
}

const isolated = (text) => `\u2068${text}\u2069`;
const pathOf = (id) => `/api/v2/changefeeds/${encodeURIComponent(id)}`;

/** Pause or resume. */
export function command(verb, feed, send) {
  const pause = verb === "pause";
  return {
    title: `${pause ? "Pause" : "Resume"} ${isolated(feed.id)}?`,
    text: pause
      ? "The window at work is finished or rolled back, then nothing more is applied until somebody resumes it, also after a restart. Kafka keeps what comes, for as long as its retention lasts."
      : "It goes on from its checkpoint. If the cause of an error is still there, it fails again.",
    yes: pause ? "Pause" : "Resume",
    act: async () => void (await send(`${pathOf(feed.id)}/${verb}`)),
  };
}

/** What becomes of a DDL that stops the changefeed. */
export function ddlDecision(verb, feed, ddl, send) {
  const place = isolated([ddl.database, ddl.table].filter(Boolean).join(".") || "the changefeed");
  const skip = verb === "skip";
  return {
    title: skip ? `Leave this DDL of ${place} out?` : `Is this DDL of ${place} done by hand?`,
    text: skip
      ? "The next run goes on without it. Right only if the target can do without it: rows that come after it may not fit."
      : "The next run goes on as if the DDL had been executed. Say so only once its change is in the target.",
    yes: skip ? "Leave it out" : "It is done",
    level: skip ? "danger" : "",
    reason: "Reason, kept in the DDL log",
    typed: feed.id,
    act: async ({ reason }) => void (await send(`${pathOf(feed.id)}/ddls/${ddl.commit_ts}/${verb}`, { reason })),
  };
}

/** Apply quarantined messages; none named: all that are held. */
export function replay(id, messages, send) {
  return {
    title: messages.length ? `Replay ${isolated(messages.join(", "))}?` : "Replay all messages that are held?",
    text: `Each is applied if its cause was fixed and nothing newer of its row was applied; otherwise it stays, with the reason. ${ASIDE}`,
    yes: "Replay",
    act: async () => verdicts(await send(`${pathOf(id)}/quarantine/replay`, { messages })),
  };
}

/** Leave quarantined messages out for good; none named: all that nobody has decided about. */
export function discard(id, messages, send) {
  const all = messages.length === 0;
  return {
    title: all ? "Discard all messages that nobody has decided about?" : `Discard ${isolated(messages.join(", "))}?`,
    text: `What is discarded is left out for good: the target lacks what it holds unless it was written by hand. It stays listed with the reason. ${ASIDE}`,
    yes: "Discard",
    level: "danger",
    reason: "Reason, kept with the message",
    typed: id,
    act: async ({ reason }) => verdicts(await send(`${pathOf(id)}/quarantine/discard`, all ? { all, reason } : { messages, reason })),
  };
}

function verdicts(answer) {
  return answer.items.map((one) => ({ ...one, badge: asideBadge(one.state) }));
}

/** Retire a topic, or let it count again. */
export function topic(verb, feed, name, send) {
  const retire = verb === "retire";
  return {
    title: retire ? `Will TiCDC never write to ${isolated(name)} again?` : `Let ${isolated(name)} count again?`,
    text: retire
      ? "The other topics no longer wait for its watermarks. Events in it above the checkpoint are still applied; whatever TiCDC writes to it later is refused."
      : "The others wait for its watermarks as before. If it holds rows at or below the checkpoint, the changefeed stops and says so.",
    yes: retire ? "Retire it" : "Let it count",
    level: retire ? "danger" : "",
    typed: retire ? name : "",
    act: async () => void (await send(`${pathOf(feed.id)}/topics/${encodeURIComponent(name)}/${verb}`)),
  };
}

/** Stop a changefeed and remove its file. */
export function deletion(feed, send) {
  const held = feed.quarantine.held ?? 0;
  const more = held ? ` ${plural(held, "message")} in quarantine ${held === 1 ? "is" : "are"} not decided about.` : "";
  return {
    title: `Delete ${isolated(feed.id)}?`,
    text: `It is stopped and its file is removed. Rows in the target stay, and so does the progress: if it is created again, it goes on from there.${more}`,
    yes: "Delete",
    level: "danger",
    typed: feed.id,
    option: "Forget its progress too: created again, it starts over",
    act: async ({ option }) => {
      const query = option ? `?delete_progress=true&confirm=${encodeURIComponent(feed.id)}` : "";
      await send(`${pathOf(feed.id)}${query}`, undefined, "DELETE");
    },
  };
}
