// Runs in archived pages whose scripts run, before any of theirs: what no rule of a browser keeps inside, and what the
// room has a notice for. The room decides what to do about a message; this says only what a reader asked for.
(function () {
  "use strict";
  // Connections between browsers ask servers of their own choice, and not every browser has a policy for them.
  function close(view) {
    ["RTCPeerConnection", "webkitRTCPeerConnection", "mozRTCPeerConnection"].forEach(function (name) {
      try { delete view[name]; } catch (error) { /* a window of another origin has its own guard */ }
    });
    return view;
  }
  close(window);
  // wombat takes the window that listens from `this`, which a function that is called by its name alone has not got.
  ["addEventListener", "removeEventListener"].forEach(function (name) {
    var led = window[name];
    window[name] = function () { return led.apply(this === undefined || this === null ? window : this, arguments); };
  });
  // A frame that a script makes has a window of its own, which nothing was loaded into.
  [["contentWindow", close], ["contentDocument", function (page) { if (page) { close(page.defaultView); } return page; }]].forEach(function (each) {
    var found = Object.getOwnPropertyDescriptor(HTMLIFrameElement.prototype, each[0]), get = found && found.get;
    if (!get) { return; }
    found.get = function () { var it = get.call(this); return it && each[1](it); };
    Object.defineProperty(HTMLIFrameElement.prototype, each[0], found);
  });
  // A frame with its page in an attribute gets no script of pywb's, so it gets this one before its own.
  var guard = document.currentScript && document.currentScript.src, guarded = new WeakSet();
  if (guard) {
    new MutationObserver(function (records) {
      records.forEach(function (record) {
        record.addedNodes.forEach(function (node) {
          if (node.nodeType !== Node.ELEMENT_NODE) { return; }
          var frames = node.matches("iframe[srcdoc]") ? [node] : Array.from(node.querySelectorAll("iframe[srcdoc]"));
          frames.forEach(function (frame) {
            if (guarded.has(frame)) { return; }
            guarded.add(frame);
            frame.setAttribute("srcdoc", '<script src="' + guard + '"></' + "script>" + frame.getAttribute("srcdoc"));
          });
        });
      });
    }).observe(document, { childList: true, subtree: true });
  }
  var room = window.parent;
  function tell(kind, url) { room.postMessage({ webarc: kind, url: String(url).slice(0, 2000) }, "*"); }
  document.addEventListener("click", function (event) {
    var from = event.composedPath()[0], link = from && from.closest && from.closest("a[href], area[href]");
    var href = link && link.getAttribute("href"), scheme = /^\s*([a-z][a-z0-9+.-]*):/i.exec(href || "");
    if (!scheme || /^(https?|javascript|data|blob|about)$/i.test(scheme[1])) { return; }
    event.preventDefault(); // mailto: and the like
    tell("external", href);
  }, true);
  function isPost(form, by) {
    var method = (by && by.getAttribute("formmethod")) || (form && form.getAttribute("method")) || "get";
    return method.toLowerCase() === "post";
  }
  function tellForm(form) { tell("form", (form && form.getAttribute("action")) || ""); }
  document.addEventListener("submit", function (event) {
    if (!isPost(event.target, event.submitter)) { return; }
    event.preventDefault();
    tellForm(event.target);
  }, true);
  var submit = HTMLFormElement.prototype.submit;
  HTMLFormElement.prototype.submit = function () { return isPost(this) ? tellForm(this) : submit.call(this); };
})();
