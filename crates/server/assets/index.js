// Fills in what is running here, so that every line on the page can be copied as it stands.
import { copyButtons } from "/assets/example.js";

const state = document.getElementById("state");

// A sign-in link: its code is removed from the address before anything else, and works once.
async function signIn() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code") ?? "";
  history.replaceState(null, "", "/");
  const response = await fetch("/api/session", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ code }),
  });
  return response.ok ? "" : ((await response.json()).detail ?? String(response.status));
}

const refused = location.pathname === "/sign-in" ? await signIn() : "";

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
    ? refused || "You are not signed in: `greenroom auth link` prints a link that signs this browser in."
    : `Agents here: ${agents.map((agent) => `${agent.name} (${agent.id})`).join(", ") || "none yet"}`;

copyButtons(document);
