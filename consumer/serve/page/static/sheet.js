// A dialog whose content is drawn again after each change: a message, a form.

import { render } from "./dom.js";

const dialog = document.getElementById("sheet");
const title = document.getElementById("sheet-title");
const body = document.getElementById("sheet-body");
let view = null;

document.getElementById("sheet-close").addEventListener("click", closeSheet);
dialog.addEventListener("cancel", (event) => {
  event.preventDefault(); // Escape: closed by us, so that nothing stays
  closeSheet();
});

/** Open it with what `draw()` describes. */
export function openSheet(heading, draw) {
  title.textContent = heading;
  view = draw;
  redraw();
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}

/** Draw it again. */
export function redraw() {
  if (view) render(body, view());
}

/** Whether it is this that it shows. */
export function shows(draw) {
  return view === draw;
}

/** Close it; what was typed or shown does not stay on the page. */
export function closeSheet() {
  view = null;
  dialog.close();
  render(body);
}
