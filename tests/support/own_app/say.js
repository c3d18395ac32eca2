/**
 * Show a line of what works; a second one with the same name takes its place. Lines stand in the order of their names,
 * whatever comes first.
 */
export function say(name, text) {
  const id = `said-${name}`;
  const lines = document.getElementById("said");
  let line = document.getElementById(id);
  if (!line) {
    line = document.createElement("li");
    line.id = id;
    lines.insertBefore(line, [...lines.children].find((other) => other.id > id) ?? null);
  }
  line.textContent = text;
}
