// Places in the console, as the address holds them: #/<view>/<id>?<name>=<value>.

/**
 * @param {string} hash of the address
 * @returns {{view: string, id: string, params: Record<string, string>}}
 */
export function parsed(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [view, ...rest] = path.split("/");
  return { view, id: decoded(rest.join("/")), params: Object.fromEntries(new URLSearchParams(query)) };
}

/**
 * @param {{view: string, id?: string, params?: Record<string, string | number | null | undefined>}} place
 * @returns {string} the hash; a parameter without a value is left out
 */
export function written({ view, id = "", params = {} }) {
  const given = Object.entries(params).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `#/${view}${id ? `/${encodeURIComponent(id)}` : ""}${query ? `?${query}` : ""}`;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}
