// From a JSON Schema to an example value, to a curl line; and the copy buttons both pages use.

export function resolve(api, node) {
  for (let steps = 0; node?.$ref && steps < 16; steps += 1) {
    node = node.$ref.split("/").slice(1).reduce((at, key) => at?.[key], api);
  }
  return node ?? {};
}

export function example(api, schema, depth = 0) {
  const found = resolve(api, schema);
  if (found.examples?.length) return found.examples[0];
  if (found.example !== undefined) return found.example;
  if (found.default !== undefined && found.default !== null) return found.default;
  if (found.const !== undefined) return found.const;
  if (found.enum?.length) return found.enum[0];
  if (depth > 6) return null;
  if (found.allOf) return Object.assign({}, ...found.allOf.map((part) => example(api, part, depth + 1)));
  const choice = (found.oneOf ?? found.anyOf)?.find((part) => part.type !== "null");
  if (choice) return example(api, choice, depth + 1);
  switch ([found.type].flat().find((type) => type !== "null")) {
    case "string":
      return { uuid: "00000000-0000-7000-8000-000000000000", "date-time": "2026-01-01T00:00:00.000Z" }[found.format] ?? "text";
    case "integer":
    case "number":
      return found.minimum ?? 0;
    case "boolean":
      return false;
    case "array":
      return found.items ? [example(api, found.items, depth + 1)] : [];
    case "object": {
      const required = found.required ?? [];
      const shown = Object.entries(found.properties ?? {}).filter(([name]) => required.includes(name));
      return Object.fromEntries(shown.map(([name, property]) => [name, example(api, property, depth + 1)]));
    }
    default:
      return null;
  }
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

export function curl(api, method, path, operation) {
  const parameters = (operation.parameters ?? []).map((parameter) => resolve(api, parameter));
  const query = parameters
    .filter((parameter) => parameter.in === "query" && parameter.required)
    .map((parameter) => `${parameter.name}=${encodeURIComponent(String(example(api, parameter.schema)))}`);
  const target = location.origin + path.replaceAll(/\{(\w+)\}/g, (_, name) => name.toUpperCase());
  const lines = [`curl ${operation.security ? '-H "$AUTH" ' : ""}${quoted(target + (query.length ? `?${query.join("&")}` : ""))}`];
  const body = resolve(api, operation.requestBody).content?.["application/json"];
  if (method !== "get" && !(method === "post" && body)) lines[0] = lines[0].replace("curl", `curl -X ${method.toUpperCase()}`);
  if (body) {
    lines.push(`-H 'Content-Type: application/json'`);
    lines.push(`-d ${quoted(JSON.stringify(body.example ?? example(api, body.schema)))}`);
  }
  const streams = Object.values(operation.responses ?? {}).some((one) => resolve(api, one).content?.["text/event-stream"]);
  if (streams) lines[0] = lines[0].replace("curl", "curl -N");
  return lines.join(" \\\n  ");
}

export function copyButtons(root) {
  for (const block of root.querySelectorAll(".copyable:not(:has(button))")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.querySelector("pre").textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.append(button);
  }
}
