// Elements from plain descriptions, changed in place: focus, scrolling and opened details survive an update.
// Text becomes text nodes only. Nothing that comes from outside is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";
const KEY = Symbol("key");
const ATTRIBUTES = Symbol("attributes");
const PROPERTIES = new Set(["value", "checked", "disabled", "selected"]);

/** Describe an element. `key` names it among its siblings; `on...` are handlers; null and false children are left out. */
export function h(tag, attributes, ...children) {
  const { key, ...rest } = attributes ?? {};
  return { tag, key, attributes: rest, children: children.flat(Infinity).filter(isThere) };
}

/** Make the children of `root` what is wanted, and put the focus back where it was. */
export function render(root, ...wanted) {
  const focused = document.activeElement;
  patch(root, wanted.flat(Infinity).filter(isThere));
  if (focused !== document.activeElement && focused instanceof HTMLElement && focused.isConnected) {
    focused.focus({ preventScroll: true });
  }
}

function isThere(child) {
  return child !== null && child !== undefined && child !== false && child !== "";
}

function patch(parent, wanted) {
  const keyed = new Map();
  for (const node of parent.childNodes) {
    if (node[KEY] !== undefined) keyed.set(node[KEY], node);
  }
  let cursor = parent.firstChild;
  for (const one of wanted) {
    const node = reusable(one, cursor, keyed) ?? made(one, parent);
    if (node === cursor) cursor = cursor.nextSibling;
    else parent.insertBefore(node, cursor);
    update(node, one);
  }
  while (cursor) {
    const next = cursor.nextSibling;
    cursor.remove();
    cursor = next;
  }
}

function reusable(one, cursor, keyed) {
  if (typeof one !== "object") return cursor?.nodeType === Node.TEXT_NODE ? cursor : null;
  if (one.key !== undefined) {
    const node = keyed.get(one.key);
    return node?.localName === one.tag ? node : null;
  }
  const fits = cursor?.nodeType === Node.ELEMENT_NODE && cursor[KEY] === undefined && cursor.localName === one.tag;
  return fits ? cursor : null;
}

function made(one, parent) {
  if (typeof one !== "object") return document.createTextNode("");
  const isSvg = one.tag === "svg" || (parent.namespaceURI === SVG && parent.localName !== "foreignObject");
  const node = isSvg ? document.createElementNS(SVG, one.tag) : document.createElement(one.tag);
  node[ATTRIBUTES] = {};
  if (one.key !== undefined) node[KEY] = one.key;
  return node;
}

function update(node, one) {
  if (typeof one !== "object") {
    const text = String(one);
    if (node.data !== text) node.data = text;
    return;
  }
  const before = node[ATTRIBUTES];
  for (const name of Object.keys(before)) {
    if (!(name in one.attributes)) set(node, name, null);
  }
  for (const [name, value] of Object.entries(one.attributes)) {
    if (before[name] !== value || PROPERTIES.has(name)) set(node, name, value);
  }
  node[ATTRIBUTES] = one.attributes;
  patch(node, one.children);
}

function set(node, name, value) {
  if (name.startsWith("on")) node[name] = value;
  else if (PROPERTIES.has(name)) {
    if (node[name] !== (value ?? "")) node[name] = value ?? "";
  } else if (name.startsWith("--")) node.style.setProperty(name, value ?? "");
  else if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : String(value));
}
