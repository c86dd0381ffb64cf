// A call that waits for a person: its arguments in view and open to change, approve, deny. Nothing but buttons decides.

import { element, pretty } from "./elements.js";

const ENDS = {
  expiry: "Nobody decided in time, so the call was not made.",
  cancel: "The question was withdrawn.",
  rule: "A rule denied it.",
};

export class Approval {
  /** @param {object} event tool.approval-requested @param {(body: object) => Promise<string>} decide what it was refused with
   *  @param {string} level of its heading */
  constructor(event, decide, level = "h3") {
    this.event = event;
    this.decide = decide;
    const id = `a-${event.call_id}-${event.seq}`;
    this.original = pretty(event.arguments);
    this.arguments = labelled("textarea", `${id}-arguments`, "Arguments: change them, and the call is made with yours");
    this.arguments.field.value = this.original;
    this.arguments.field.rows = Math.min(12, this.original.split("\n").length + 1);
    this.arguments.field.spellcheck = false;
    this.reason = labelled("input", `${id}-reason`, "Reason (the agent reads it)");
    this.reason.field.maxLength = 1000;
    this.remember = element("input", "");
    this.remember.type = "checkbox";
    const always = element("label", "inline", this.remember, ` The same for every later call of ${event.name} in this run`);
    this.buttons = [this.button("Approve", true), this.button("Deny", false)];
    this.trouble = element("p", "bad");
    this.trouble.setAttribute("role", "alert");
    const title = element(level, "", `May ${event.name}${event.server ? ` of ${event.server}` : ""} run?`);
    title.id = `${id}-title`;
    const kind = event.read_only ? "It only reads." : "It may change something.";
    const again = event.cause ? " It was begun before, and nobody knows whether it happened." : "";
    const group = element("div", "bar-of-buttons", ...this.buttons);
    this.form = element("form", "", title, element("p", "quiet", kind + again), ...this.arguments.parts,
      ...this.reason.parts, always, group, this.trouble);
    this.form.setAttribute("aria-labelledby", title.id);
    this.form.addEventListener("submit", (submit) => submit.preventDefault()); // Enter in a field decides nothing
  }

  button(text, approved) {
    const made = element("button", "", text);
    made.type = "button";
    made.addEventListener("click", () => this.send(approved));
    return made;
  }

  async send(approved) {
    const body = { approved, arguments_hash: this.event.arguments_hash };
    if (this.reason.field.value.trim()) body.reason = this.reason.field.value.trim();
    if (this.remember.checked) body.remember = true;
    if (approved && this.arguments.field.value !== this.original) {
      try {
        body.arguments = JSON.parse(this.arguments.field.value);
      } catch (error) {
        this.say(`The arguments are no JSON: ${error.message}`);
        this.arguments.field.focus();
        return;
      }
    }
    this.enable(false);
    this.say(await this.decide(body));
    this.enable(true);
  }

  say(text) {
    this.trouble.textContent = text;
  }

  enable(on) {
    for (const button of this.buttons) button.disabled = !on;
  }
}

/** What became of it, in a sentence. */
export function resolution(event) {
  const because = event.reason ? `: ${event.reason}` : "";
  if (event.approved) return `${event.name} was approved${event.arguments ? " with other arguments" : ""}${because}`;
  return ENDS[event.by] ?? `${event.name} was denied${because}`;
}

function labelled(kind, id, text) {
  const field = element(kind, "");
  field.id = id;
  const label = element("label", "", text);
  label.htmlFor = id;
  return { field, parts: [label, field] };
}
