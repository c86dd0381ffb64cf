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
