// What a run asks people and what they tell it: questions, approvals, messages.

import { Approval, resolution } from "./approvals.js";
import { element, signInLink } from "./elements.js";

const DELIVERED = { round: "delivered to the next round", replan: "delivered to the look at the plan", final: "delivered for the answer" };

export class People {
  static EVENTS = {
    "question.asked": "asked", "question.answered": "questionAnswered", "tool.approval-requested": "approvalAsked",
    "tool.approval-resolved": "approvalResolved", "approval-mode.changed": "modeChanged", "message.queued": "messageQueued",
    "message.delivered": "messageDelivered", "message.undelivered": "messageUndelivered",
  };

  /** @param {Timeline} run */
  constructor(run) {
    this.run = run;
    this.questions = new Map();
    this.approvals = new Map();
    this.messages = new Map();
  }

  asked(event) {
    const id = `q-${event.question_id}`;
    const input = element("input", "");
    input.id = id;
    input.required = true;
    const label = element("label", "", event.question);
    label.htmlFor = id;
    const trouble = element("p", "bad");
    trouble.setAttribute("role", "alert");
    const form = element("form", "", ...signInLink(event), label, input, element("button", "", "Answer"), trouble);
    form.addEventListener("submit", async (submit) => {
      submit.preventDefault();
      trouble.textContent = await this.run.page.answer(event.question_id, input.value);
    });
    this.questions.set(event.question_id, this.run.item("question", form));
  }

  questionAnswered(event) {
    this.questions.get(event.question_id)?.remove();
    this.questions.delete(event.question_id);
    this.run.note(event.answer ? `Answered: ${event.answer}` : `The question was closed (${event.by}).`);
    this.run.say(this.run.doing);
  }

  async approvalAsked(event) {
    this.approvals.get(event.call_id)?.remove();
    const item = this.run.item("question");
    const level = this.run.heading;
    this.approvals.set(event.call_id, item);
    const whole = event.cut ? await this.run.page.whole(event.call_id) : null;
    if (event.cut && !whole) { // nobody decides on half of the arguments
      item.append(element("p", "text", "The arguments of this call are long and could not be read. Reload the page to decide."));
      return;
    }
    const decide = (body) => this.run.page.decide(event.call_id, body);
    item.append(new Approval(whole ? { ...event, arguments: whole.arguments } : event, decide, level).form);
  }

  approvalResolved(event) {
    const form = this.approvals.get(event.call_id);
    this.approvals.delete(event.call_id);
    form?.remove();
    if (form) this.run.note(resolution(event));
    this.run.say(this.run.doing);
  }

  modeChanged(event) {
    this.run.note(`From the next call on, the approval mode is ${event.mode}.`);
  }

  messageQueued(event) {
    const state = element("span", "quiet", "Message: queued");
    this.run.item("message", element("p", "text", event.text), state);
    this.messages.set(event.message_id, state);
  }

  messageDelivered(event) {
    const state = this.messages.get(event.message_id);
    if (state) state.textContent = `Message: ${DELIVERED[event.where] ?? `delivered (${event.where})`}`;
  }

  messageUndelivered(event) {
    const state = this.messages.get(event.message_id);
    if (!state) return;
    state.textContent = "Message: undelivered, the run ended first";
    state.className = "bad";
  }

  /** Nobody is asked any more. */
  close() {
    for (const form of [...this.questions.values(), ...this.approvals.values()]) form.remove();
  }
}
