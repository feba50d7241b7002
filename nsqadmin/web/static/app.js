// What JavaScript adds to pages that work without it: live figures, search while typing, sorting without
// a reload, confirmation in a dialog, values under the pointer.
import * as live from "./live.js";
import { hover } from "./chart.js";
import { confirmInDialog } from "./dialog.js";

const isPlainClick = (event) => event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;

document.addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link || event.defaultPrevented || !isPlainClick(event)) return;
  if (link.hasAttribute("data-confirm")) {
    event.preventDefault();
    confirmInDialog(link);
  } else if (link.hasAttribute("data-view")) {
    event.preventDefault();
    live.go(link.href, true);
  }
});

// A form with data-view is a search: its fields are the address of the page.
function search(form) {
  const url = new URL(form.action);
  url.search = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== "")).toString();
  live.go(url, false);
}

let typing;
document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-view]");
  if (!form) return;
  clearTimeout(typing);
  typing = setTimeout(search, 250, form);
});
document.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-view]")) return;
  event.preventDefault();
  clearTimeout(typing);
  search(event.target);
});

document.addEventListener("pointermove", hover);
document.addEventListener("pointerdown", hover);
live.start();
