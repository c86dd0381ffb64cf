// The calls of a run: what each was made with, how it goes, what came of it; below one, the subagent it has started.

import { element, pretty } from "./elements.js";
import { Subagent } from "./subagents.js";

export class Calls {
  static EVENTS = {
    "tool.called": "called", "tool.progress": "progress", "tool.result": "result", "tool.unknown": "unknown",
    "tool.rejected": "refusedCall", "subagent.started": "subagentStarted", "subagent.event": "subagentEvent",
    "subagent.completed": "subagentCompleted", "subagent.failed": "subagentFailed",
  };

  /** @param {Timeline} run */
  constructor(run) {
    this.run = run;
    this.calls = new Map();
    this.subagents = new Map();
  }

  call(event) {
    let call = this.calls.get(event.call_id);
    if (!call) {
      call = { state: element("span", "quiet", ""), rest: element("div", "") };
      call.item = this.run.item("tool", element(this.run.heading, "", `${event.name} `, call.state), call.rest);
      this.calls.set(event.call_id, call);
    }
    return call;
  }

  called(event) {
    const call = this.call(event);
    call.state.textContent = "runs…";
    call.rest.replaceChildren(block("Arguments", pretty(event.arguments), true));
    this.run.say(`Using ${event.name}…`);
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
    this.run.say(this.run.doing);
  }

  subagentStarted(event) {
    const call = this.call(event);
    call.state.textContent = "works on it…";
    this.subagents.set(event.call_id, new Subagent(event, call.rest, () => this.run.page.stop(event.call_id)));
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

  /** A subagent has used so much so far. */
  subagentUses(event) {
    this.subagents.get(event.call_id)?.uses(event.usage);
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
