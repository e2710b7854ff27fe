// History into what charts draw: samples are totals at moments, so a rate is a difference. No drawing here.

/** Ranges that can be chosen: how long, how long one point of them is, and which samples of the API; in seconds. */
export const RANGES = [
  { name: "5 min", long: 300, step: 2, samples: 2 },
  { name: "15 min", long: 900, step: 6, samples: 2 },
  { name: "1 h", long: 3600, step: 20, samples: 2 },
  { name: "6 h", long: 21_600, step: 120, samples: 60 },
  { name: "1 d", long: 86_400, step: 480, samples: 60 },
  { name: "7 d", long: 604_800, step: 3600, samples: 900 },
  { name: "30 d", long: 2_592_000, step: 14_400, samples: 900 },
];
/** Samples further apart than so many intervals have a gap between them. */
const GAP_INTERVALS = 4;
const KEPT = 1900;

/** What is kept of the history: old samples and those that just came, each once. */
export function joined(kept, items) {
  const last = kept.length ? kept[kept.length - 1].at : -Infinity;
  const fresh = items.filter((one) => one.at > last);
  return fresh.length ? [...kept, ...fresh].slice(-KEPT) : kept;
}

/** Points of a range that ends at `end` (s since 1970): time of their end, events/s, highest lags; null where unknown. */
export function pointsOf(samples, interval, range, end) {
  const last = Math.floor(end / range.step);
  const first = last - Math.floor(range.long / range.step) + 1;
  const points = Array.from({ length: last - first + 1 }, (_, i) => empty((first + i + 1) * range.step));
  const at = (sample) => points[Math.floor(sample.at / range.step) - first];
  for (let i = 0; i < samples.length; i += 1) {
    const point = at(samples[i]);
    if (!point) continue;
    point.behindNow = highest(point.behindNow, samples[i].lag_now_seconds);
    point.behindWatermark = highest(point.behindWatermark, samples[i].lag_watermark_seconds);
    if (i > 0) addDifference(point, samples[i - 1], samples[i], interval);
  }
  for (const point of points) point.rate = point.seconds > 0 ? point.events / point.seconds : null;
  return points;
}

function empty(time) {
  return { time, events: 0, seconds: 0, rate: null, behindNow: null, behindWatermark: null };
}

function addDifference(point, before, after, interval, name = "events") {
  const seconds = after.at - before.at;
  const events = after[name] - before[name];
  if (events < 0 || seconds <= 0 || seconds > GAP_INTERVALS * interval) return; // started over, or nobody looked
  point.events += events;
  point.seconds += seconds;
}

function highest(known, value) {
  if (value === null || value === undefined) return known;
  return known === null ? value : Math.max(known, value);
}

/** Events (or rows) per second now: over the last ten seconds of samples. Null while unknown. */
export function rateNow(samples, interval, name = "events") {
  const last = samples[samples.length - 1];
  if (!last) return null;
  const total = empty(0);
  for (let i = samples.length - 1; i > 0 && samples[i - 1].at >= last.at - 10.5; i -= 1) {
    addDifference(total, samples[i - 1], samples[i], interval, name);
  }
  return total.seconds > 0 ? total.events / total.seconds : null;
}

/** How fast the lag falls, in seconds a second, over the last minute; null where that can't be said. */
export function catchingUp(samples) {
  const last = samples[samples.length - 1];
  const before = samples.find((one) => last && one.at >= last.at - 60 && one.lag_now_seconds !== null);
  if (!last || !before || last.at - before.at < 10) return null;
  if (last.lag_now_seconds === null) return null;
  return (before.lag_now_seconds - last.lag_now_seconds) / (last.at - before.at);
}
