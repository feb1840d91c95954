// Building elements. Whatever is given as a child becomes text: nothing that was said is ever read as HTML.

/**
 * An element with attributes, listeners ("onclick") and children; null children are left out.
 * @param {string} tag
 * @param {Record<string, unknown>} attributes
 * @param {...(Node | string | number | null | undefined)} children
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined).map(asNode));
  return element;
}

/** The same for a drawing. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children.filter(Boolean));
  return element;
}

function asNode(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}

/** The element with this id. */
export function byId(id) {
  return document.getElementById(id);
}
