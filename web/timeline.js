// What a run's events look like. Text is put together by part and offset, so that nothing stands twice after a reconnect.

import { Approval, resolution } from "./approvals.js";
import { element, pretty, signInLink, Text } from "./elements.js";
import { FormingPlan, showPlan, Step, verdict } from "./plan.js";
import { Subagent } from "./subagents.js";

const WAITING = { answer: "an answer", retry: "the model's provider", approval: "an approval", subagent: "a subagent", authorization: "a login" };
const DOING = { plan: "Planning…", replan: "Looking at the plan again…", final: "Writing the answer…" };
const DELIVERED = { round: "delivered to the next round", replan: "delivered to the look at the plan", final: "delivered for the answer" };
const STOPPED = new Set(["cancelled", "run-ended"]);

export class Timeline {
  /** @param {{list: Element, log: Element, status: Element, about: Element, usage: Element, answer: Function, decide: Function, stop: Function, whole: Function, changed: Function}} page */
  constructor(page) {
    this.page = page;
    this.parts = new Map();
    this.calls = new Map();
    this.subagents = new Map();
    this.questions = new Map();
    this.approvals = new Map();
    this.messages = new Map();
    this.ended = false;
    this.planning = this.step = null; // a plan that forms, a step that is open
    this.steps = 0; // so many were begun
    this.doing = "Working…";
    this.entries = page.list; // where the next item goes: the run's, or the open step's
    page.list.replaceChildren();
    page.about.textContent = page.usage.textContent = "";
    this.say("Starting…");
  }

  take(event) {
    const follows = this.below() < 80; // the end of the run is in view, or nearly
    this[HANDLERS[event.type]]?.(event);
    this.page.log.setAttribute("aria-busy", String(!this.ended));
    this.page.changed();
    if (follows) window.scrollBy({ top: Math.max(0, this.below()) });
  }

  /** So many pixels the end of the run is below the window. */
  below() {
    return this.page.log.closest("section").getBoundingClientRect().bottom - window.innerHeight;
  }

  /** The run cannot be followed any more. */
  lost(reason) {
    this.say(reason, "bad");
    this.page.log.setAttribute("aria-busy", "false");
  }

  say(text, kind = "") {
    if (this.page.status.textContent !== text) this.page.status.textContent = text;
    this.page.status.className = kind;
  }

  // -- the run
  created(event) {
    this.page.about.textContent = `${event.input.slice(0, 300)} · ${event.agent_name} · ${event.models.join(", ")}`;
  }

  started() {
    this.ended = false;
    this.entries = this.step?.entries ?? this.page.list;
    this.say(this.doing);
  }

  requested(event) {
    this.doing = DOING[event.stage] ?? (this.step ? `Working on step ${this.step.number}…` : "Working…");
    this.say(this.doing);
  }

  cancelAsked(event) {
    if (!event.step) return this.say("Cancelling…");
    if (this.step) this.step.ending = true;
    this.note(`Step ${event.step.slice(1)} is to end${event.reason ? `: ${event.reason}` : "."}`);
  }

  waiting(event) {
    const what = event.for.map((reason) => WAITING[reason] ?? reason).join(" and ");
    const until = event.until ? `, until ${new Date(event.until).toLocaleString()}` : "";
    this.say(`Waiting for ${what}${until}.`);
  }

  completed(event) {
    const cut = { max_steps: "it used up its rounds", max_tokens: "the answer was cut off", budget: "it used up its budget" };
    this.say(event.stop_reason === "stop" ? "Done." : `Done, but ${cut[event.stop_reason] ?? event.stop_reason}.`, "good");
    this.end(event);
    this.mark(event.text, event.cut !== undefined);
  }

  cancelled(event) {
    this.say("Cancelled.");
    this.end(event);
  }

  failed(event) {
    this.say(`Failed: ${event.error.message}`, "bad");
    this.end(event);
    this.note(event.error.remedy, "bad");
  }

  end(event) {
    this.ended = true;
    this.entries = this.page.list;
    this.dropPlan();
    this.tokens(event.usage);
    for (const form of [...this.questions.values(), ...this.approvals.values()]) form.remove();
  }

  usageSoFar(event) {
    if (event.phase === "subagent") this.subagents.get(event.call_id)?.uses(event.usage);
    else this.tokens(event.usage);
  }

  tokens(usage) {
    this.page.usage.textContent = `${usage.input ?? 0} tokens in, ${usage.output ?? 0} out`;
  }

  /** The answer stands where it was streamed; where nothing was (a run without text deltas), it is added. */
  mark(text, cut) {
    if (!text) return;
    const parts = [...this.parts.values()].filter(({ text: { value } }) => value === text || (cut && value.startsWith(text)));
    const item = parts.length ? parts.at(-1).item : this.item("text", element("p", "text", text));
    item.classList.add("answer");
    item.setAttribute("aria-label", "Answer");
  }

  // -- the model
  part(key) {
    let part = this.parts.get(key);
    if (!part) {
      const thoughts = element("details", "", element("summary", "", "Thoughts"));
      part = { text: new Text("text"), thoughts: new Text("quiet text"), item: null };
      thoughts.append(part.thoughts.element);
      thoughts.hidden = true;
      part.fold = thoughts;
      part.item = this.item("text", thoughts, part.text.element);
      part.item.hidden = true;
      this.parts.set(key, part);
    }
    return part;
  }

  textDelta(event) {
    this.say(this.doing);
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
    this.say(this.doing);
    if (!event.message.text || event.cut || event.stage === "plan" || event.stage === "replan") return; // those are JSON
    const part = this.part(event.key.replace(/\/end$/, ""));
    part.text.set(event.message.text);
    part.item.hidden = false;
  }

  modelFailed(event) {
    if (STOPPED.has(event.error)) return;
    this.retry({ part: event.key.replace(/\/end$/, "") });
    this.note(`The model call failed (${event.error}): ${event.message}`);
  }

  retry(event) {
    if (STOPPED.has(event.error)) return; // what was said until then stays
    if (this.planning?.part === event.part) this.dropPlan();
    this.parts.get(event.part)?.item.remove();
    this.parts.delete(event.part);
  }

  rejected(event) {
    this.retry({ part: event.key.replace(/\/(end|rejected)$/, "") });
    this.note(`The answer was turned down: ${event.reason}`);
  }

  // -- the plan
  forming(event) {
    if (this.planning?.part !== event.part) {
      this.dropPlan();
      this.planning = new FormingPlan(event.part, this.item("plan"));
    }
    return this.planning;
  }

  thoughtDelta(event) {
    this.forming(event).thought.put(event.offset, event.delta);
  }

  stepHint(event) {
    this.forming(event).hint(event.index, event.step);
  }

  dropPlan() {
    this.planning?.item.remove();
    this.planning = null;
  }

  plan(event) {
    const item = this.planning?.item ?? this.item("plan");
    this.planning = null;
    showPlan(item, event, this.steps + 1);
  }

  stepStarted(event) {
    this.dropPlan();
    this.steps = event.step;
    this.step = new Step(event, this.item("step"));
    this.entries = this.step.entries;
    this.doing = `Working on step ${event.step}…`;
    this.say(this.doing);
  }

  stepCompleted(event) {
    const said = [...this.parts.entries()].filter(([key]) => key.startsWith(`s${event.step}/`)).at(-1)?.[1];
    if (this.step?.number === event.step) this.step.completed(event, said);
    this.step = null;
    this.entries = this.page.list;
    this.doing = "Working…";
  }

  decided(event) {
    this.dropPlan();
    this.note(verdict(event));
  }

  revisionsExceeded(event) {
    this.note(`The plan was revised ${event.cap} times, as often as it may be; the answer is next.`);
  }

  handoff(event) {
    this.note(`${event.from} hands over to ${event.to}${event.reason ? `: ${event.reason}` : "."}`);
  }

  // -- tools
  call(event) {
    let call = this.calls.get(event.call_id);
    if (!call) {
      call = { state: element("span", "quiet", ""), rest: element("div", "") };
      call.item = this.item("tool", element(this.step ? "h4" : "h3", "", `${event.name} `, call.state), call.rest);
      this.calls.set(event.call_id, call);
    }
    return call;
  }

  called(event) {
    const call = this.call(event);
    call.state.textContent = "runs…";
    call.rest.replaceChildren(block("Arguments", pretty(event.arguments), true));
    this.say(`Using ${event.name}…`);
  }

  progress(event) {
    const done = event.total ? `${Math.round((100 * event.progress) / event.total)} %` : event.progress;
    const call = this.calls.get(event.call_id);
    if (call) call.state.textContent = `${done}${event.message ? `: ${event.message}` : ""}`;
  }

  result(event) {
    const files = (event.files ?? []).map((file) => `${file.name} (${file.media_type}, ${file.bytes} bytes)`);
    this.outcome(event, event.ok ? "done" : "failed", event.output || (files.length ? "" : "(nothing)"), event.ok);
    if (files.length) this.call(event).rest.append(block("Files", files.join("\n"), false));
  }

  unknown(event) {
    this.outcome(event, `outcome unknown (${event.cause})`, event.message, false);
  }

  refusedCall(event) {
    this.outcome(event, `not run (${event.reason})`, event.message, false);
  }

  outcome(event, state, text, ok) {
    const call = this.call(event);
    call.state.textContent = state;
    call.item.classList.toggle("bad", !ok);
    if (text) call.rest.append(block("Result", text, text.length < 600));
    this.say(this.doing);
  }

  // -- subagents
  subagentStarted(event) {
    const call = this.call(event);
    call.state.textContent = "works on it…";
    this.subagents.set(event.call_id, new Subagent(event, call.rest, () => this.page.stop(event.call_id)));
  }

  subagentEvent(event) {
    this.subagents.get(event.call_id)?.take(event.event);
  }

  subagentCompleted(event) {
    this.subagents.get(event.call_id)?.ended();
    this.outcome(event, "done", event.text, true);
  }

  subagentFailed(event) {
    this.subagents.get(event.call_id)?.ended();
    this.outcome(event, event.stopped ? "stopped" : "failed", event.error, false);
  }

  // -- people
  asked(event) {
    const id = `q-${this.questions.size}`;
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
      trouble.textContent = await this.page.answer(event.question_id, input.value);
    });
    this.questions.set(event.question_id, this.item("question", form));
  }

  questionAnswered(event) {
    this.questions.get(event.question_id)?.remove();
    this.questions.delete(event.question_id);
    this.note(event.answer ? `Answered: ${event.answer}` : `The question was closed (${event.by}).`);
    this.say(this.doing);
  }

  async approvalAsked(event) {
    this.approvals.get(event.call_id)?.remove();
    const item = this.item("question");
    const level = this.step ? "h4" : "h3";
    this.approvals.set(event.call_id, item);
    const whole = event.cut ? await this.page.whole(event.call_id) : null;
    if (event.cut && !whole) { // nobody decides on half of the arguments
      item.append(element("p", "text", "The arguments of this call are long and could not be read. Reload the page to decide."));
      return;
    }
    const decide = (body) => this.page.decide(event.call_id, body);
    item.append(new Approval(whole ? { ...event, arguments: whole.arguments } : event, decide, level).form);
  }

  approvalResolved(event) {
    const form = this.approvals.get(event.call_id);
    this.approvals.delete(event.call_id);
    form?.remove();
    if (form) this.note(resolution(event));
    this.say(this.doing);
  }

  messageQueued(event) {
    const state = element("span", "quiet", "Message: queued");
    this.item("message", element("p", "text", event.text), state);
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

  modeChanged(event) {
    this.note(`From the next call on, the approval mode is ${event.mode}.`);
  }

  budget(event) {
    this.note(`The cap on ${event.kind} is used up: ${event.used} of ${event.cap}.`);
  }

  fault(event) {
    this.note(event.message, event.action === "failed" ? "bad" : "");
  }

  egress(event) {
    const came = event.status ?? event.reason;
    this.note(`${event.method} ${event.url}: ${event.allowed ? came : `refused, ${came}`}`, event.allowed ? "" : "bad");
  }

  note(text, kind = "") {
    this.item(`note ${kind}`, text);
  }

  item(kind, ...children) {
    const item = element("li", kind, ...children);
    this.entries.append(item);
    return item;
  }
}

function block(title, text, open) {
  const content = element("pre", "", text);
  content.tabIndex = 0;
  content.setAttribute("aria-label", title);
  const details = element("details", "", element("summary", "", title), content);
  details.open = open;
  return details;
}

const HANDLERS = {
  "run.created": "created", "run.started": "started", "run.resumed": "started", "run.waiting": "waiting",
  "run.completed": "completed", "run.cancelled": "cancelled", "run.failed": "failed", usage: "usageSoFar",
  "step.text-delta": "textDelta", "step.reasoning-delta": "reasoningDelta", "model.answered": "answered",
  "model.failed": "modelFailed", "model.rejected": "rejected", retry: "retry",
  "tool.called": "called", "tool.progress": "progress", "tool.result": "result", "tool.unknown": "unknown",
  "subagent.started": "subagentStarted", "subagent.event": "subagentEvent",
  "subagent.completed": "subagentCompleted", "subagent.failed": "subagentFailed",
  "tool.rejected": "refusedCall", "question.asked": "asked", "question.answered": "questionAnswered",
  "tool.approval-requested": "approvalAsked", "tool.approval-resolved": "approvalResolved",
  "approval-mode.changed": "modeChanged",
  "model.requested": "requested", "cancel.requested": "cancelAsked",
  "plan.thought-delta": "thoughtDelta", "plan.step-added": "stepHint", "plan.created": "plan", "plan.revised": "plan",
  "step.started": "stepStarted", "step.completed": "stepCompleted", "replan.decision": "decided",
  "revisions.exceeded": "revisionsExceeded", "final.text-delta": "textDelta", "final.reasoning-delta": "reasoningDelta",
  "message.queued": "messageQueued", "message.delivered": "messageDelivered", "message.undelivered": "messageUndelivered",
  handoff: "handoff",
  "budget.exceeded": "budget", "egress.request": "egress", fault: "fault",
};
