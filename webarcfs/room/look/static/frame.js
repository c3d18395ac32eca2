// Keeps head and address of the frame in step with the page that pywb's engine shows in it. Without it the frame still
// shows where the reader began.
(function () {
  "use strict";
  var frame = document.getElementById("archived");
  if (!frame) { return; }
  var origin = new URL(frame.src).origin;
  window.addEventListener("message", function (event) {
    if (event.source !== frame.contentWindow || event.origin !== origin || typeof event.data !== "object" || !event.data) { return; }
    var said = event.data, url = said.url, digits = String(said.ts || "");
    if ((said.wb_type !== "load" && said.wb_type !== "replace-url") || typeof url !== "string") { return; }
    if (!/^https?:\/\/[^\s"'<>\\]{1,4000}$/.test(url) || !/^[0-9]{14}$/.test(digits)) { return; }
    var place = "/web/" + digits + "/" + url;
    if (place !== location.pathname + location.search) { location.replace(place); }
  });
})();
