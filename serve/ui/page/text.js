// What agents wrote is hostile: it is shown as text, and what acts on text or hides in it
// is spelled out, as worldctl spells it out on a terminal.
import { html, useState } from './lib.js';
import { Exact } from './api.js';

/** Controls, formats, halves of characters, spaces that are none of the keyboard, what is unassigned, fillers, and marks piled up until they paint over others' lines. */
const hidden = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]|(?! )\p{Zs}|[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\u{1d159}\u{1d173}-\u{1d17a}\u{e0100}-\u{e01ef}]|(?<=\p{M}{4})\p{M}/gu;

/** spelled has what hides spelled out. @param {unknown} text @returns {string} */
export function spelled(text) {
  return String(text).replace(hidden, (c) => '<U+' + (c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0') + '>');
}

/** longest is how much of a text is shown before somebody asks for the rest. */
const longest = 2000;

/** isLong reports whether cut would leave something of a text out: it is as long as it is shown, spelled out. @param {string} text @param {number} [most] */
const isLong = (text, most = longest) => spelled(text).length > most;

/** cut is a text as it is shown, of what is long the beginning. @param {string} text @param {number} [most] */
export function cut(text, most = longest) {
  const shown = spelled(text);
  return isLong(text, most) ? shown.slice(0, most) + ' … (' + number(shown.length - most) + ' more)' : shown;
}

/** line is a value on one line. @param {unknown} value @param {number} [most] @returns {string} */
export function line(value, most = 160) {
  const text = (typeof value === 'string' ? value : JSON.stringify(value)) ?? '';
  const shown = spelled(text.slice(0, most).replace(/\n/g, '\\n'));
  return text.length <= most ? shown : shown + ' … (' + number(text.length - most) + ' more)';
}

/** the parts of a list, how deep, and how much of a name are shown before somebody asks for the rest */
const [longList, deep, longName] = [200, 5, 80];

/** isCut reports whether not all of a value is shown. @param {unknown} of @param {number} [depth] @returns {boolean} */
export function isCut(of, depth = 0) {
  if (typeof of === 'string') return isLong(of);
  if (of === null || typeof of !== 'object' || of instanceof Exact) return false;
  const entries = Object.entries(of);
  return entries.length > longList || (entries.length > 0 && depth > deep) || entries.some(([name, v]) => isLong(name, longName) || isCut(v, depth + 1));
}

/**
 * Value shows a JSON value, the parts of an object a line each. A text of several lines has
 * a block of its own with a border, so that it cannot look like the page's fields.
 * @param {{of: unknown, depth?: number, whole?: boolean}} props
 */
export function Value({ of, depth = 0, whole = false }) {
  const most = whole ? Infinity : longest;
  if (typeof of === 'string') {
    return of.includes('\n') ? html`<pre class="block" tabindex="0">${cut(of, most)}</pre>` : html`<span class="string">${cut(of, most)}</span>`;
  }
  if (of instanceof Exact) return html`<span class="number">${of.text}</span>`;
  if (of === null || typeof of !== 'object') return html`<span class=${typeof of}>${String(of)}</span>`;
  const entries = Object.entries(of);
  if (entries.length === 0) return html`<span class="empty">${Array.isArray(of) ? 'none' : '{}'}</span>`;
  if (depth > deep && !whole) return html`<span class="string">${line(of)}</span>`;
  const shown = whole ? entries : entries.slice(0, longList);
  return html`<dl class="value">
    ${shown.map(([name, v]) => html`<div key=${name}><dt>${cut(name, whole ? Infinity : longName)}:</dt><dd><${Value} of=${v} depth=${depth + 1} whole=${whole} /></dd></div>`)}
    ${entries.length > shown.length && html`<div><dt>…</dt><dd>${number(entries.length - shown.length)} more</dd></div>`}
  </dl>`;
}

/** Whole is a value that is shown whole when somebody asks for it. @param {{of: unknown}} props */
export function Whole({ of }) {
  const [whole, setWhole] = useState(false);
  return html`<${Value} of=${of} whole=${whole} />${!whole && isCut(of) && html`<button type="button" class="small" onClick=${() => setWhole(true)}>show all of it</button>`}`;
}

/** Words is what somebody said, in a box of its own: of several lines it cannot look like what is around it. @param {{of: string}} props */
export function Words({ of }) {
  const [whole, setWhole] = useState(false);
  if (of === '') return null;
  return html`<pre class="bubble words">${cut(of, whole ? Infinity : longest)}</pre>${!whole && isLong(of) && html`<button type="button" class="small" onClick=${() => setWhole(true)}>show all of it</button>`}`;
}

/** short is the beginning of a hash. @param {string} hash @param {number} [n] */
export function short(hash, n = 12) {
  return hash.slice(0, n);
}

const digits = new Intl.NumberFormat('en');

/** number has its thousands apart. @param {number} n */
export function number(n) {
  return digits.format(n);
}
