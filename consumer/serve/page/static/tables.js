// The tables of a changefeed, those written last first; and one of them with all that is known of it.

import { h } from "./dom.js";
import { ago, count, plural, tsoMs, visible } from "./format.js";
import { badge } from "./icons.js";
import { VERDICTS, ddlEntry, fact, section } from "./records.js";
import { openSheet, redraw, shows } from "./sheet.js";
import { at, named, table } from "./table.js";

export const SHOWN = 10;
/** What the dialog shows: `{feed, one, draw}`. */
let sheet = null;

/** The section. `told`: `{total, items}` of the API, or null before it has answered. */
export function tables(feed, told, ui, act) {
  if (told === null) return null;
  follow(feed, told);
  const columns = [
    { name: "Table", cell: (one) => h("button", { type: "button", class: "link", onclick: () => show(feed, one) }, named(one.table)) },
    { name: "Last written", class: "figure", cell: (one) => at(one.written_at * 1000) },
    { name: "Up to", class: "figure spare", cell: (one) => at(tsoMs(one.checkpoint_ts), `, TSO ${one.checkpoint_ts}`) },
    { name: "Rows written", class: "figure", cell: (one) => count(one.rows_written) },
    { name: "Proof", cell: (one) => proof(feed, one.table) },
  ];
  const all = { name: "tables", caption: "Tables, those written last first", columns, rows: told.items, keyOf: (one) => one.table };
  return section("tables", "Tables", [
    told.total > SHOWN || ui.tableFilter ? search(told, ui, act) : null,
    told.items.length ? table(all) : h("p", { class: "empty" }, ui.tableFilter ? "No table of that name was written." : "This process has written no row yet."),
    told.total > told.items.length ? h("p", { class: "quiet" }, `The last ${count(told.items.length)} of ${plural(told.total, "table")}; the filter finds the others.`) : null,
  ]);
}

function search(told, ui, act) {
  const typed = { id: "table-filter", type: "search", autocomplete: "off", spellcheck: "false", maxlength: "200", placeholder: "database or table" };
  return h(
    "div",
    { class: "search", role: "search" },
    h("label", { for: "table-filter" }, "Filter"),
    h("input", { ...typed, value: ui.tableFilter, oninput: (event) => act.tableFilter(event.target.value) }),
    h("span", { class: "quiet", role: "status" }, plural(told.total, "table")),
  );
}

function proof(feed, name) {
  const found = feed.proof.find((one) => one.table === name);
  return found ? badge(...(VERDICTS[found.verdict] ?? ["none", found.verdict])) : h("span", { class: "quiet" }, "none yet");
}

/** A table in a dialog, which follows what the page learns. */
function show(feed, one) {
  sheet = { feed, one, draw: () => view(sheet) };
  openSheet(visible(one.table), sheet.draw);
}

function follow(feed, told) {
  if (!sheet || !shows(sheet.draw) || feed.id !== sheet.feed.id) return;
  const one = told.items.find((each) => each.table === sheet.one.table) ?? sheet.one;
  if (feed === sheet.feed && one === sheet.one) return;
  Object.assign(sheet, { feed, one });
  redraw();
}

function view({ feed, one }) {
  const drift = feed.drift.find((each) => each.table === one.table);
  const judged = feed.proof.find((each) => each.table === one.table);
  const ddls = feed.ddls.filter((each) => `${each.database}.${each.table}` === one.table);
  return [
    h(
      "dl",
      { class: "facts", key: "facts" },
      fact("Rows written", count(one.rows_written), "deleted and written, since this process began"),
      fact("Last written", [at(one.written_at * 1000), `, ${ago(one.written_at * 1000)}`]),
      fact("Up to", [at(tsoMs(one.checkpoint_ts))], `TSO ${one.checkpoint_ts}: the checkpoint of that commit`),
      fact("Drift", drift ? `${count(drift.missing)} rows missing, ${count(drift.unexpected)} unexpected` : "none"),
      fact("Proof", proof(feed, one.table), judged ? `${plural(judged.rows, "row")}${judged.reason ? `; ${judged.reason}` : ""}` : ""),
    ),
    h("h3", { key: "head" }, "DDL history"),
    ddls.length
      ? h("ol", { class: "ddls", key: "ddls" }, ddls.map((each) => h("li", { key: each.commit_ts }, ddlEntry(each))))
      : h("p", { class: "empty", key: "none" }, "None among the last DDLs."),
  ];
}
