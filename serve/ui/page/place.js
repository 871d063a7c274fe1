// Where one is: all that is shown follows from the address, so that it can be kept, sent
// and gone back to.
import { signal } from './lib.js';

/** @typedef {{world: string, view: string, of: Record<string, string>}} Place */

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** where is where the address leads, also while what is shown is on its way there. @returns {Place} */
export function where() {
  const at = location.hash.startsWith('#/') ? location.hash.slice(2) : ''; // what else stands there is a code
  const [path, query = ''] = at.split('?');
  const [world = '', view = ''] = path.split('/').map(decoded);
  return { world, view: view || (world ? 'inbox' : 'worlds'), of: Object.fromEntries(new URLSearchParams(query)) };
}

/** place is where one is. */
export const place = signal(where());

let shown = location.hash;

/** arrive has what is shown be what the address says. */
function arrive() {
  if (location.hash === shown) return;
  shown = location.hash;
  place.value = where();
}

addEventListener('hashchange', arrive);

/** lead leads to an address, at once: the next key is for what is there. @param {string} href */
export function lead(href) {
  location.hash = href;
  arrive();
}

/** address is the one of a place. @param {string} world @param {string} view @param {Record<string, string | number | undefined>} [of] */
export function address(world, view, of = {}) {
  const query = new URLSearchParams();
  for (const [name, v] of Object.entries(of)) if (v !== undefined && v !== '') query.set(name, String(v));
  const text = query.toString();
  return '#/' + encodeURIComponent(world) + (world || view === 'inbox' ? '/' + view : '') + (text ? '?' + text : '');
}

/** there is another view of this world, at the moment that is looked at. @param {string} view @param {Record<string, string | number | undefined>} [of] */
export function there(view, of) {
  return address(place.value.world, view, { at: place.value.of.at, ...of });
}

/** go leads there. @param {string} world @param {string} view @param {Record<string, string | number | undefined>} [of] */
export function go(world, view, of) {
  lead(address(world, view, of));
}

/** amend has this view show other things, without a step in the browser's history. @param {Record<string, string | number | undefined>} of */
export function amend(of) {
  const now = where();
  if (now.world !== place.value.world || now.view !== place.value.view) return; // somebody is on the way elsewhere
  replace(here(of));
}

/** replace leads to an address, without a step in the browser's history. @param {string} href */
export function replace(href) {
  history.replaceState(null, '', href);
  arrive();
}

/** here is this view with other things shown. @param {Record<string, string | number | undefined>} of */
export function here(of) {
  return address(place.value.world, place.value.view, { ...place.value.of, ...of });
}
