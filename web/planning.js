// The plan of a run and its steps, as they come: one that forms, one that stands, the step that is open.

import { FormingPlan, showPlan, Step, verdict } from "./plan.js";

export class Planning {
  static EVENTS = {
    "plan.thought-delta": "thoughtDelta", "plan.step-added": "stepHint", "plan.created": "plan", "plan.revised": "plan",
    "step.started": "stepStarted", "step.completed": "stepCompleted", "replan.decision": "decided",
    "revisions.exceeded": "revisionsExceeded",
  };

  /** @param {Timeline} run */
  constructor(run) {
    this.run = run;
    this.draft = this.step = null; // a plan that forms, a step that is open
    this.steps = 0; // so many were begun
  }

  forming(event) {
    if (this.draft?.part !== event.part) {
      this.drop();
      this.draft = new FormingPlan(event.part, this.run.item("plan"));
    }
    return this.draft;
  }

  thoughtDelta(event) {
    this.forming(event).thought.put(event.offset, event.delta);
  }

  stepHint(event) {
    this.forming(event).hint(event.index, event.step);
  }

  /** The plan that forms is none; with a `part`, where it is of that one. */
  drop(part) {
    if (part && this.draft?.part !== part) return;
    this.draft?.item.remove();
    this.draft = null;
  }

  plan(event) {
    const item = this.draft?.item ?? this.run.item("plan");
    this.draft = null;
    showPlan(item, event, this.steps + 1);
  }

  stepStarted(event) {
    this.drop();
    this.steps = event.step;
    this.step = new Step(event, this.run.item("step"));
    this.run.entries = this.step.entries;
    this.run.doing = `Working on step ${event.step}…`;
    this.run.say(this.run.doing);
  }

  stepCompleted(event) {
    if (this.step?.number === event.step) this.step.completed(event, this.run.said.lastOf(event.step));
    this.step = null;
    this.run.entries = this.run.page.list;
    this.run.doing = "Working…";
  }

  decided(event) {
    this.drop();
    this.run.note(verdict(event));
  }

  revisionsExceeded(event) {
    this.run.note(`The plan was revised ${event.cap} times, as often as it may be; the answer is next.`);
  }
}
