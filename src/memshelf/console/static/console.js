// Comforts alone: every page works without them.
"use strict";

const unsaved = document.querySelector("form[data-unsaved]");
let changed = unsaved?.dataset.unsaved === "typed"; // and shown again, as it could not be saved

if (unsaved) {
  unsaved.addEventListener("input", () => { changed = true; });
  unsaved.addEventListener("submit", () => { changed = false; });
  window.addEventListener("beforeunload", (event) => {
    if (changed) event.preventDefault(); // the browser asks
  });
}

let sent = false;

document.addEventListener("submit", (event) => {
  if (event.target.method !== "post" || event.defaultPrevented) return;
  if (sent) event.preventDefault(); // a double click does it once
  sent = true;
  setTimeout(() => { sent = false; }, 2000); // if nothing came of it
});

document.addEventListener("keydown", (event) => {
  if (unsaved && event.key === "s" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
    event.preventDefault();
    unsaved.requestSubmit();
  }
  const typing = event.target.closest("input, textarea, select");
  const search = document.querySelector("[data-search]");
  if (search && !typing && event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    search.focus();
  }
});
