// States that do not flap: a worse one shows at once, a better one only after it has lasted.

/** Seconds that a better state has to last. */
export const LASTS_S = 5;
const HELD = new Set(["stalled", "retrying"]);
const FREE = new Set(["failed", "paused"]);
const shown = new Map();

/** The state to show of a changefeed, of the one that is told now; `now` in seconds. */
export function steady(id, state, now = performance.now() / 1000) {
  const known = shown.get(id);
  if (!known || known.state === state || !HELD.has(known.state) || HELD.has(state) || FREE.has(state)) {
    shown.set(id, { state, since: null });
    return state;
  }
  known.since ??= now;
  if (now - known.since < LASTS_S) return known.state;
  shown.set(id, { state, since: null });
  return state;
}
