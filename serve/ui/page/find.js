// A field that leads to what somebody names: a moment, a cell, an intent.
import { html, useState } from './lib.js';
import { pathOf } from './api.js';
import { copy } from './copy.js';
import { useAnswer } from './live.js';
import { lead, there } from './place.js';
import { State, Trouble } from './parts.js';
import { short, spelled } from './text.js';

/** @typedef {{href: string, body: any}} Hit */

/** hitsOf is where the answer to a search leads. @param {any} is @returns {Hit[]} */
function hitsOf(is) {
  if (!is) return [];
  return [
    ...(is.record ? [{ href: there('records', { of: is.record.id }), body: html`#${is.record.id} <small>${spelled(is.record.kind)}</small>` }] : []),
    ...is.cells.map((/** @type {string} */ cell) => ({ href: there('cells', { of: cell }), body: spelled(cell) })),
    ...is.intents.map((/** @type {any} */ i) => ({ href: there('inbox', { of: i.key }), body: html`<code>${short(i.key)}</code> <${State} of=${i.state} /> <small>${spelled(i.kind)}</small>` })),
  ];
}

/** guess is where a text leads that nobody was asked about. @param {string} text */
function guess(text) {
  if (/^#?\d+$/.test(text)) return there('records', { of: text.replace('#', '') });
  if (/^[0-9a-f]{8,64}$/.test(text)) return there('inbox', { of: text });
  return there('cells', { of: text });
}

/** Find shows what a text may mean while it is typed. Enter leads to the first, the arrow to the list. @param {{world: string}} props */
export function Find({ world }) {
  const [text, setText] = useState('');
  const what = text.trim();
  const asked = world && what && !copy ? pathOf(world, 'search') + '?limit=8&q=' + encodeURIComponent(what) : null;
  const { is, error } = useAnswer(asked, true);
  const hits = hitsOf(is);
  const follow = (/** @type {string} */ href) => {
    lead(href);
    setText('');
    /** @type {HTMLElement | null} */ (document.activeElement)?.blur();
  };
  const pressed = (/** @type {KeyboardEvent} */ e) => {
    const box = /** @type {HTMLElement} */ (e.currentTarget);
    const all = /** @type {HTMLElement[]} */ ([...box.querySelectorAll('input, .hits a')]);
    const on = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (e.key === 'Escape') follow(location.hash);
    else if (e.key === 'Enter' && on === 0 && what && world) follow(/^#?\d+$/.test(what) ? guess(what) : hits[0]?.href ?? guess(what));
    else if (step) all[Math.max(0, Math.min(all.length - 1, on + step))].focus();
    else return;
    e.preventDefault();
    e.stopPropagation();
  };
  return html`<search class="find" onKeyDown=${pressed}>
    <label><span class="gone">Find</span><input id="find" autocomplete="off" placeholder="Find or go to…  /" value=${text} disabled=${!world} onInput=${(/** @type {any} */ e) => setText(e.target.value)} /></label>
    ${asked && html`<div class="hits" role="status">
      <${Trouble} of=${error} />
      ${hits.length > 0 && html`<ul>${hits.map((hit) => html`<li key=${hit.href}><a href=${hit.href} onClick=${(/** @type {Event} */ e) => { e.preventDefault(); follow(hit.href); }}>${hit.body}</a></li>`)}</ul>`}
      ${is && hits.length === 0 && html`<p class="dim">nothing has that name or key</p>`}
      ${is?.more && html`<p class="dim">there are more</p>`}
    </div>`}
  </search>`;
}
