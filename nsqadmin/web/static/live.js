// Keeps the page alive: the server tells when there are new figures, the page fetches a fresh copy of
// its main part and patches it in. Where the event stream does not get through, a timer asks instead.
import { patch } from "./patch.js";

const pollEvery = 5000; // milliseconds, without an event stream
const main = document.getElementById("main");
const button = document.getElementById("pause");
const age = document.getElementById("age");
const state = { paused: false, busy: false, stale: false, failed: false, polling: 0, at: performance.now() };
let address = location.href;
let stream;

const resting = () => state.paused || document.hidden || document.querySelector("dialog[open]") !== null;

// refresh shows the newest state of the page's address; moving says that the reader asked for it.
export async function refresh(moving = false) {
  if (main.hasAttribute("data-still") && !moving) return;
  if (!moving && resting()) {
    state.stale = true;
    return;
  }
  if (state.busy) {
    state.stale = true;
    return;
  }
  state.busy = true;
  state.stale = false;
  const asked = address;
  try {
    const url = new URL(asked);
    url.searchParams.set("fragment", "1");
    const answer = await fetch(url, { signal: AbortSignal.timeout(20000), headers: { Accept: "text/html" } });
    const kind = answer.headers.get("Content-Type") ?? "";
    if (!kind.startsWith("text/html")) throw new Error(`status ${answer.status}`);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
    if (!fresh) throw new Error("unexpected answer");
    if (asked === address && (moving || !resting())) patch(main, fresh);
    state.failed = false;
    state.at = performance.now();
  } catch {
    state.failed = true;
  } finally {
    state.busy = false;
    showAge();
    if (asked !== address) refresh(true);
    else if (state.stale && !resting() && !state.failed) refresh();
  }
}

// go shows another address of the same page: a search, an order, a page of a list.
export function go(url, remember) {
  history[remember ? "pushState" : "replaceState"](null, "", url);
  address = location.href;
  refresh(true);
}

function showAge() {
  const seconds = Math.round((performance.now() - state.at) / 1000 + Number(main.dataset.age ?? 0));
  const text = `data ${seconds} s old` + (state.failed ? ", nsqadmin does not answer" : "") + (state.paused ? ", updates paused" : "");
  if (age.textContent !== text) age.textContent = text;
}

function listen() {
  stream = new EventSource(document.body.dataset.events);
  stream.addEventListener("snapshot", (event) => {
    stopPolling();
    if (event.data !== main.dataset.seq) refresh();
  });
  stream.onerror = startPolling; // EventSource tries again by itself unless it was refused
}

function startPolling() {
  state.polling ||= setInterval(() => {
    if (stream.readyState === EventSource.CLOSED && !document.hidden) listen();
    refresh();
  }, pollEvery);
}

function stopPolling() {
  clearInterval(state.polling);
  state.polling = 0;
}

// A page in the background holds no connection: browsers allow only a few to one server.
function followVisibility() {
  if (document.hidden) {
    stopPolling();
    stream?.close();
    return;
  }
  listen();
  refresh();
}

export function start() {
  if (!main.hasAttribute("data-age")) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    state.paused = !state.paused;
    button.setAttribute("aria-pressed", String(state.paused));
    showAge();
    if (!state.paused) refresh();
  });
  document.addEventListener("visibilitychange", followVisibility);
  document.addEventListener("close", () => state.stale && refresh(), true); // of a dialog; does not bubble
  addEventListener("popstate", () => {
    address = location.href;
    const wanted = new URL(address).searchParams;
    for (const input of document.querySelectorAll("form[data-view] input[type=search]")) input.value = wanted.get(input.name) ?? "";
    refresh(true);
  });
  addEventListener("pagehide", () => stream?.close());
  addEventListener("pageshow", (event) => event.persisted && followVisibility());
  setInterval(showAge, 1000);
  if (!document.hidden) listen();
}
