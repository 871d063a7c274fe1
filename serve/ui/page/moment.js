// The moment that is looked at: one for all views, and in the address. Without one the page
// shows what is now, and follows it.
import { html, useEffect, useState } from './lib.js';
import { may } from './api.js';
import { isReal, when } from './clock.js';
import { columns } from './columns.js';
import { useKey } from './parts.js';
import { amend, here, lead, place, there } from './place.js';
import { number, spelled } from './text.js';

/** at is the moment that is looked at, as the API takes it; "": now. */
export const at = () => place.value.of.at ?? '';

/** @typedef {import('./columns.js').Columns} Columns */

/**
 * recordAt is the last record of the moment that is looked at, as far as the columns tell:
 * the newest one where there is no moment, 0 where they do not know it.
 * @param {Columns} of
 */
export function recordAt(of) {
  const text = at();
  if (!text) return of.n;
  const tick = /^t(\d+)$/.exec(text);
  if (!tick) return /^#?\d+$/.test(text) ? Number(text.replace('#', '')) : 0;
  let low = 0;
  for (let high = of.n; low < high; ) {
    const mid = (low + high) >> 1;
    if (of.time[mid] <= Number(tick[1])) low = mid + 1;
    else high = mid;
  }
  return low;
}

/** ofMoment is what a query of the API has for the moment that is looked at. @param {string} before */
export const ofMoment = (before) => (at() ? before + 'at=' + encodeURIComponent(at()) : '');

/** views in which a record is chosen, which can be made the moment. */
const withRecord = ['timeline', 'records', 'conversations', 'history'];

/** Moment says which one is looked at, and leads to others and back to now. */
export function Moment() {
  const { of } = columns.value;
  const n = recordAt(of);
  const past = at() !== '';
  const { view } = place.value;
  const chosen = Number(place.value.of.of || 0);
  const walks = withRecord.includes(view);
  const step = (/** @type {number} */ by) => amend({ at: Math.max(1, Math.min(of.n, n + by)) });
  useKey('m', () => lead(here({ at: chosen })), walks && chosen > 0);
  useKey('[', () => step(-1), past && n > 0);
  useKey(']', () => step(1), past && n > 0);
  const [playing, setPlaying] = useState(false);
  const ends = !past || n >= of.n;
  useEffect(() => {
    if (!playing || ends) return setPlaying(false);
    const next = setTimeout(() => step(1), 250);
    return () => clearTimeout(next);
  }, [playing, n, ends]);
  useKey('p', () => setPlaying(!playing), past && n > 0);
  useKey('.', () => lead(here({ at: '' })), past);
  if (!past) return null;
  return html`<div class="moment" role="status">
    <span>as of <a href=${there('timeline', { of: n || undefined })}><b>${n ? '#' + n : spelled(at())}</b></a>${n > 0 && n <= of.n ? ` (${isReal() ? when(of.time[n - 1]) : `tick ${number(of.time[n - 1])}`})` : ''}: nothing can be decided ${view === 'history' && may('admin') ? 'or changed in the past; what if asks how it might have gone on' : 'in the past'}</span>
    <span class="right"><button type="button" disabled=${n < 2} onClick=${() => step(-1)}>earlier <kbd>[</kbd></button>
      <button type="button" disabled=${n >= of.n} onClick=${() => step(1)}>later <kbd>]</kbd></button>
      <button type="button" aria-pressed=${playing} disabled=${n >= of.n} onClick=${() => setPlaying(!playing)}>play <kbd>p</kbd></button>
      <a href=${here({ at: '' })}>now <kbd>.</kbd></a></span>
  </div>`;
}
