import { say } from "../say.js";

async function ask(name, body, type) {
  const answer = await fetch("/api/search", { method: "POST", body, headers: { "Content-Type": type } });
  const { text } = await answer.json();
  say(`ask-${name}`, `${name}: ${text}`);
}

function button(text, act) {
  const made = document.createElement("button");
  made.textContent = text;
  made.addEventListener("click", act);
  return made;
}

export function render(page) {
  page.replaceChildren(
    "Ask the server.",
    button("Alpha", () => ask("JSON alpha", JSON.stringify({ q: "alpha" }), "application/json")),
    button("Beta", () => ask("JSON beta", JSON.stringify({ q: "beta" }), "application/json")),
    button("Form", () => ask("form gamma", new URLSearchParams({ q: "gamma", n: "1" }).toString(), "application/x-www-form-urlencoded")),
  );
}
