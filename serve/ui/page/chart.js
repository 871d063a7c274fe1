// Lines along the ticks of a world. Its colors are those of the theme, and what it shows
// stands below it as numbers, for whoever cannot see it.
import { html } from './lib.js';
import { atTick, when } from './clock.js';
import { lead, there } from './place.js';
import { number } from './text.js';

/** @typedef {{name: string, color: string, of: number[]}} Line of: a number for each stretch of ticks */

const [wide, high, left, below] = [640, 120, 56, 18];

/** Chart draws lines; a click leads to the end of the ticks below it. @param {{title: string, ticks: {from: number, to: number}[], lines: Line[]}} props */
export function Chart({ title, ticks, lines }) {
  const shown = lines.filter((l) => l.of.some((v) => v > 0));
  if (ticks.length === 0 || shown.length === 0) return null;
  const [first, last] = [ticks[0].from, ticks[ticks.length - 1].to];
  const most = Math.max(...shown.map((l) => Math.max(...l.of)));
  const x = (/** @type {number} */ i) => left + ((ticks[i].from + ticks[i].to) / 2 - first + 0.5) * ((wide - left) / (last - first + 1));
  const y = (/** @type {number} */ v) => 8 + (high - 8) * (1 - v / most);
  const clicked = (/** @type {MouseEvent} */ e) => {
    const box = /** @type {Element} */ (e.currentTarget).getBoundingClientRect();
    const at = ((e.clientX - box.left) / box.width) * wide;
    const i = ticks.reduce((best, _, k) => (Math.abs(x(k) - at) < Math.abs(x(best) - at) ? k : best), 0);
    lead(there('timeline', { at: 't' + ticks[i].to }));
  };
  const sum = shown.map((l) => l.name + ' at most ' + number(Math.max(...l.of))).join(', ');
  return html`<figure class="chart"><figcaption>${title} ${shown.map((l) => html`<span key=${l.name} class=${'key ' + l.color}>${l.name}</span>`)}</figcaption>
    <svg viewBox=${`0 0 ${wide} ${high + below}`} role="img" aria-label=${`${title}, ${atTick(first)} to ${atTick(last)}: ${sum}`} onClick=${clicked}>
      ${[...new Set([0, Math.round(most / 2), most])].map((v) => html`<g key=${v}><line x1=${left} x2=${wide} y1=${y(v)} y2=${y(v)} /><text x=${left - 6} y=${y(v) + 4} text-anchor="end">${number(v)}</text></g>`)}
      <text x=${left} y=${high + 14}>${when(first)}</text><text x=${wide} y=${high + 14} text-anchor="end">${when(last)}</text>
      ${shown.map((l) => html`<g key=${l.name} class=${l.color}><polyline points=${l.of.map((v, i) => x(i).toFixed(1) + ',' + y(v).toFixed(1)).join(' ')} />
        ${ticks.length <= 60 && l.of.map((v, i) => html`<circle key=${i} cx=${x(i)} cy=${y(v)} r="2"><title>${when(ticks[i].to)}: ${number(v)} ${l.name}</title></circle>`)}</g>`)}
    </svg></figure>`;
}

/** sums are the numbers of a list, each with all before it. @param {number[]} of */
export function sums(of) {
  let sum = 0;
  return of.map((v) => (sum += v));
}
