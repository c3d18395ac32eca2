import { say } from "../say.js";

const zoom = 2;

/** Show nine tiles; a script makes their addresses, so no page names them. */
export function render(page) {
  const map = document.createElement("div");
  map.id = "map";
  page.replaceChildren(map);
  let shown = 0;
  for (let y = 0; y < 3; y++)
    for (let x = 0; x < 3; x++) {
      const tile = new Image();
      tile.addEventListener("load", () => say("tiles", `tiles: ${++shown} of 9`));
      tile.src = `/tiles/${zoom}/${x}/${y}.png`;
      map.append(tile);
    }
}
