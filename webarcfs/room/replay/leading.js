// Where a module leads that a script names when it runs: a bare name stays, for the import map; an address leads into
// the archive, relative to the script that was archived. It precedes guard.js in pages, and module.js in modules.
globalThis.__webarc_import = function (where, prefix, base) {
  where = String(where);
  let url;
  try { url = /^\.{0,2}\//.test(where) ? new URL(where, base) : new URL(where); } catch (error) { return where; }
  if (!/^https?:$/.test(url.protocol)) { return where; }
  const own = url.origin === globalThis.location.origin ? url.pathname + url.search : "";
  const archived = /^\/web\/[0-9]+[a-z]*_?\/(https?:.*)$/.exec(own);
  return prefix + "esm_/" + (archived ? archived[1] : url.href);
};
