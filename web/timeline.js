// A run on the page: each event goes to what shows it; here is how the run stands, and where the next entry goes.

import { Calls } from "./calls.js";
import { element } from "./elements.js";
import { People } from "./people.js";
import { Planning } from "./planning.js";
import { Said } from "./said.js";

const WAITING = { answer: "an answer", retry: "the model's provider", approval: "an approval", subagent: "a subagent", authorization: "a login" };
const DOING = { plan: "Planning…", replan: "Looking at the plan again…", final: "Writing the answer…" };

export class Timeline {
  static EVENTS = {
    "run.created": "created", "run.started": "started", "run.resumed": "started", "run.waiting": "waiting",
    "run.completed": "completed", "run.cancelled": "cancelled", "run.failed": "failed", usage: "usageSoFar",
    "model.requested": "requested", "cancel.requested": "cancelAsked", handoff: "handoff", "budget.exceeded": "budget",
    "egress.request": "egress", fault: "fault",
  };

  /** @param {{list: Element, log: Element, status: Element, about: Element, usage: Element, answer: Function, decide: Function, stop: Function, whole: Function, changed: Function}} page */
  constructor(page) {
    this.page = page;
    this.ended = false;
    this.doing = "Working…";
    this.entries = page.list; // where the next item goes: the run's, or the open step's
    this.said = new Said(this);
    this.planning = new Planning(this);
    this.calls = new Calls(this);
    this.people = new People(this);
    this.handlers = new Map([this, this.said, this.planning, this.calls, this.people].flatMap(handlersOf));
    page.list.replaceChildren();
    page.about.textContent = page.usage.textContent = "";
    this.say("Starting…");
  }

  /** The step that is open. */
  get step() {
    return this.planning.step;
  }

  /** The level of an entry's heading. */
  get heading() {
    return this.step ? "h4" : "h3";
  }

  take(event) {
    const follows = this.below() < 80; // the end of the run is in view, or nearly
    this.handlers.get(event.type)?.(event);
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

  // -- how it stands
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
    this.said.mark(event.text, event.cut !== undefined);
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
    this.planning.drop();
    this.tokens(event.usage);
    this.people.close();
  }

  usageSoFar(event) {
    if (event.phase === "subagent") this.calls.subagentUses(event);
    else this.tokens(event.usage);
  }

  tokens(usage) {
    this.page.usage.textContent = `${usage.input ?? 0} tokens in, ${usage.output ?? 0} out`;
  }

  // -- entries
  handoff(event) {
    this.note(`${event.from} hands over to ${event.to}${event.reason ? `: ${event.reason}` : "."}`);
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

function handlersOf(part) {
  return Object.entries(part.constructor.EVENTS).map(([type, method]) => [type, (event) => part[method](event)]);
}
