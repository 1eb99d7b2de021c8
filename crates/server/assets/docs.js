// Draws /openapi.json. Text from the document only ever becomes text: nothing here parses HTML.
import { copyButtons, curl, resolve } from "/assets/example.js";

const METHODS = ["get", "post", "put", "patch", "delete"];
let api = {};

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// Descriptions are Markdown; code spans and paragraphs are all that is used.
function prose(text) {
  return (text ?? "").split(/\n{2,}/).filter(Boolean).map((paragraph) =>
    element("p", {}, ...paragraph.split("`").map((part, n) => (n % 2 ? element("code", { textContent: part }) : part))));
}

function typeOf(schema) {
  if (!schema) return "";
  if (schema.$ref) {
    const name = schema.$ref.split("/").pop();
    return element("a", { href: `#schema-${name}`, textContent: name });
  }
  const options = schema.oneOf ?? schema.anyOf ?? schema.allOf;
  if (options) {
    const parts = options.flatMap((option, n) => (n ? [" | ", typeOf(option)] : [typeOf(option)]));
    return element("span", {}, ...parts);
  }
  const name = [schema.type ?? "any"].flat().join(" | ");
  if (name.includes("array")) return element("span", {}, "list of ", typeOf(schema.items) || "any");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const bounds = [
    schema.format,
    schema.minimum !== undefined ? `≥ ${schema.minimum}` : null,
    schema.maximum !== undefined ? `≤ ${schema.maximum}` : null,
    schema.maxLength !== undefined ? `at most ${schema.maxLength} characters` : null,
    schema.default !== undefined && schema.default !== null ? `default ${JSON.stringify(schema.default)}` : null,
  ].filter(Boolean);
  return bounds.length ? `${name} (${bounds.join(", ")})` : name;
}

function row(name, note, schema, description) {
  return element("tr", {},
    element("td", {}, element("code", { textContent: name }), element("span", { className: "soft", textContent: note })),
    element("td", {}, typeOf(schema), ...prose(description)));
}

function table(rows) {
  return rows.length ? element("table", {}, element("tbody", {}, ...rows)) : null;
}

function fields(schema) {
  const parts = schema.allOf?.map((part) => resolve(api, part)) ?? [schema];
  return parts.flatMap((part) => Object.entries(part.properties ?? {}).map(([name, property]) =>
    row(name, part.required?.includes(name) ? "" : " optional", property, property.description)));
}

function section(title, ...content) {
  const shown = content.filter(Boolean);
  return shown.length ? [element("h3", { textContent: title }), ...shown] : [];
}

function operationView(method, path, operation) {
  const parameters = (operation.parameters ?? []).map((parameter) => resolve(api, parameter));
  const body = resolve(api, operation.requestBody);
  const sent = Object.entries(body.content ?? {}).map(([kind, media]) => row(kind, "", media.schema, body.description));
  const sentFields = table(fields(resolve(api, body.content?.["application/json"]?.schema)));
  const answers = Object.entries(operation.responses ?? {}).map(([status, response]) => {
    const found = resolve(api, response);
    const [kind, media] = Object.entries(found.content ?? {})[0] ?? ["", {}];
    return row(status, kind ? ` ${kind}` : "", media.schema, found.description);
  });
  const inside = element("div", { className: "inside" },
    ...prose(operation.description),
    operation.security ? element("p", { className: "soft", textContent: "Needs a credential: AUTH=$(greenroom auth header) on the server's machine, or AUTH='Authorization: Bearer grm_…' with a token." }) : null,
    element("div", { className: "copyable" }, element("pre", { textContent: curl(api, method, path, operation) })),
    ...section("Parameters", table(parameters.map((parameter) =>
      row(parameter.name, ` ${parameter.in}${parameter.required ? "" : ", optional"}`, parameter.schema, parameter.description)))),
    ...section("Body", table(sent), sentFields),
    ...section("Answers", table(answers)));
  const summary = element("summary", {},
    element("span", { className: "method", textContent: method.toUpperCase() }),
    element("span", { className: "path", textContent: path }),
    element("span", { className: "title", textContent: operation.summary ?? "" }));
  const view = element("details", { id: `operation-${operation.operationId ?? method + path}` }, summary, inside);
  view.dataset.text = [method, path, operation.summary, operation.description, operation.operationId].join(" ").toLowerCase();
  return view;
}

function drawOperations(root) {
  const groups = new Map();
  for (const [path, item] of Object.entries(api.paths ?? {})) {
    for (const method of METHODS.filter((name) => item[name])) {
      const group = item[method].tags?.[0] ?? "other";
      groups.set(group, [...(groups.get(group) ?? []), operationView(method, path, item[method])]);
    }
  }
  // What keeps the server running comes last.
  const names = [...groups.keys()].sort((a, b) => (a === "server") - (b === "server") || a.localeCompare(b));
  for (const name of names) root.append(element("section", {}, element("h2", { textContent: name }), ...groups.get(name)));
}

function drawSchemas(root) {
  for (const [name, schema] of Object.entries(api.components?.schemas ?? {})) {
    const rows = fields(schema);
    root.append(element("details", { id: `schema-${name}` },
      element("summary", { className: "path", textContent: name }),
      element("div", { className: "inside" }, ...prose(schema.description), table(rows) ?? element("p", {}, typeOf(schema)))));
  }
}

function openTarget() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target?.tagName === "DETAILS") {
    target.open = true;
    target.scrollIntoView();
  }
}

function filter(words) {
  for (const group of document.querySelectorAll("#operations section")) {
    const views = [...group.querySelectorAll("details")];
    for (const view of views) view.hidden = !words.every((word) => view.dataset.text.includes(word));
    group.hidden = views.every((view) => view.hidden);
  }
}

const response = await fetch("/openapi.json");
api = await response.json();
document.getElementById("title").textContent = `${api.info.title} API ${api.info.version}`;
document.getElementById("about").replaceChildren(...prose(api.info.description).flatMap((paragraph) => [...paragraph.childNodes]));
drawOperations(document.getElementById("operations"));
drawSchemas(document.getElementById("schemas"));
copyButtons(document);
document.getElementById("filter").addEventListener("input", (event) =>
  filter(event.target.value.toLowerCase().split(/\s+/).filter(Boolean)));
addEventListener("hashchange", openTarget);
openTarget();
