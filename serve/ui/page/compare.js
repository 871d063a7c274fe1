// How two moments differ, of one world or of two.
import { html, useEffect, useState } from './lib.js';
import { dirOf, pathOf } from './api.js';
import { atTick } from './clock.js';
import { useAnswer } from './live.js';
import { calledOf } from './message.js';
import { at } from './moment.js';
import { address, go, place } from './place.js';
import { Command, Fact, Head, Trouble, word } from './parts.js';
import { line, number, short, spelled, Whole } from './text.js';

/** Compare is the view. @param {{world: string}} props */
export function Compare({ world }) {
  const { a = '', b = '', with: other = '' } = place.value.of;
  const asked = a !== '' || other !== '';
  const query = new URLSearchParams({ a: a || 'head', b: b || 'head', limit: '100' });
  if (other) query.set('with', other);
  const { is, error } = useAnswer(asked ? pathOf(world, 'compare') + '?' + query : null, true);
  const command = `worldctl diff ${word(a || 'head')} ${other ? word((dirOf(other) || '../OTHER') + (b ? '@' + b : '')) : word(b || 'head')}`;
  return html`<${Head} title="Compare" about=${is ? (is.same ? 'they are the same' : 'they differ') : ''} />
    <div class="pad wide">
      <${Choice} key=${a + ' ' + b + ' ' + other} world=${world} a=${a} b=${b} other=${other} />
      <${Trouble} of=${error} />
      ${!asked && html`<p class="dim">Say which moments: a record (#120), the end of a tick (t5), a snapshot, so many records before the last (-10), head.</p>`}
      ${asked && !is && !error && html`<p class="dim">It is computed…</p>`}
      ${is && html`<${Difference} of=${is} worlds=${[world, other || world]} />`}
      <footer>${other && html`<small>while nobody has the other world open: </small>`}<${Command} line=${command} /></footer>
    </div>`;
}

/** Choice says what is compared. @param {{world: string, a: string, b: string, other: string}} props */
function Choice({ world, a, b, other }) {
  const worlds = useAnswer('/api/worlds', true);
  const snapshots = useAnswer(pathOf(world, 'snapshots') + '?limit=100', true);
  const [left, setLeft] = useState(a || at());
  const [right, setRight] = useState(b);
  const [beside, setBeside] = useState(other);
  useEffect(() => setBeside(other), [worlds.is]); // once there is something to choose from
  const show = (/** @type {Event} */ e) => {
    e.preventDefault();
    go(world, 'compare', { a: left.trim().replace(/^#/, '') || 'head', b: right.trim().replace(/^#/, ''), with: beside });
  };
  const enter = (/** @type {KeyboardEvent} */ e) => e.key === 'Enter' && show(e);
  return html`<div class="choices" role="search" aria-label="What is compared" onKeyDown=${enter}>
    <label>This world at<input list="moments" value=${left} placeholder="head" onInput=${(/** @type {any} */ e) => setLeft(e.target.value)} /></label>
    <label>and<select value=${beside} onChange=${(/** @type {any} */ e) => setBeside(e.target.value)}>
      <option value="">this world</option>
      ${(worlds.is?.worlds ?? []).filter((/** @type {any} */ w) => w.id !== world).map((/** @type {any} */ w) => html`<option key=${w.id} value=${w.id}>${line(w.name, 40)} · ${short(w.id, 6)}</option>`)}
    </select></label>
    <label>at<input list="moments" value=${right} placeholder="head" onInput=${(/** @type {any} */ e) => setRight(e.target.value)} /></label>
    <datalist id="moments">${(snapshots.is?.snapshots ?? []).map((/** @type {any} */ s) => html`<option key=${s.record} value=${s.name}></option>`)}</datalist>
    <button type="button" class="full yes" onClick=${show}>Compare</button>
  </div>`;
}

/** At leads to a record of one of the two; the world of a what-if is gone. @param {{world: string, of: number}} props */
const At = ({ world, of }) => (world ? html`<a href=${address(world, 'timeline', { of })}>#${number(of)}</a>` : html`#${number(of)}`);

/** GoesOn is what one of the two has first that the other has not. @param {{name: string, world: string, of: number}} props */
function GoesOn({ name, world, of }) {
  const { is } = useAnswer(world && of > 0 ? pathOf(world, 'records', of) + '?raw=false' : null, true);
  if (of === 0) return name + ' ends there';
  return html`${name} goes on with <${At} world=${world} of=${of} />${is && html` <b>${spelled(is.kind)}</b>${is.cells.length > 0 && ' ' + line(is.cells.join(', '), 80)}`}`;
}

/** Difference is what the API found. @param {{of: any, worlds: [string, string]}} props */
export function Difference({ of, worlds }) {
  const cells = [...of.cells.added, ...of.cells.gone, ...of.cells.changed].sort((a, b) => (a.cell < b.cell ? -1 : 1));
  const intents = [...of.intents.changed, ...of.intents.added, ...of.intents.gone];
  const { parted } = of;
  return html`<dl class="facts">
      <${Fact} name="A">${spelled(of.a.world_id)} at <${At} world=${worlds[0]} of=${of.a.at} />, ${atTick(of.a.time, worlds[0])}, state root <code>${short(of.a.state_root)}</code><//>
      <${Fact} name="B">${spelled(of.b.world_id)} at <${At} world=${worlds[1]} of=${of.b.at} />, ${atTick(of.b.time, worlds[1] || worlds[0])}, state root <code>${short(of.b.state_root)}</code><//>
      <${Fact} name="they part">${parted.common > 0 ? html`after <${At} world=${worlds[0]} of=${parted.common} />, which both have` : 'at the first record'}: <${GoesOn} name="A" world=${worlds[0]} of=${parted.a} />, <${GoesOn} name="B" world=${worlds[1]} of=${parted.b} /><//>
      ${of.a.manifest !== of.b.manifest && html`<${Fact} name="rules"><span class="warn">others: ${short(of.a.manifest, 8)}, and ${short(of.b.manifest, 8)}</span><//>`}
    </dl>
    <h2 class="sub">Cells <small>${number(cells.length + (of.left_out?.cells ?? 0))} differ${of.left_out?.cells > 0 ? ', ' + number(of.left_out.cells) + ' are not shown' : ''}${of.cells.histories > 0 ? `; ${number(of.cells.histories)} are the same and came there by other events` : ''}</small></h2>
    ${cells.map((c) => html`<${CellRow} key=${c.cell} of=${c} world=${worlds[0]} />`)}
    <h2 class="sub">Intents <small>${number(intents.length + (of.left_out?.intents ?? 0))} differ${of.left_out?.intents > 0 ? ', ' + number(of.left_out.intents) + ' are not shown' : ''}</small></h2>
    ${intents.length > 0 && html`<${Intents} of=${intents} worlds=${worlds} />`}
    <h2 class="sub">Cost since they parted</h2>
    <${Costs} of=${of.cost} />
    ${(!of.timers.same || !of.scheduled.same) && html`<dl class="facts"><${Fact} name="timers">${number(of.timers.a)} and ${number(of.timers.b)}${of.timers.same ? ', the same' : ''}<//><${Fact} name="scheduled">${number(of.scheduled.a)} and ${number(of.scheduled.b)}${of.scheduled.same ? ', the same' : ''}<//></dl>`}`;
}

/** CellRow is a cell that differs, a line a place. @param {{of: any, world: string}} props */
function CellRow({ of, world }) {
  const [open, setOpen] = useState(false);
  const shown = open ? of.state : of.state.slice(0, 5);
  return html`<div class="bubble differs">
    <header><b><a href=${address(world, 'cells', { of: of.cell })}>${line(of.cell, 80)}</a></b> <small>${of.change === 'changed' ? `step ${of.a.n} → ${of.b.n}` : of.change === 'added' ? 'only in B' : 'only in A'}</small></header>
    <dl class="value">${shown.map((/** @type {any} */ s) => html`<div key=${s.path}><dt>${line(s.path || 'state', 120)}</dt><dd>
      ${Object.hasOwn(s, 'a') && html`<del><${Whole} of=${s.a} /></del>`} ${Object.hasOwn(s, 'b') && html`<ins><${Whole} of=${s.b} /></ins>`}</dd></div>`)}</dl>
    ${of.state.length > shown.length && html`<button type="button" class="small" onClick=${() => setOpen(true)}>${number(of.state.length - shown.length)} more places</button>`}
  </div>`;
}

/** Intents are those that only one has, or that ended otherwise. @param {{of: any[], worlds: [string, string]}} props */
function Intents({ of, worlds }) {
  const side = (/** @type {any} */ x, /** @type {string} */ world) => (x ? html`${spelled(x.outcome || x.state)} ${world ? html`<a href=${address(world, 'records', { of: x.record })}>#${x.record}</a>` : ''}` : html`<span class="dim">not asked for</span>`);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Intents"><table>
    <thead><tr><th>cell</th><th>asks for</th><th>A</th><th>B</th></tr></thead>
    <tbody>${of.map((x, i) => html`<tr key=${i}><td>${line(x.cell, 60)}</td><td><b>${line(x.kind, 60)}</b> <code>${line(calledOf(x.params) ?? x.params, 60)}</code></td><td>${side(x.a, worlds[0])}</td><td>${side(x.b, worlds[1])}</td></tr>`)}</tbody>
  </table></div>`;
}

/** Costs are what both spent since they parted. @param {{of: any}} props */
function Costs({ of }) {
  const units = ['calls', 'tokens', 'bytes', 'micros'].filter((u) => of.a[u] || of.b[u]);
  if (units.length === 0) return html`<p class="dim">Nothing.</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Cost"><table>
    <thead><tr><th>unit</th><th class="n">A</th><th class="n">B</th><th class="n">B − A</th></tr></thead>
    <tbody>${units.map((u) => html`<tr key=${u}><td>${u === 'micros' ? 'money, in millionths' : u}</td><td class="n">${number(of.a[u] ?? 0)}</td><td class="n">${number(of.b[u] ?? 0)}</td><td class="n">${number((of.b[u] ?? 0) - (of.a[u] ?? 0))}</td></tr>`)}</tbody>
  </table></div>`;
}
