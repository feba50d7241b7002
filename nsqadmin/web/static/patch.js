// Makes a part of the page equal to a fresh copy of itself while it keeps every element that is still
// there, so that focus, selection and scroll position stay where the reader has them.

// Elements are the same when their keys are; without a key, when they stand at the same place.
function sameKind(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
}

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("data-key") ?? node.id : "";
}

export function patch(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  // What the reader has typed, opened or paused is theirs.
  if (old.hasAttribute("data-keep")) return;
  patchAttributes(old, fresh);
  patchChildren(old, fresh);
}

function patchAttributes(old, fresh) {
  const isTheReaders = (name) => name === "open" && old.localName === "details";
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !isTheReaders(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value && !isTheReaders(name)) old.setAttribute(name, value);
  }
}

function patchChildren(old, fresh) {
  const keyed = new Map();
  for (const child of old.children) {
    const key = keyOf(child);
    if (key) keyed.set(key, child);
  }
  let next = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const key = keyOf(wanted);
    let match = key ? keyed.get(key) : next;
    if (!match || !sameKind(match, wanted)) {
      old.insertBefore(document.importNode(wanted, true), next);
      continue;
    }
    keyed.delete(key);
    if (match === next) next = next.nextSibling;
    else match = move(old, match, next);
    patch(match, wanted);
  }
  while (next) {
    const rest = next.nextSibling;
    next.remove();
    next = rest;
  }
}

// Moving an element takes the focus from it; it is given back.
function move(parent, child, before) {
  const focused = child.contains(document.activeElement) ? document.activeElement : null;
  parent.insertBefore(child, before);
  focused?.focus({ preventScroll: true });
  return child;
}
