// Tables that become cards on narrow screens. Roles are said outright: CSS that changes `display` takes them away.

import { h } from "./dom.js";
import { ago, isNumber, moment, when } from "./format.js";

/** columns: {name, cell(row), class}; rows with keys. `caption` is for screen readers. */
export function table({ caption, columns, rows, keyOf, classOf = () => "", name, cards = true }) {
  const heads = columns.map((one) => h("th", { key: one.name, scope: "col", role: "columnheader", class: one.class }, one.name));
  return h(
    "table",
    { class: `${cards ? "cards " : ""}${name}`, role: "table" },
    h("caption", { class: "unseen" }, caption),
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads)),
    h("tbody", { role: "rowgroup" }, rows.map((row) => line(row, columns, keyOf, classOf))),
  );
}

function line(row, columns, keyOf, classOf) {
  const cells = columns.map((one, i) =>
    i === 0
      ? h("th", { key: one.name, scope: "row", role: "rowheader", class: one.class }, one.cell(row))
      : h("td", { key: one.name, role: "cell", class: one.class, "data-name": one.name }, one.cell(row)),
  );
  return h("tr", { key: keyOf(row), role: "row", class: classOf(row) }, cells);
}

/** A name from outside: its direction can't turn what stands around it, and it breaks where it must. */
export function named(text) {
  return h("bdi", { class: "name" }, text);
}

/** A moment: the time, with its date unless that is today's; pointing at it shows all of it and how long ago it was. */
export function at(ms, more = "") {
  if (!isNumber(ms)) return "–";
  const title = `${moment(ms)} UTC, ${ago(ms)}${more}`;
  return h("time", { datetime: new Date(ms).toISOString(), title }, when(ms));
}

/** A sentence in which `backquotes` mean code. */
export function sentence(text) {
  return text.split("`").map((part, i) => (i % 2 ? h("code", { key: `c${i}` }, part) : part));
}
