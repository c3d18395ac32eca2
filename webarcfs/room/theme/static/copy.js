// Buttons that copy a text of the page. Where copying is refused, as on pages by http from another host, the text is
// selected, so that a key or a finger copies it. Without this the buttons are hidden.
(function () {
  "use strict";
  var status = document.querySelector("[data-copied]");
  function select(text) { window.getSelection().selectAllChildren(text); }
  function tell(isCopied) { status.textContent = isCopied ? status.dataset.copied : status.dataset.failed; }
  function copy(text) {
    if (navigator.clipboard) {
      return navigator.clipboard.writeText(text.textContent.replace(/\s+/g, " ").trim());
    }
    select(text);
    return document.execCommand("copy") ? Promise.resolve() : Promise.reject(new Error("it was refused"));
  }
  document.querySelectorAll("[data-copies]").forEach(function (button) {
    var text = document.getElementById(button.dataset.copies);
    button.hidden = false;
    button.addEventListener("click", function () {
      copy(text).then(function () { tell(true); }, function () { select(text); tell(false); });
    });
  });
})();
