// Elements of the page. What is put into one only ever becomes text.

export function element(name, kind, ...children) {
  const made = document.createElement(name);
  if (kind) made.className = kind.trim();
  made.append(...children);
  return made;
}

export function pretty(value) {
  return JSON.stringify(value, null, 2);
}

/** The way to a login, where a question is about one: a page of this origin, in a tab of its own. */
export function signInLink(event) {
  if (!event.url?.startsWith("/v1/mcp/connect/")) return [];
  const link = element("a", "", `Sign in to ${event.server}`);
  link.href = event.url;
  link.target = "_blank";
  link.rel = "noopener noreferrer";
  return [element("p", "", link)];
}

/** A text that grows. Offsets count characters as Python does: code points, not UTF-16 units. */
export class Text {
  constructor(kind) {
    this.element = element("p", kind);
    this.characters = [];
  }

  get value() {
    return this.characters.join("");
  }

  put(offset, delta) {
    const characters = Array.from(delta);
    if (offset > this.characters.length) return; // what is missing comes whole when the connection is made again
    const news = characters.slice(this.characters.length - offset);
    this.characters.push(...news);
    if (news.length) this.element.append(news.join(""));
  }

  set(text) {
    if (this.value === text) return;
    this.characters = Array.from(text);
    this.element.textContent = text;
  }
}
