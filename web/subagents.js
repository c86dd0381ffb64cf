// A subagent below its call: its task, what it does, and a way to stop it. The run it is stands behind a link.

import { element } from "./elements.js";

const DOES = {
  "model.requested": () => "asks its model",
  "tool.called": (event) => `uses ${event.name}`,
  "tool.result": (event) => `${event.name}: ${event.ok ? "done" : "failed"}`,
  "tool.unknown": (event) => `${event.name}: outcome unknown`,
  "tool.rejected": (event) => `${event.name}: not run (${event.reason})`,
  "tool.approval-requested": (event) => `waits for an approval of ${event.name}`,
  "question.asked": () => "waits for an answer",
  "subagent.started": (event) => `gives a task to ${event.name}`,
  "subagent.completed": (event) => `has the answer of ${event.name}`,
  "subagent.failed": (event) => `gets no answer of ${event.name}`,
};

export class Subagent {
  /** @param {Element} place what it fills @param {() => Promise<string>} stop what it was refused with */
  constructor(event, place, stop) {
    this.does = element("span", "quiet", "is started");
    this.used = element("span", "quiet", "");
    this.button = element("button", "", "Stop it");
    this.button.type = "button";
    const trouble = element("p", "bad");
    trouble.setAttribute("role", "alert");
    this.button.addEventListener("click", async () => {
      this.button.disabled = true;
      trouble.textContent = await stop();
      this.button.disabled = trouble.textContent === "";
    });
    const link = element("a", "", "its own run");
    link.href = `#${event.child_run_id}`;
    const task = event.profile ? `${event.task} (${event.profile})` : event.task;
    const line = element("p", "", this.does, " · ", link, this.used);
    place.replaceChildren(element("p", "text", task), line, this.button, trouble);
  }

  /** Something it has recorded. */
  take(event) {
    const text = DOES[event.type]?.(event);
    if (text) this.does.textContent = text;
  }

  uses(usage) {
    this.used.textContent = ` · ${usage.input ?? 0} tokens in, ${usage.output ?? 0} out`;
  }

  ended() {
    this.does.textContent = "has ended";
    this.button.remove();
  }
}
