// What archived module scripts import before anything else: the names by which they see the page that was archived, and
// where a module leads that they name when they run. In a worker, what it asks for leads into the archive, too: a
// worker that is a module cannot load the script that does this for the others.
const wombat = globalThis._wb_wombat;
const place = /^(.*\/web\/[0-9]+)[a-z]*_?\/(https?:.*)$/.exec(globalThis.location.href);

function seen(name) {
  if (!globalThis.document && place) {
    if (name === "location") { return located; }
    return globalThis[name];
  }
  return (wombat && wombat.local_init && wombat.local_init(name)) || globalThis[name];
}

// The location of a worker is read only, and is the one that was archived.
const located = Object.freeze(globalThis.document || !place ? {} : (function () {
  const url = new URL(place[2]), shown = { toString: function () { return url.href; } };
  ["href", "origin", "protocol", "host", "hostname", "port", "pathname", "search", "hash"].forEach(function (name) {
    shown[name] = url[name];
  });
  return shown;
})());

const names = {};
["window", "self", "document", "location", "top", "parent", "frames", "opener"].forEach(function (name) {
  names[name] = seen(name);
});
export const { window, self, document, location, top, parent, frames, opener } = names;

// Where a module leads that another one names when it runs.
export const __webarc_import = globalThis.__webarc_import;

if (!globalThis.document && place) {
  const led = function (address) {
    const url = new URL(String(address), place[2]);
    if (!/^https?:$/.test(url.protocol) || (url.origin === globalThis.location.origin && url.pathname.startsWith("/web/"))) { return url.href; }
    return place[1] + "mp_/" + url.href;
  };
  const fetched = globalThis.fetch;
  globalThis.fetch = function (what, how) {
    return fetched.call(globalThis, what instanceof Request ? new Request(led(what.url), what) : led(what), how);
  };
  const open = XMLHttpRequest.prototype.open;
  XMLHttpRequest.prototype.open = function (method, address, ...more) {
    return open.call(this, method, led(address), ...more);
  };
}
