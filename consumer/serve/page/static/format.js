// Figures and times as people read them. Times are UTC everywhere, as in logs and in `reconciler status`.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const TENTHS = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const DASH = "–";

/** A count: 12,345. */
export function count(value) {
  return isNumber(value) ? WHOLE.format(value) : DASH;
}

/** A count for an axis: 12K. */
export function short(value) {
  return Math.abs(value) < 10 ? TENTHS.format(value) : SHORT.format(value);
}

/** A rate: 0.4, 12, 3,456. */
export function rate(value) {
  if (!isNumber(value)) return DASH;
  return value !== 0 && value < 10 ? TENTHS.format(value) : WHOLE.format(value);
}

/** Seconds: 0.4 s, 12 s, 3 min 20 s, 2 h 5 min, 3 d 4 h. */
export function seconds(value) {
  if (!isNumber(value)) return DASH;
  if (value < 9.95) return `${TENTHS.format(Math.max(0, value))} s`;
  const whole = Math.round(value);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return pair(Math.floor(whole / 60), "min", whole % 60, "s");
  if (whole < 86400) return pair(Math.floor(whole / 3600), "h", Math.floor((whole % 3600) / 60), "min");
  return pair(Math.floor(whole / 86400), "d", Math.floor((whole % 86400) / 3600), "h");
}

/** Milliseconds of a duration: 4 ms, or as seconds. */
export function milliseconds(value) {
  if (!isNumber(value)) return DASH;
  return value < 1000 ? `${WHOLE.format(value)} ms` : seconds(value / 1000);
}

/** A moment in ms since 1970: 14:03:22. */
export function clock(ms) {
  return isNumber(ms) ? new Date(ms).toISOString().slice(11, 19) : DASH;
}

/** A moment as short as it is clear: the time, before it the date if that is not today's (UTC). */
export function when(ms, now = Date.now()) {
  if (!isNumber(ms)) return DASH;
  return new Date(ms).toISOString().slice(0, 10) === new Date(now).toISOString().slice(0, 10) ? clock(ms) : moment(ms);
}

/** How long ago a moment was: "3 min 20 s ago". */
export function ago(ms, now = Date.now()) {
  return isNumber(ms) ? `${seconds(Math.max(0, (now - ms) / 1000))} ago` : "";
}

/** A moment in ms since 1970: 2026-11-22 14:03:22. */
export function moment(ms) {
  return isNumber(ms) ? new Date(ms).toISOString().slice(0, 19).replace("T", " ") : DASH;
}

/** The moment of a TSO (text or number), in ms since 1970; null for none. */
export function tsoMs(tso) {
  if (tso === null || tso === undefined) return null;
  const value = BigInt(tso);
  return value === 0n ? null : Number(value >> 18n);
}

/** "1 partition", "2 partitions". */
export function plural(number, noun, nouns = `${noun}s`) {
  return `${count(number)} ${number === 1 ? noun : nouns}`;
}

/** A word of a command, as a shell reads it. */
export function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\"'\"'")}'`;
}

/** A text that begins a sentence. */
export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]/gu;

/** A text of others, with escapes in place of characters that can't be seen or that turn what stands around them. */
export function visible(text, lines = false) {
  return text.replace(UNSEEN, (one) => (lines && one === "\n" ? one : `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`));
}

function pair(large, largeUnit, small, smallUnit) {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

export function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}
