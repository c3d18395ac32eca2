// Keeps the frame in step with the page that pywb's engine shows in it: where the reader follows a link inside, the frame
// of that page is loaded, in the same snapshot. Without it, the frame still says where the reader began.
(function () {
  "use strict";
  var frame = document.getElementById("archived"), here = /^\/web\/([0-9]{14})\//.exec(location.pathname);
  if (!frame || !here) { return; }
  var origin = new URL(frame.src).origin, first = null, leaves = false;
  window.addEventListener("message", function (event) {
    var said = event.data;
    if (event.source !== frame.contentWindow || event.origin !== origin || typeof said !== "object" || !said) { return; }
    if (said.wb_type !== "load" && said.wb_type !== "replace-url") { return; }
    var url = said.url;
    if (typeof url !== "string" || !/^https?:\/\/[^\s"'<>\\#]{1,4000}$/.test(url.split("#")[0])) { return; }
    url = url.split("#")[0];
    if (first === null) { first = url; return; }
    if (url !== first && !leaves) {
      leaves = true;
      location.replace("/web/" + here[1] + "/" + url);
    }
  });
})();
