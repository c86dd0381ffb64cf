// A word to a run that works, and the end of its open step. What became of a message stands in the timeline.

/**
 * @param {{form: Element, text: Element, send: Element, trouble: Element, endStep: Element, fallback: Element}} page
 *   `fallback` gets the focus of what is hidden
 * @param {(path: string, body: object) => Promise<string>} command sends it to the run on show; what it was refused with
 * @param {(problem: string) => void} tell why the step was not ended
 */
export class Steering {
  constructor(page, command, tell, newKey) {
    Object.assign(this, page, { command, tell, newKey, id: newKey(), run: 0 });
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.say(); });
    this.text.addEventListener("input", () => { this.id = newKey(); }); // sent again after a lost answer, it is the same message
    this.text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.form.requestSubmit();
    });
    this.endStep.addEventListener("click", () => this.end());
  }

  /** Another run is on show. */
  reset() {
    this.run += 1;
    this.id = this.newKey();
    this.send.disabled = false;
    this.text.value = this.trouble.textContent = "";
    this.show({ working: false, step: null });
  }

  /** @param {{working: boolean, step: {number: number, ending: boolean}|null}} state of the run on show */
  show({ working, step }) {
    const open = working && step !== null;
    if (this.form.hidden === working) this.keepFocus(this.form, !working);
    if (this.endStep.hidden === open) this.keepFocus(this.endStep, !open);
    this.form.hidden = !working;
    this.endStep.hidden = !open;
    this.endStep.disabled = open && step.ending;
    if (open) this.endStep.textContent = `End step ${step.number}`;
  }

  /** What is hidden under the hands of a keyboard user gives the focus on. */
  keepFocus(element, hides) {
    if (hides && element.contains(document.activeElement)) this.fallback.focus({ preventScroll: true });
  }

  async say() {
    const text = this.text.value;
    if (!text.trim() || this.send.disabled) return;
    this.send.disabled = true;
    this.trouble.textContent = "";
    const { id, run } = this;
    const problem = await this.command("/messages", { text, id });
    if (this.run !== run) return; // another one is on show
    this.send.disabled = false;
    this.trouble.textContent = problem;
    if (problem || this.id !== id) return;
    this.text.value = "";
    this.id = this.newKey();
  }

  async end() {
    this.endStep.disabled = true;
    const { run } = this;
    const problem = await this.command("/steps/current/cancel", {});
    if (!problem || this.run !== run) return;
    this.tell(problem);
    this.endStep.disabled = false;
  }
}
