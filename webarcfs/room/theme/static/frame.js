// Keeps head and foot true to the page that pywb's engine shows: where the reader follows a link inside, the room's frame
// of that page is loaded, in the same snapshot; and a way out of the archive ends at the room's notice. A message names a
// URL as text, nothing else of it counts. Without it, the frame still says where the reader began.
(function () {
  "use strict";
  var frame = document.getElementById("archived"), here = /^\/web\/([0-9]{14})\/(.+)$/.exec(location.pathname);
  if (!frame || !here) { return; }
  var origin = new URL(frame.src).origin, shown = document.getElementById("archived-url").textContent;
  var asked = "webarc-led", leaves = false, isAt = false;
  // The same page: by any scheme, and in any spelling of its URL.
  function plain(url) {
    try {
      var found = new URL(url);
      return found.host + decodeURI(found.pathname + found.search).replace(/%[0-9a-f]{2}/gi, function (each) { return each.toUpperCase(); });
    } catch (error) { return url; }
  }
  function kept(url) { try { return sessionStorage.getItem(asked) === url; } catch (error) { return true; } }
  function keep(url) { try { sessionStorage.setItem(asked, url); } catch (error) { /* then it leads there once more */ } }
  function follow(url) {
    if (!/^https?:\/\/[^\s"'<>\\]{1,4000}$/.test(url)) { return; }
    var parts = url.split("#"), place = parts[0];
    if (plain(place) === plain(shown)) { keep(""); return; }
    if (kept(place)) { return; } // the room writes this URL in another way: it has led here already
    keep(place);
    leaves = true;
    location.replace("/web/" + here[1] + "/" + place + (parts.length > 1 ? "#" + parts.slice(1).join("#") : ""));
  }
  window.addEventListener("message", function (event) {
    var said = event.data;
    if (leaves || event.source !== frame.contentWindow || event.origin !== origin || typeof said !== "object" || !said) { return; }
    if (typeof said.url !== "string") { return; }
    if (said.wb_type === "load") {
      if (location.hash && !isAt && said.readyState === "complete" && plain(said.url.split("#")[0]) === plain(shown)) {
        isAt = true; // the place on the page, once
        frame.contentWindow.postMessage({ from_top: true, message: { wb_type: "outer_hashchange", hash: location.hash } }, origin);
      }
      follow(said.url);
    } else if ((said.webarc === "external" || said.webarc === "form") && (!navigator.userActivation || navigator.userActivation.isActive)) {
      leaves = true;
      location.assign("/notice/" + said.webarc + "?" + new URLSearchParams({ url: said.url.slice(0, 2000), from: here[1] + "/" + shown }));
    }
  });
})();
