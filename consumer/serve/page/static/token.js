// The token: in this tab's session storage and in the header of requests, never in an address or on the page.

import { capital } from "./format.js";

const NAME = "reconciler-token";

/** The token, or "". */
export function token() {
  return sessionStorage.getItem(NAME) ?? "";
}

/** Forget it. */
export function forgetToken() {
  sessionStorage.removeItem(NAME);
}

/** Show the form in `place`, once; `then` is called with a token at hand. `refusal`: the API's last answer. */
export function signIn(place, refusal, then) {
  if (place.querySelector("form.sign-in") === null) {
    const form = document.getElementById("sign-in-form").content.cloneNode(true);
    place.replaceChildren(form);
    wire(place.querySelector("form.sign-in"), then);
  }
  const fault = document.getElementById("sign-in-fault");
  const text = said(refusal);
  if (fault.textContent !== text) fault.textContent = text;
}

/** Why there is no way in; nothing where only the token was not given yet. Hints about headers are for programs. */
function said({ message, hint }) {
  if (token() === "" && message === "a token is needed") return "";
  return `${capital(message)}.${hint.startsWith("Authorization") ? "" : ` ${capital(hint)}.`}`;
}

function wire(form, then) {
  const field = form.querySelector("#token");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(NAME, field.value.trim());
    field.value = "";
    then();
  });
  field.focus();
}
