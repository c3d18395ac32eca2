import { say } from "./say.js";

// The pages are modules that are loaded when they are first shown.
const pages = {
  start: () => import("./pages/start.js"),
  hills: () => import("/pages/hills.js"),
  hill: () => import(`./pages/${"hill"}.js`),
  map: () => import("./pages/map.js"),
  ask: () => import("./pages/ask.js"),
};

async function show(name, hills) {
  const { render } = await pages[name]();
  await render(document.getElementById("page"), hills);
  say("route", `route ${name}: ${location.pathname}`);
}

function nameOf(path) {
  return [...document.querySelectorAll("[data-route]")].find((link) => link.getAttribute("href") === path)?.dataset.route;
}

/** Show the page of the address; from then on, links change the address and the page, without a request for a page. */
export function start(hills) {
  for (const link of document.querySelectorAll("[data-route]"))
    link.addEventListener("click", (event) => {
      event.preventDefault();
      history.pushState({ route: link.dataset.route }, "", link.href);
      show(link.dataset.route, hills);
    });
  addEventListener("popstate", (event) => show(event.state?.route ?? "start", hills));
  show(nameOf(location.pathname) ?? "start", hills);
}
