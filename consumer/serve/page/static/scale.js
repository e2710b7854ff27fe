// Axes: round steps, and numbers to pixels.

/** About `wanted` round steps from 0 to at least `highest`. */
export function ticks(highest, wanted = 3) {
  if (!(highest > 0)) return [0, 1];
  const rough = highest / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999);
  const found = [0];
  while (found[found.length - 1] < highest) found.push(round(found.length * step));
  return found;
}

/** The same for seconds, whose round steps beyond a minute are minutes, hours and days. */
export function timeTicks(highest, wanted = 3) {
  const unit = [86400, 3600, 60, 1].find((one) => highest > one) ?? 1;
  return ticks(highest / unit, wanted).map((one) => round(one * unit));
}

/** Moments for the horizontal axis, in s since 1970: round in UTC, at most `most`. */
export function moments(from, to, most) {
  const [hour, day] = [3600, 86_400];
  const steps = [15, 30, 60, 120, 300, 600, 900, 1200, 1800, hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 5 * day, 10 * day];
  const step = steps.find((one) => (to - from) / one <= most) ?? 10 * day;
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return found;
}

/** A linear map. */
export function linear([from, to], [low, high]) {
  return (value) => low + ((value - from) / (to - from || 1)) * (high - low);
}

/** An SVG path through points, broken where a value is null. */
export function path(points, x, y, value) {
  let drawing = false;
  let text = "";
  for (const point of points) {
    const v = value(point);
    if (v === null) drawing = false;
    else {
      text += `${drawing ? "L" : "M"}${x(point.time).toFixed(1)} ${y(v).toFixed(1)}`;
      drawing = true;
    }
  }
  return text;
}

/** The same, closed down to the bottom: an area for each unbroken stretch. */
export function area(points, x, y, value) {
  let text = "";
  let stretch = [];
  const close = () => {
    if (stretch.length > 1) {
      const at = (point) => x(point.time).toFixed(1);
      text += `${path(stretch, x, y, value)}L${at(stretch[stretch.length - 1])} ${y(0)}L${at(stretch[0])} ${y(0)}Z`;
    }
    stretch = [];
  };
  for (const point of points) {
    if (value(point) === null) close();
    else stretch.push(point);
  }
  close();
  return text;
}

function round(value) {
  return Number(value.toPrecision(12));
}
