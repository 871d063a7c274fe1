// What happens along the ticks and what it costs: by kind, model and cell, and budgets
// burning down.
import { html } from './lib.js';
import { pathOf } from './api.js';
import { Chart, sums } from './chart.js';
import { isReal, when } from './clock.js';
import { useAnswer } from './live.js';
import { at } from './moment.js';
import { there } from './place.js';
import { CommandNow, Head, Trouble } from './parts.js';
import { number, spelled } from './text.js';

/** Meters is the view. @param {{world: string}} props */
export function Meters({ world }) {
  const { is, error } = useAnswer(pathOf(world, 'series') + '?buckets=200&limit=30' + (at() ? '&to=' + encodeURIComponent(at()) : ''));
  const budgets = useAnswer(pathOf(world, 'budgets') + '?limit=1000');
  const rules = useAnswer(pathOf(world, 'manifest'), true);
  const ticks = (is?.ticks ?? []).filter((/** @type {any} */ t) => t.to > 0 || !isReal()); // of tick 0 is only that it was made, long before
  return html`<${Head} title="Meters" about=${is && (ticks.length ? (isReal() ? `${when(ticks[0].from)} to ${when(ticks[ticks.length - 1].to)}` : `ticks ${number(ticks[0].from)} to ${number(ticks[ticks.length - 1].to)}`) : 'nothing has happened')} />
    <${Trouble} of=${error ?? budgets.error} />
    <div class="pad wide">
      <${Along} ticks=${ticks} />
      <${Budgets} of=${budgets.is} ticks=${ticks} />
      <${Costs} name="kind of effect" of=${is?.kinds} rest=${is?.rest.kinds} />
      <${Costs} name="model" of=${is && byModel(is.kinds, rules.is?.manifest?.effects ?? {})} />
      <${Costs} name="cell" of=${is?.cells} rest=${is?.rest.cells} to=${(/** @type {string} */ cell) => there('cells', { of: cell })} />
      ${ticks.length > 0 && html`<details><summary>the ticks as numbers</summary><${Numbers} ticks=${ticks} /></details>`}
      ${budgets.is?.budgets.length === 0 && html`<p class="dim">This world has no budgets.</p>`}<footer><${CommandNow} line="worldctl budget list" /></footer>
    </div>`;
}

/** What is counted of a tick, by the kind of its records and how they came out. */
const counted = {
  events: /^event\./, steps: /^cell\.(stepped|failed|step_failed)/, asked: /^intent\.(emitted|awaiting_approval|denied)/, ok: /^invocation\.finished ok/,
  bad: /^(invocation\.finished (?!ok)|intent\.in_doubt|intent\.denied|cell\.failed|cell\.step_failed)/,
};

/** count is how many records of a tick are counted so. @param {any} tick @param {keyof typeof counted} as */
const count = (tick, as) => Object.entries(tick.counts).reduce((n, [what, of]) => (counted[as].test(what) ? n + Number(of) : n), 0);

/** Along are the charts along the ticks. @param {{ticks: any[]}} props */
function Along({ ticks }) {
  const of = (/** @type {keyof typeof counted} */ as) => ticks.map((t) => count(t, as));
  const cost = (/** @type {string} */ unit) => sums(ticks.map((t) => Number(t.cost[unit] ?? 0)));
  return html`
    <${Chart} title="Steps and events" ticks=${ticks} lines=${[{ name: 'steps', color: 'ink', of: of('steps') }, { name: 'events', color: 'event', of: of('events') }]} />
    <${Chart} title="Effects" ticks=${ticks} lines=${[{ name: 'asked for', color: 'link', of: of('asked') }, { name: 'answered', color: 'good', of: of('ok') }, { name: 'not well', color: 'bad', of: of('bad') }]} />
    <${Chart} title="Answers so far" ticks=${ticks} lines=${[{ name: 'answers', color: 'good', of: cost('answers') }]} />
    <${Chart} title="Tokens so far" ticks=${ticks} lines=${[{ name: 'tokens', color: 'link', of: cost('tokens') }]} />
    <${Chart} title="Money so far, in millionths" ticks=${ticks} lines=${[{ name: 'micros', color: 'warn', of: cost('micros') }]} />`;
}

/** byModel sums what kinds cost by the model that the rules in force have them ask. @param {any[]} kinds @param {Record<string, any>} effects */
function byModel(kinds, effects) {
  /** @type {Map<string, any>} */
  const by = new Map();
  for (const k of kinds) {
    const model = Object.hasOwn(effects, k.name) ? effects[k.name].config?.model : undefined;
    if (typeof model !== 'string') continue;
    const sum = by.get(model) ?? { name: model };
    for (const unit of units) sum[unit] = (sum[unit] ?? 0) + Number(k[unit] ?? 0);
    by.set(model, sum);
  }
  return [...by.values()];
}

const units = ['answers', 'tokens', 'bytes', 'micros'];

/** Costs are what some things cost, the dearest first. @param {{name: string, of: any[] | null, rest?: any, to?: (name: string) => string}} props */
function Costs({ name, of, rest, to }) {
  if (!of?.length) return null;
  const rows = rest?.answers > 0 ? [...of, { ...rest, name: null }] : of;
  const told = units.filter((u) => rows.some((r) => r[u]));
  return html`<h2 class="sub">Cost by ${name}</h2><div class="scroll" tabindex="0" role="region" aria-label=${'cost by ' + name}><table>
    <thead><tr><th>${name}</th>${told.map((u) => html`<th class="n" key=${u}>${u}</th>`)}</tr></thead>
    <tbody>${rows.map((r, i) => html`<tr key=${i}><td>${r.name === null ? html`<span class="dim">all others</span>` : to ? html`<a href=${to(r.name)}>${spelled(r.name)}</a>` : spelled(r.name)}</td>
      ${told.map((u) => html`<td class="n" key=${u}>${number(r[u] ?? 0)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

/** Budgets are how they stand now, and how that of the world burnt down. @param {{of: any, ticks: any[]}} props */
function Budgets({ of, ticks }) {
  const all = of?.budgets ?? [];
  if (all.length === 0) return null;
  const burns = all.filter((/** @type {any} */ b) => b.scope === 'world' && b.renews === 0).flatMap((/** @type {any} */ b) => b.units.filter((/** @type {any} */ u) => units.includes(u.unit)));
  return html`<h2 class="sub">Budgets ${at() && html`<small>as of now, not of the moment that is looked at</small>`}</h2>
    <div class="scroll" tabindex="0" role="region" aria-label="budgets"><table>
      <thead><tr><th>budget</th><th>unit</th><th class="n">limit</th><th class="n">spent</th><th class="n">held</th><th class="n">left</th><th>so far</th><th class="n">wait</th></tr></thead>
      <tbody>${all.flatMap((/** @type {any} */ b) => b.units.map((/** @type {any} */ u) => html`<tr key=${b.scope + b.name + u.unit}>
        <td>${spelled(b.scope)} <b>${spelled(b.name)}</b></td><td>${spelled(u.unit)}</td>
        <td class="n">${number(u.limit)}</td><td class="n">${number(u.spent)}</td><td class="n">${number(u.held)}</td><td class="n">${number(u.left)}</td>
        <td><meter min="0" max=${u.limit || 1} value=${u.spent + u.held} aria-label=${'spent and held of ' + spelled(u.unit)}></meter></td><td class="n">${b.waiting}</td></tr>`))}</tbody>
    </table></div>
    ${burns.map((/** @type {any} */ u) => html`<${Chart} key=${u.unit} title=${'Left of the ' + u.unit + ' of the world'} ticks=${ticks}
      lines=${[{ name: 'left', color: 'warn', of: sums(ticks.map((t) => Number(t.cost[u.unit] ?? 0))).map((spent) => Math.max(0, u.limit - spent)) }]} />`)}`;
}

/** Numbers are the ticks as a table. @param {{ticks: any[]}} props */
function Numbers({ ticks }) {
  const columns = /** @type {(keyof typeof counted)[]} */ (Object.keys(counted));
  const told = units.filter((u) => ticks.some((t) => t.cost[u]));
  return html`<div class="scroll" tabindex="0" role="region" aria-label="ticks"><table><thead><tr><th>ticks</th>${columns.map((c) => html`<th class="n" key=${c}>${c}</th>`)}${told.map((u) => html`<th class="n" key=${u}>${u}</th>`)}</tr></thead>
    <tbody>${ticks.map((t) => html`<tr key=${t.from}><td><a href=${there('timeline', { at: 't' + t.to })}>${t.from === t.to ? when(t.to) : `${when(t.from)}–${when(t.to)}`}</a></td>
      ${columns.map((c) => html`<td class="n" key=${c}>${number(count(t, c))}</td>`)}${told.map((u) => html`<td class="n" key=${u}>${number(t.cost[u] ?? 0)}</td>`)}</tr>`)}</tbody></table></div>`;
}
