// Shows /openapi.json: every operation with its parameters, bodies and answers, and every schema.

const $ = (id) => document.getElementById(id);

try {
  const answer = await fetch("/openapi.json");
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  showAll(await answer.json());
} catch (error) {
  $("about").textContent = `/openapi.json could not be read: ${error.message}`;
  $("about").className = "bad";
}

function showAll(description) {
  $("about").replaceChildren(element("span", "", `${description.info.description} `), link("/openapi.json", "OpenAPI 3.1, as JSON"));
  const contents = element("ul", "");
  for (const [path, item] of Object.entries(description.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      const name = `${method.toUpperCase()} ${path}`;
      contents.append(element("li", "", link(`#${operation.operationId}`, name), ` ${operation.summary}`));
      $("operations").append(shownOperation(name, operation));
    }
  }
  $("contents").append(contents);
  $("schemas-title").hidden = false;
  const schemas = Object.entries(description.components.schemas).sort(([a], [b]) => a.localeCompare(b));
  $("schemas").append(...schemas.map(([name, schema]) => shownSchema(name, schema)));
  document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

function shownOperation(name, operation) {
  const shown = element("section", "", element("h2", "", element("code", "", name)), element("p", "", operation.description ?? ""));
  shown.id = operation.operationId;
  if (operation.parameters) {
    shown.append(table("Parameters", operation.parameters.map((parameter) => [
      element("code", "", parameter.name),
      `${parameter.in}${parameter.required ? ", required" : ""}`,
      typeOf(parameter.schema),
      parameter.description ?? parameter.schema.description ?? "",
    ])));
  }
  if (operation.requestBody) {
    shown.append(table("Body", bodies(operation.requestBody.required ? "required" : "may be absent", operation.requestBody.content)));
  }
  const answers = Object.entries(operation.responses).flatMap(([status, response]) =>
    bodies(`${status} ${response.description}`, response.content ?? { "": {} }));
  shown.append(table("Answers", answers));
  return shown;
}

function bodies(what, content) {
  return Object.entries(content).map(([type, { schema }]) => [what, type, schema ? typeOf(schema) : ""]);
}

function shownSchema(name, schema) {
  const summary = element("summary", "", element("code", "", name));
  const shown = element("details", "", summary);
  shown.id = `schema-${name}`;
  if (schema.description) shown.append(element("p", "quiet", schema.description));
  const fields = Object.entries(schema.properties ?? {}).map(([field, inner]) => [
    element("code", "", field),
    typeOf(inner),
    [schema.required?.includes(field) ? "required" : "", inner.description ?? ""].filter(Boolean).join(": "),
  ]);
  shown.append(fields.length ? table(`Fields of ${name}`, fields) : element("p", "", typeOf(schema)));
  return shown;
}

/** A short name for a schema, with links to those it refers to. */
function typeOf(schema) {
  const made = document.createDocumentFragment();
  if (schema.$ref) made.append(reference(schema.$ref));
  else if (schema.anyOf ?? schema.oneOf) made.append(...joined((schema.anyOf ?? schema.oneOf).map(typeOf), " or "));
  else if (schema.allOf) made.append(...joined(schema.allOf.map(typeOf), " with "));
  else if (schema.enum) made.append(schema.enum.map((value) => JSON.stringify(value)).join(" or "));
  else if ("const" in schema) made.append(JSON.stringify(schema.const));
  else if (schema.type === "array") made.append("array of ", schema.items ? typeOf(schema.items) : "anything");
  else made.append(schema.format ?? schema.type ?? "anything");
  return made;
}

function reference(target) {
  const name = target.split("/").pop();
  const made = link(`#schema-${name}`, name);
  made.addEventListener("click", () => { $(`schema-${name}`).open = true; });
  return made;
}

function joined(parts, between) {
  return parts.flatMap((part, index) => (index ? [between, part] : [part]));
}

function table(caption, rows) {
  const made = element("table", "", element("caption", "quiet", caption));
  for (const cells of rows) made.append(element("tr", "", ...cells.map((cell) => element("td", "", cell))));
  return made;
}

function link(target, text) {
  const made = element("a", "", text);
  made.href = target;
  return made;
}

function element(name, kind, ...children) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  made.append(...children);
  return made;
}
