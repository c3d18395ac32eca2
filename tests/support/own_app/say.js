/** Show a line of what works; a second one with the same name takes its place. */
export function say(name, text) {
  const line = document.getElementById(`said-${name}`) ?? document.createElement("li");
  line.id = `said-${name}`;
  line.textContent = text;
  document.getElementById("said").append(line);
}
