// Pause and resume, each after a question that says what will happen.

import { Refusal } from "./connection.js";

const WORDS = {
  pause: {
    title: (id) => `Pause ${id}?`,
    text: "The window at work is finished or rolled back, then nothing more is applied until somebody resumes it, also after a restart. Kafka keeps what comes, for as long as its retention lasts.",
    yes: "Pause",
  },
  resume: {
    title: (id) => `Resume ${id}?`,
    text: "It goes on from its checkpoint. If the cause of an error is still there, it fails again.",
    yes: "Resume",
  },
};

const dialog = document.getElementById("confirm");
const part = (name) => document.getElementById(`confirm-${name}`);

/** Ask, then `send(path)`; `done` is called after it was carried out. What is refused is told in the dialog. */
export function confirmCommand(verb, feed, send, done) {
  const words = WORDS[verb];
  part("title").textContent = words.title(`\u2068${feed.id}\u2069`);
  part("text").textContent = words.text;
  part("fault").textContent = "";
  part("yes").textContent = words.yes;
  part("no").onclick = () => dialog.close();
  part("yes").onclick = () => carryOut(`/api/v2/changefeeds/${encodeURIComponent(feed.id)}/${verb}`, send, done);
  dialog.showModal();
  part("no").focus();
}

async function carryOut(path, send, done) {
  part("yes").disabled = true;
  try {
    await send(path);
    dialog.close();
    done();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    part("fault").textContent = [error.message, error.hint].filter(Boolean).join(". ");
  } finally {
    part("yes").disabled = false;
  }
}
