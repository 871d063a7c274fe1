// What a proposal would have done: the report of its last shadow, as tables. Each line leads
// to the record of the history that it is about, where old and new stand side by side.
import { html } from './lib.js';
import { pathOf } from './api.js';
import { useAnswer } from './live.js';
import { there } from './place.js';
import { Trouble } from './parts.js';
import { line, number, spelled } from './text.js';

/** @typedef {{was: string, is: string}} Pair what was and what would be */

/** The tables of a report, in the order in which they matter, and how their rows read. */
const tables = [
  { of: 'decisions_changed', name: 'Decisions that would be others', sides: (/** @type {any} */ r) => ({ was: r.was, is: r.is + (r.rules.length ? ' by ' + r.rules.join(', ') : '') }) },
  { of: 'intents_new', name: 'Effects besides', sides: (/** @type {any} */ r) => ({ was: '', is: r.decision }) },
  { of: 'intents_gone', name: 'Effects that would be gone', sides: (/** @type {any} */ r) => ({ was: r.decision, is: '' }) },
  { of: 'failed', name: 'Steps that would fail', sides: (/** @type {any} */ r) => ({ was: '', is: r.error }) },
  { of: 'mended', name: 'Steps that would fail no more', sides: (/** @type {any} */ r) => ({ was: r.error, is: '' }) },
  { of: 'events_new', name: 'Events besides', sides: (/** @type {any} */ r) => ({ was: '', is: r.data }) },
  { of: 'events_gone', name: 'Events that would be gone', sides: (/** @type {any} */ r) => ({ was: r.data, is: '' }) },
  { of: 'refused', name: 'Inputs that it would not take', sides: (/** @type {any} */ r) => ({ was: '', is: r.error }) },
  { of: 'unknown', name: 'Unknown beyond here', unknown: true, sides: (/** @type {any} */ r) => ({ was: '', is: r.why }) },
];

/** moneys are the names under which params say how much money. */
const moneys = /cent|micro|amount|price|cost|total|sum|usd|eur|fee/i;

/** money is the most that params say under a name of money; 0: nothing. @param {string} params JSON */
export function money(params) {
  let most = 0;
  const look = (/** @type {any} */ of, /** @type {string} */ name) => {
    if (typeof of === 'number' && moneys.test(name)) most = Math.max(most, Math.abs(of));
    else if (of && typeof of === 'object') for (const [k, v] of Object.entries(of)) look(v, Array.isArray(of) ? name : k);
  };
  try {
    look(JSON.parse(params), '');
  } catch { /* it was cut */ }
  return most;
}

/** Report tells all of it. @param {{of: any, proposal: string}} props */
export function Report({ of, proposal }) {
  const counts = Object.entries(of.counts).filter(([, n]) => n > 0);
  const same = counts.length === 0 && !of.first_divergence;
  return html`
    ${same ? html`<p><b>Nothing would have been otherwise</b> in ${number(of.events)} events.</p>`
      : html`<div class="tiles">${counts.map(([name, n]) => html`<div key=${name} class=${name === 'unknown' ? 'tile doubt' : 'tile'}><b>${number(/** @type {number} */ (n))}</b> ${name.replace(/_/g, ' ')}</div>`)}</div>`}
    <p class="dim">Records ${number(of.from)} to ${number(of.to)}, ${number(of.events)} events. Cost: ${cost(of.cost_was)}${cost(of.cost_is) === cost(of.cost_was) ? ', and the same' : ', and would have been ' + cost(of.cost_is)}.</p>
    ${tables.map((t) => html`<${Table} key=${t.of} table=${t} rows=${of[t.of]} all=${of.counts[t.of]} proposal=${proposal} />`)}
    <${CellsChanged} rows=${of.cells_changed} all=${of.counts.cells_changed} />
    ${of.first_divergence && html`<h3>It parts at <a href=${at(of.first_divergence, proposal)}>#${of.first_divergence.record}</a></h3>
      <${Pair} of=${{ was: of.first_divergence.recorded, is: of.first_divergence.computed }} />`}`;
}

/** cost is one, in words. @param {Record<string, number>} of */
const cost = (of) => Object.entries(of).filter(([, n]) => n > 0).map(([unit, n]) => number(n) + ' ' + unit).join(', ') || 'nothing';

/** at is the timeline, at the record of a line, or in the lane of its cell. @param {any} row @param {string} proposal */
const at = (row, proposal) => there('timeline', row.record ? { of: row.record, proposal } : { filter: row.cell, proposal });

/** @param {{table: any, rows: any[], all: number, proposal: string}} props */
function Table({ table, rows, all, proposal }) {
  if (!all) return null;
  const sorted = rows.map((r) => ({ r, money: money(r.params ?? '') })).sort((a, b) => b.money - a.money);
  const paid = sorted.some((x) => x.money > 0);
  return html`<h3 class=${table.unknown ? 'doubt' : ''}>${table.name} <small>${number(all)}${all > rows.length ? ', of which the report lists ' + number(rows.length) : ''}${paid ? ', most money first' : ''}</small></h3>
    <div class="scroll" tabindex="0" role="region" aria-label=${table.name}><table class=${table.unknown ? 'unknown' : ''}>
      <thead><tr><th>where</th>${paid && html`<th class="n">amount</th>`}<th>was</th><th>would be</th><th>record</th></tr></thead>
      <tbody>${sorted.map(({ r, money: n }, i) => {
        const { was, is } = table.sides(r);
        return html`<tr key=${i}><td>${spelled(r.cell ?? '')} <b>${spelled(r.kind ?? r.name ?? '')}</b> <code>${line(r.params ?? '', 80)}</code></td>
          ${paid && html`<td class="n">${n ? number(n) : ''}</td>`}<td>${line(was, 60)}</td><td class=${table.unknown ? 'doubt' : ''}>${line(is, 60)}</td>
          <td><a href=${at(r, proposal)}>${r.record ? '#' + r.record : 'its lane'}</a></td></tr>`;
      })}</tbody>
    </table></div>`;
}

/** CellsChanged are the cells that would be others now. @param {{rows: any[], all: number}} props */
function CellsChanged({ rows, all }) {
  if (!all) return null;
  return html`<h3>Cells that would be others <small>${number(all)}${all > rows.length ? ', of which the report lists ' + number(rows.length) : ''}</small></h3>
    <ol class="story">${rows.map((c) => html`<li key=${c.cell}><a href=${there('cells', { of: c.cell })}>${spelled(c.cell)}</a> ${spelled(c.what)}, ${c.steps_was} → ${c.steps_is} steps
      ${c.unknown && html` <b class="doubt">unknown from here on: it waits for an answer that the history does not have</b>`}
      ${c.state.map((/** @type {any} */ s) => html`<div key=${s.path}><code>${line(s.path || 'all of it', 80)}</code> <${Pair} of=${s} /></div>`)}</li>`)}</ol>`;
}

/** Pair has what was and what would be, side by side. @param {{of: Pair}} props */
function Pair({ of }) {
  return html`<div class="pair"><div><small>was</small><pre class="block">${of.was ? spelled(of.was) : 'nothing'}</pre></div>
    <div><small>would be</small><pre class="block">${of.is ? spelled(of.is) : 'nothing'}</pre></div></div>`;
}

/** Beside tells what a proposal would have done otherwise at a record. @param {{world: string, proposal: string, record: number}} props */
export function Beside({ world, proposal, record }) {
  const { is, error } = useAnswer(pathOf(world, 'proposals', proposal), true);
  if (!is?.report) return html`<${Trouble} of=${error} />`;
  const found = tables.flatMap((t) => is.report[t.of].filter((/** @type {any} */ r) => r.record === record).map((/** @type {any} */ r) => ({ name: t.name, r, pair: t.sides(r) })));
  const parts = is.report.first_divergence?.record === record;
  return html`<div class="pad beside"><b>By <a href=${there('rules', { of: proposal })}>${spelled(proposal)}</a></b>
    ${found.length === 0 && !parts && html`<span> this would have been the same.</span>`}
    ${found.map((f, i) => html`<div key=${i}>${f.name}: ${spelled(f.r.cell ?? '')} <b>${spelled(f.r.kind ?? f.r.name ?? '')}</b> <code>${line(f.r.params ?? '', 120)}</code><${Pair} of=${f.pair} /></div>`)}
    ${parts && html`<div>The history parts here<${Pair} of=${{ was: is.report.first_divergence.recorded, is: is.report.first_divergence.computed }} /></div>`}</div>`;
}
