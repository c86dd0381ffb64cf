// The list of runs, newest first: each is a link to its address on this page.

/**
 * @param {{section: Element, list: Element, older: Element}} page where it is shown
 * @param {() => object} headers of a request
 */
export class RunList {
  constructor({ section, list, older }, headers) {
    Object.assign(this, { section, list, older, headers, cursor: undefined, current: "" });
    older.addEventListener("click", () => this.load(this.cursor));
  }

  /** Shows the newest again; where the list may not be read, it is not there. */
  refresh() {
    return this.load(undefined);
  }

  async load(cursor) {
    const asked = new URLSearchParams({ limit: "10", ...(cursor && { cursor }) });
    try {
      const answer = await fetch(`/v1/runs?${asked}`, { headers: this.headers(), cache: "no-store" });
      if (!answer.ok) { this.section.hidden = answer.status < 500; return; }
      this.take(await answer.json(), cursor !== undefined);
    } catch { /* what is shown stays until the server is back */ }
  }

  take({ runs, cursor }, more) {
    if (!more) this.list.replaceChildren();
    this.list.append(...runs.map(shown));
    this.cursor = cursor;
    this.older.hidden = !cursor;
    this.section.hidden = !this.list.children.length;
    this.mark(this.current);
  }

  /** The run that is on show. */
  mark(id) {
    this.current = id;
    for (const link of this.list.querySelectorAll("a")) {
      if (link.hash === `#${id}`) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }
}

function shown(run) {
  const link = document.createElement("a");
  link.href = `#${run.run_id}`;
  link.textContent = run.title;
  const about = document.createElement("span");
  about.className = "quiet";
  about.textContent = `${run.status} · ${run.agent} · ${new Date(run.created_at).toLocaleString()}`;
  const item = document.createElement("li");
  item.append(link, about);
  return item;
}
