// One question before anything is done: what will happen, a reason where one is kept, something to type where it destroys.

import { h, render } from "./dom.js";
import { Refusal } from "./connection.js";
import { badge } from "./icons.js";
import { named } from "./table.js";
import { visible } from "./format.js";

const dialog = document.getElementById("confirm");
const part = (name) => document.getElementById(`confirm-${name}`);

/**
 * Ask `{title, text, yes, reason, typed, option, act}`. `reason`: the label of a field that must be filled; `typed`: a
 * text that must be typed; `option`: the label of a box. `act({reason, option})` does it and may resolve with lines to
 * show, `{state, message, why}`. `done` is called once it was carried out. What is refused is told in the dialog.
 */
export function confirm(question, done) {
  prepare(question);
  const ready = () => {
    part("yes").disabled = !isFilled(question);
  };
  part("reason").oninput = part("typed").oninput = ready;
  part("yes").onclick = () => carryOut(question, ready, done);
  part("no").onclick = () => dialog.close();
  ready();
  dialog.showModal();
  (question.reason ? part("reason") : question.typed ? part("typed") : part("no")).focus();
}

function prepare({ title, text, yes, reason, typed, option, level }) {
  part("title").textContent = title;
  part("text").textContent = text;
  part("fault").textContent = "";
  render(part("result"));
  for (const [name, label] of Object.entries({ reason, typed: typed && `Type \u2068${typed}\u2069 to confirm`, option })) {
    part(`${name}-field`).hidden = !label;
    part(`${name}-label`).textContent = label ?? "";
  }
  part("reason").value = part("typed").value = "";
  part("option").checked = false;
  part("yes").textContent = yes;
  part("yes").hidden = false;
  part("yes").className = level === "danger" ? "danger" : "primary";
  part("no").textContent = "Cancel";
}

function isFilled({ reason, typed }) {
  return (!reason || part("reason").value.trim() !== "") && (!typed || part("typed").value === typed);
}

async function carryOut(question, ready, done) {
  part("yes").disabled = true;
  part("fault").textContent = "";
  part("yes").textContent = "Working …";
  try {
    const lines = await question.act({ reason: part("reason").value.trim(), option: part("option").checked });
    done();
    if (lines) return show(lines);
    dialog.close();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    part("fault").textContent = [error.message, error.hint].filter(Boolean).join(". ");
  } finally {
    part("yes").textContent = question.yes;
    ready();
  }
  return undefined;
}

/** What became of each thing that was asked for. */
function show(lines) {
  for (const name of ["reason", "typed", "option"]) part(`${name}-field`).hidden = true;
  part("text").textContent = lines.length ? "This is what became of it:" : "There was nothing to do.";
  render(part("result"), lines.map((one) => h("li", { key: one.message }, badge(...one.badge), " ", named(one.message), h("p", { class: "quiet small" }, visible(one.why)))));
  part("yes").hidden = true;
  part("no").textContent = "Close";
  part("no").focus();
}

dialog.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
dialog.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.target.type !== "text") return;
  event.preventDefault(); // a form of several fields and without a button to submit it does nothing by itself
  if (!part("yes").hidden) part("yes").click();
});
