// Fills in what is running here, so that every line on the page can be copied as it stands.
import { copyButtons } from "/assets/example.js";

const state = document.getElementById("state");

async function json(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(String(response.status));
  return response.json();
}

function fill(agent) {
  for (const block of document.querySelectorAll("[data-fill]")) {
    block.textContent = block.textContent.replaceAll("{origin}", location.origin).replaceAll("{agent}", agent);
  }
}

const [ready, described, listed] = await Promise.allSettled([json("/readyz"), json("/openapi.json"), json("/api/agents")]);

const version = described.value?.info?.version ?? "";
const good = ready.status === "fulfilled";
state.classList.add(good ? "good" : "bad");
state.textContent = `Greenroom ${version} ${good ? "is ready" : "is not ready yet"} at ${location.host}`;

const agents = listed.value?.agents ?? [];
const first = agents.find((agent) => agent.provider === "scripted") ?? agents[0];
fill(first?.id ?? "AGENT");
document.getElementById("agents").textContent =
  listed.status === "rejected"
    ? "This server has accounts: add -H 'Authorization: Bearer TOKEN' to each line and put the id of an agent for AGENT."
    : `Agents here: ${agents.map((agent) => `${agent.name} (${agent.id})`).join(", ") || "none yet"}`;

copyButtons(document);
