// What the models of a run say: the text and the thoughts of each attempt, put together by part and offset, so that nothing
// stands twice after a reconnect.

import { element, Text } from "./elements.js";

const STOPPED = new Set(["cancelled", "run-ended"]);

export class Said {
  static EVENTS = {
    "step.text-delta": "textDelta", "step.reasoning-delta": "reasoningDelta", "final.text-delta": "textDelta",
    "final.reasoning-delta": "reasoningDelta", "model.answered": "answered", "model.failed": "modelFailed",
    "model.rejected": "rejected", retry: "retry",
  };

  /** @param {Timeline} run */
  constructor(run) {
    this.run = run;
    this.parts = new Map();
  }

  part(key) {
    let part = this.parts.get(key);
    if (!part) {
      const thoughts = element("details", "", element("summary", "", "Thoughts"));
      part = { text: new Text("text"), thoughts: new Text("quiet text"), item: null };
      thoughts.append(part.thoughts.element);
      thoughts.hidden = true;
      part.fold = thoughts;
      part.item = this.run.item("text", thoughts, part.text.element);
      part.item.hidden = true;
      this.parts.set(key, part);
    }
    return part;
  }

  textDelta(event) {
    this.run.say(this.run.doing);
    const part = this.part(event.part);
    part.text.put(event.offset, event.delta);
    part.item.hidden = false;
  }

  reasoningDelta(event) {
    const part = this.part(event.part);
    part.thoughts.put(event.offset, event.delta);
    part.item.hidden = part.fold.hidden = false;
  }

  answered(event) {
    this.run.say(this.run.doing);
    if (!event.message.text || event.cut || event.stage === "plan" || event.stage === "replan") return; // those are JSON
    const part = this.part(event.key.replace(/\/end$/, ""));
    part.text.set(event.message.text);
    part.item.hidden = false;
  }

  modelFailed(event) {
    if (STOPPED.has(event.error)) return;
    this.retry({ part: event.key.replace(/\/end$/, "") });
    this.run.note(`The model call failed (${event.error}): ${event.message}`);
  }

  retry(event) {
    if (STOPPED.has(event.error)) return; // what was said until then stays
    this.run.planning.drop(event.part);
    this.parts.get(event.part)?.item.remove();
    this.parts.delete(event.part);
  }

  rejected(event) {
    this.retry({ part: event.key.replace(/\/(end|rejected)$/, "") });
    this.run.note(`The answer was turned down: ${event.reason}`);
  }

  /** The answer stands where it was streamed; where nothing was (a run without text deltas), it is added. */
  mark(text, cut) {
    if (!text) return;
    const parts = [...this.parts.values()].filter(({ text: { value } }) => value === text || (cut && value.startsWith(text)));
    const item = parts.length ? parts.at(-1).item : this.run.item("text", element("p", "text", text));
    item.classList.add("answer");
    item.setAttribute("aria-label", "Answer");
  }

  /** The last of a step, which often is its summary. */
  lastOf(step) {
    return [...this.parts.entries()].filter(([key]) => key.startsWith(`s${step}/`)).at(-1)?.[1];
  }
}
