// A word to a run that works, and the end of its open step. What became of a message stands in the timeline.

/**
 * @param {{form: Element, text: Element, send: Element, trouble: Element, endStep: Element, fallback: Element}} page
 * @param {(path: string, body: object) => Promise<string>} command sends it to the run on show; what it was refused with
 */
export class Steering {
  constructor(page, command, newKey) {
    Object.assign(this, page, { command, newKey, id: newKey() });
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.say(); });
    this.text.addEventListener("input", () => { this.id = newKey(); }); // sent again after a lost answer, it is the same message
    this.text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.form.requestSubmit();
    });
    this.endStep.addEventListener("click", () => this.end());
  }

  /** Another run is on show. */
  reset() {
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
    const id = this.id;
    const problem = await this.command("/messages", { text, id });
    this.send.disabled = false;
    this.trouble.textContent = problem;
    if (problem || this.id !== id) return;
    this.text.value = "";
    this.id = this.newKey();
  }

  async end() {
    this.endStep.disabled = true;
    this.trouble.textContent = await this.command("/steps/current/cancel", {});
    if (this.trouble.textContent) this.endStep.disabled = false;
  }
}
