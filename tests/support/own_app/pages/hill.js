// A module that is itself loaded lazily imports others, and loads one more at a click.
import { greet } from "greeting";

export function render(page, hills) {
  const hill = hills.find(({ name }) => name === "Palatine");
  const more = document.createElement("button");
  more.id = "more";
  more.textContent = "More";
  more.addEventListener("click", async () => {
    const { legend } = await import("../lib/legend.js");
    page.append(legend(hill));
  });
  page.replaceChildren(`${greet(hill.name)}.`, more);
}
