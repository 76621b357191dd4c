// Comforts alone: every page works without them.
"use strict";

const unsaved = document.querySelector("form[data-unsaved]");
let changed = false;

if (unsaved) {
  unsaved.addEventListener("input", () => { changed = true; });
  unsaved.addEventListener("submit", () => { changed = false; });
  window.addEventListener("beforeunload", (event) => {
    if (changed) event.preventDefault(); // the browser asks
  });
}

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
