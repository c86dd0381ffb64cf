// A plan as it forms and as it stands, its steps with the rounds below them, and what was decided after each.

import { element, Text } from "./elements.js";

const DECIDED = { continue: "The plan stands", revise: "The plan changes", finish: "The rest of the plan is left out" };
const UNASKED = { "clean-step": "The step went well: the plan stands.", "last-step": "That was the last step." };
const BECAUSE = { "user-message": "after a message", predicate: "a rule of the agent asked for a look" };
const STOPS = { max_steps: "it used up its rounds", budget: "the budget is used up", cancelled: "it was ended" };

/** Thought and steps while the planner writes them: they can still change. */
export class FormingPlan {
  constructor(part, item) {
    Object.assign(this, { part, item, thought: new Text("quiet text"), steps: element("ol", "") });
    item.append(heading("Plan", "forms…"), this.thought.element, this.steps);
  }

  hint(index, description) {
    while (this.steps.children.length <= index) this.steps.append(element("li", "quiet"));
    this.steps.children[index].textContent = description;
  }
}

/** @param {Element} item what it fills @param {number} first number of its first step */
export function showPlan(item, event, first) {
  const steps = element("ol", "", ...event.plan.steps.map(planned));
  steps.start = first;
  const state = event.fallback ? "the planner failed, so one step answers" : event.revision ? `revision ${event.revision}` : "";
  item.replaceChildren(heading("Plan", state));
  if (event.plan.thought) item.append(element("p", "quiet text", event.plan.thought));
  item.append(steps, ...warned(event.warnings));
}

function planned(step) {
  const about = [step.expected_outcome, step.suggested_tools.length ? `with ${step.suggested_tools.join(", ")}` : ""];
  const item = element("li", "", step.description);
  if (about.some(Boolean)) item.append(element("span", "quiet", ` ${about.filter(Boolean).join(" · ")}`));
  return item;
}

/** A step that was begun. What happens in it goes into its `entries`. */
export class Step {
  constructor(event, item) {
    this.number = event.step;
    this.entries = element("ol", "entries");
    this.state = element("span", "quiet", "works…");
    this.item = item;
    const title = element("h3", "", `Step ${event.step}: ${event.description} `, this.state);
    title.id = `step-${event.step}`;
    this.entries.setAttribute("aria-labelledby", title.id);
    item.append(title, this.entries);
  }

  /** @param {{item: Element, text: Text}|undefined} said the last text of the step, which often is the summary */
  completed(event, said) {
    const why = event.stop ? `: ${STOPS[event.stop] ?? event.stop}` : "";
    this.state.textContent = event.blocked ? `blocked${why}` : event.stop ? `done early${why}` : "done";
    this.state.className = event.blocked ? "bad" : "good";
    this.item.classList.toggle("blocked", event.blocked);
    const summary = event.summary.trim();
    if (!summary || summary === event.stop) return;
    let shown = said?.item;
    if (!shown || !said.text.value.trim().startsWith(summary)) {
      shown = element("li", "text", element("p", "text", summary));
      this.entries.append(shown);
    }
    shown.classList.add("summary");
    shown.setAttribute("aria-label", `Summary of step ${this.number}`);
  }
}

/** What was decided after a step, in one line. */
export function verdict(event) {
  if (event.stop) return `${DECIDED[event.mode] ?? event.mode}: the budget leaves no look at the plan.`;
  if (UNASKED[event.cause]) return UNASKED[event.cause];
  const about = [event.reason, BECAUSE[event.cause]];
  const line = [DECIDED[event.mode] ?? event.mode, about.filter(Boolean).join(", ")].filter(Boolean).join(": ");
  return [line, ...(event.warnings ?? [])].join(" · ");
}

function heading(title, state) {
  return element("h3", "", `${title} `, element("span", "quiet", state));
}

function warned(warnings) {
  return (warnings ?? []).map((warning) => element("p", "bad", `Warning: ${warning}`));
}
