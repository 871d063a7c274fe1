// The cells of a world, and how one stands or stood.
import { html } from './lib.js';
import { pathOf } from './api.js';
import { when } from './clock.js';
import { Stuck } from './decide.js';
import { useAnswer } from './live.js';
import { at, ofMoment } from './moment.js';
import { here, place, there } from './place.js';
import { Command, Fact, Head, List, Trouble, word } from './parts.js';
import { Mark, sentence, tone } from './story.js';
import { line, number, spelled, Value } from './text.js';

/** Cells is the view. @param {{world: string, status: any}} props */
export function Cells({ world, status }) {
  const after = place.value.of.after ?? '';
  const { is, error } = useAnswer(pathOf(world, 'cells') + `?limit=500${after ? '&after=' + encodeURIComponent(after) : ''}${ofMoment('&')}`);
  const cells = is?.cells ?? [];
  const chosen = place.value.of.of || cells[0]?.cell || '';
  const items = cells.map((/** @type {any} */ c) => ({
    id: c.cell,
    href: here({ of: c.cell }),
    body: html`<b>${spelled(c.cell)}</b><span>${c.n} steps${c.mailbox ? `, ${c.mailbox} waiting` : ''}${c.halted ? html` <em class="halted">halted</em>` : ''}</span>`,
  }));
  return html`<div class="two">
    <section class="side">
      <${Head} title="Cells" about=${at() ? '' : number(status?.cells ?? 0)}>${is?.next && html`<a href=${here({ after: cells[cells.length - 1].cell, of: '' })}>more</a>`}<//>
      <${Trouble} of=${error} />
      <${List} label="Cells" items=${items} chosen=${chosen} />
      <footer><${Command} line=${'worldctl cell list' + (at() ? ' --at ' + word(at()) : '')} /></footer>
    </section>
    <section class="main">${chosen && html`<${Cell} key=${chosen} world=${world} cell=${chosen} />`}</section>
  </div>`;
}

/** Cell is one, at the moment that is looked at. @param {{world: string, cell: string}} props */
function Cell({ world, cell }) {
  const name = encodeURIComponent(cell);
  const { is, error } = useAnswer(pathOf(world, 'cell') + `?cell=${name}&mail=20${ofMoment('&')}`);
  const step = useAnswer(pathOf(world, 'cell', 'diff') + `?cell=${name}${ofMoment('&')}`);
  const way = useAnswer(pathOf(world, 'records') + `?raw=false&cell=${name}&limit=200&before=${(is?.at ?? 0) + 1}`);
  if (!is) return html`<${Trouble} of=${error} />`;
  return html`<${Head} title=${spelled(cell)} about=${at() ? 'as of #' + is.at : 'now'} />
    <div class="pad">
      <${Trouble} of=${error} />
      <dl class="facts">
        <${Fact} name="steps">${is.n}<//>
        <${Fact} name="stands">${is.halted ? html`<em class="halted">halted</em>` : 'goes on'}<//>
        ${is.failure && html`<${Fact} name="failed at"><a href=${there('records', { of: is.failure.event })}>#${is.failure.event}</a><pre class="block">${spelled(is.failure.error)}</pre><//>`}
      </dl>
      <${Stuck} world=${world} of=${is} />
      <h2 class="sub">State</h2>
      <div class="box" id="state"><${Value} of=${is.state} /></div>
      <${Step} of=${step.is} error=${step.error} />
      <${Due} name="Mailbox" all=${is.mailbox_len} of=${is.mailbox} />
      <${Due} name="Scheduled" all=${is.scheduled_len} of=${is.scheduled} />
      <${Due} name="Timers" all=${is.timers_len} of=${is.timers} />
      <${Rights} world=${world} cell=${cell} />
      <h2 class="sub">Its way</h2>
      <ol class="story">${(way.is?.records ?? []).map((/** @type {any} */ r) => html`<li key=${r.id} class=${r.id === is.at ? 'here' : ''}>
        <a href=${here({ of: cell, at: r.id })} title="as of this record">#${r.id}</a> <${Mark} of=${r} /> <b>${spelled(r.kind)}</b> <small>${when(r.time)}</small><p class=${tone(r)}>${sentence(r)}</p></li>`)}</ol>
      <footer><${Command} line=${`worldctl cell show ${word(cell)}${at() ? ' --at ' + word(at()) : ''}`} /></footer>
    </div>`;
}

/** Step is what the last step changed. @param {{of: any, error: Error | null}} props */
function Step({ of, error }) {
  if (!of) return error && html`<p class="dim">What its last step changed cannot be told: ${spelled(error.message)}.</p>`;
  return html`<h2 class="sub">What its last step changed <small>#${of.a} to #${of.b}</small></h2>
    ${of.same ? html`<p class="dim">Nothing.</p>` : html`<${Changes} of=${of.state} />`}`;
}

/** Changes are the places in which two values differ. @param {{of: {path: string, a?: any, b?: any}[]}} props */
export function Changes({ of }) {
  return html`<div class="box"><dl class="value changes">${of.map((c) => html`<div key=${c.path}><dt>${line(c.path || 'all of it', 80)}</dt><dd>
    ${c.a !== undefined && html`<del><${Value} of=${c.a} /></del>`} ${c.b !== undefined && html`<ins><${Value} of=${c.b} /></ins>`}</dd></div>`)}</dl></div>`;
}

/** Due is what waits for a cell, or falls due for it. @param {{name: string, all: number, of: any[]}} props */
function Due({ name, all, of }) {
  if (!all) return null;
  return html`<h2 class="sub">${name} <small>${number(all)}${all > of.length ? ', the first ' + of.length : ''}</small></h2>
    <ol class="story">${of.map((e) => html`<li key=${e.record + e.name}><a href=${there('records', { of: e.record })}>#${e.record}</a> <b>${spelled(e.name)}</b>
      ${e.at !== undefined && html` <small>at ${when(e.at)}</small>`}<p>${line(e.data)}</p></li>`)}</ol>`;
}

/** Rights are what the rules in force give a cell, and what of that is used. @param {{world: string, cell: string}} props */
function Rights({ world, cell }) {
  const rules = useAnswer(pathOf(world, 'manifest'), true);
  const drawn = useAnswer(at() ? null : pathOf(world, 'budgets') + '?limit=1000');
  const { reducers = {}, caps = {} } = rules.is?.manifest ?? {};
  const reducer = cell.slice(0, cell.indexOf('/'));
  const grants = Object.hasOwn(reducers, reducer) ? reducers[reducer].grants ?? [] : [];
  const budgets = (drawn.is?.budgets ?? []).filter((/** @type {any} */ b) => (b.scope === 'cell' && b.name === cell) || (b.scope === 'capability' && grants.includes(b.name)));
  return html`<h2 class="sub">Capabilities <small>by the rules in force now</small></h2>
    ${grants.length === 0 ? html`<p class="dim">None.</p>` : html`<dl class="facts">${grants.map((/** @type {string} */ g) => html`<${Fact} key=${g} name=${spelled(g)}>${Object.hasOwn(caps, g) && html`${spelled(caps[g].type)} <code>${line(caps[g].params ?? {}, 200)}</code>`}<//>`)}</dl>`}
    ${budgets.length > 0 && html`<h2 class="sub">Budgets</h2><dl class="facts">${budgets.flatMap((/** @type {any} */ b) => b.units.map((/** @type {any} */ u) => html`<${Fact} key=${b.scope + b.name + u.unit} name=${spelled(b.name)}>
      ${number(u.left)} of ${number(u.limit)} ${spelled(u.unit)} left${u.held > 0 && `, ${number(u.held)} held`} <meter min="0" max=${u.limit || 1} value=${u.spent + u.held} aria-label=${'spent and held of ' + spelled(u.unit)}></meter><//>`))}</dl>`}`;
}
