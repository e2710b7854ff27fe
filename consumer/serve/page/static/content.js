// What a message holds: decoded, and as bytes.

import { h } from "./dom.js";
import { plural, visible } from "./format.js";
import { icon } from "./icons.js";

/** `told`: key and value in base64, `decoded` or `fault`. */
export function content(told) {
  const whole = told.is_whole ? "" : ", of which the first 64 KiB are shown";
  return h(
    "div",
    { class: "content", key: "content" },
    h("h3", null, "Decoded"),
    told.decoded === null
      ? h("p", { class: "warn" }, icon("look"), `It can't be decoded: ${visible(told.fault)}`)
      : pre("The message, decoded", visible(told.decoded, true)),
    h("details", null, h("summary", null, `Raw value (${plural(told.value_bytes, "byte")}${whole})`), pre("Bytes of the value", dump(told.value))),
    h("details", null, h("summary", null, "Raw key"), pre("Bytes of the key", dump(told.key))),
  );
}

function pre(label, text) {
  return h("pre", { tabindex: "0", dir: "ltr", role: "group", "aria-label": label }, h("code", null, text));
}

/** Bytes as hexdump -C shows them; printable ASCII on the right, so nothing in it can turn or hide. */
export function dump(base64) {
  if (base64 === null) return "none";
  const text = atob(base64);
  const lines = [];
  for (let at = 0; at < text.length; at += 16) {
    const part = text.slice(at, at + 16);
    const hex = Array.from(part, (one) => one.charCodeAt(0).toString(16).padStart(2, "0")).join(" ");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${hex.padEnd(47)}  ${part.replace(/[^ -~]/g, ".")}`);
  }
  return lines.length ? lines.join("\n") : "empty";
}
