// Follows what runs: figures change in their places, nothing moves. Without it, pages are reloaded.
"use strict";
(() => {
  const live = document.querySelector("[data-live]");
  if (!live || !window.EventSource) return;
  const language = document.documentElement.lang;
  const count = new Intl.NumberFormat(language === "de" ? "de-DE" : "en-GB");
  const size = (bytes) => {
    let at = 0;
    while (bytes >= 1000 && at < 4) { bytes /= 1000; at += 1; }
    const digits = at === 0 || bytes >= 100 ? 0 : 1;
    const shown = bytes.toLocaleString(language === "de" ? "de-DE" : "en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits });
    return `${shown} ${["B", "kB", "MB", "GB", "TB"][at]}`;
  };
  const say = (place, value) => {
    if (place.tagName === "PROGRESS") { place.value = value; return; }
    const text = "size" in place.dataset ? size(value) : count.format(value);
    if (place.textContent !== text) place.textContent = text;
  };
  const source = new EventSource(live.dataset.live);
  source.onmessage = (event) => {
    const told = JSON.parse(event.data);
    for (const [name, job] of Object.entries(told.jobs)) {
      for (const own of document.querySelectorAll(`[data-job="${CSS.escape(name)}"]`)) {
        if (own.dataset.figure) say(own, job[own.dataset.figure]);
        for (const place of own.querySelectorAll("[data-figure]")) say(place, job[place.dataset.figure]);
      }
    }
    for (const own of document.querySelectorAll("[data-ends]")) own.hidden = own.dataset.ends in told.jobs;
    for (const own of document.querySelectorAll("[data-runs]")) own.hidden = !(own.dataset.runs in told.jobs);
    const ended = document.querySelector("[data-ended]");
    if (ended) {
      const known = [...document.querySelectorAll("[data-known]")].map((each) => each.dataset.known).sort().join(" ");
      ended.hidden = known === Object.keys(told.jobs).sort().join(" ");
    }
    for (const own of document.querySelectorAll("[data-snapshot]")) {
      own.hidden = (told.steps[own.dataset.snapshot] || "") === own.dataset.asked;
    }
    const bar = document.querySelector("[data-newest]");
    if (bar) bar.hidden = !(told.newest > Number(bar.dataset.newest));
  };
  window.addEventListener("pagehide", () => source.close());
})();
