// Says of a file that is too large when it is chosen, before it is sent. Without it, the desk refuses what is sent.
"use strict";
for (const input of document.querySelectorAll("input[type=file][data-most]")) {
  input.addEventListener("change", () => {
    const file = input.files[0];
    input.setCustomValidity(file && file.size > Number(input.dataset.most) ? input.dataset.said : "");
    input.reportValidity();
  });
}
