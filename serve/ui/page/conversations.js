// What was said to a cell, what it said and asked for, and what it was told: in the order in
// which the cell handled it, which is not that of the ticks where events were sent ahead.
import { html, useLayoutEffect, useMemo, useRef, useState } from './lib.js';
import { atTick, when } from './clock.js';
import { columns } from './columns.js';
import { at, recordAt } from './moment.js';
import { amend, here, place, there } from './place.js';
import { Command, Fact, Head, List, Trouble, word } from './parts.js';
import { leftBehind, useRollbacks } from './past.js';
import { calledOf, context, isAsked, messageOf, readable, useViews } from './message.js';
import { useRecords } from './records_by_id.js';
import { tone } from './story.js';
import { number, line, short, spelled, Value, Whole, Words } from './text.js';
import { turnsOf } from './turns.js';

/** how many cells are listed, how many turns are shown, and how many events that wait */
const [most, window_, waiting] = [200, 40, 20];

/** Conversations is the view. @param {{world: string}} props */
export function Conversations({ world }) {
  const { of, version } = columns.value;
  const filter = place.value.of.filter ?? '';
  const cells = useMemo(() => talkers(of), [of, version]);
  const wanted = cells.filter((c) => c.name.includes(filter));
  const chosen = place.value.of.of || wanted[0]?.name || '';
  const items = wanted.slice(0, most).map((c) => ({
    id: c.name,
    href: there('conversations', { of: c.name, filter }),
    body: html`<span class="talker"><b>${spelled(c.name)}</b><small>${number(c.turns)}</small></span>`,
  }));
  return html`<div class="two">
    <section class="side">
      <${Head} title="Conversations" about=${number(cells.length) + (cells.length === 1 ? ' cell' : ' cells')} />
      <div class="above"><input aria-label="Filter cells" placeholder="filter cells" value=${filter} onInput=${(/** @type {any} */ e) => amend({ filter: e.target.value })} /></div>
      <${List} label="Cells" items=${items} chosen=${chosen} />
      ${wanted.length > most && html`<p class="pad dim">${number(wanted.length - most)} more: filter them.</p>`}
      <footer><${Command} line=${'worldctl cell list'} /></footer>
    </section>
    <section class="main">${chosen && html`<${Talk} key=${chosen} world=${world} cell=${chosen} />`}</section>
  </div>`;
}

/** talkers are the cells that have handled something, by name. @param {import('./columns.js').Columns} of */
function talkers(of) {
  const steps = of.whats.map((w) => w.startsWith('cell.stepped') || w.startsWith('cell.failed'));
  const turns = new Int32Array(of.cells.length);
  for (let i = 0; i < of.n; i++) if (steps[of.what[i]] && of.cell[i] >= 0) turns[of.cell[i]]++;
  const all = of.cells.map((name, c) => ({ name, turns: turns[c] })).filter((c) => c.turns > 0);
  return all.sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
}

/** Talk is the conversation of one cell. @param {{world: string, cell: string}} props */
function Talk({ world, cell }) {
  const { of, version } = columns.value;
  const back = useRollbacks(world);
  const last = Math.min(recordAt(of) || of.n, of.n);
  const left = useMemo(() => leftBehind(back, last), [back, of, version, last]);
  const { turns, pending } = useMemo(() => turnsOf(of, cell, left), [of, version, cell, left]);
  const all = last < of.n ? turns.filter((t) => t.step <= last) : turns;
  const end = Math.min(all.length, Number(place.value.of.to || all.length));
  const start = Math.max(0, end - window_);
  const shown = all.slice(start, end);
  const waits = last < of.n || end < all.length ? [] : pending;
  const { is, error } = useRecords(world, [...shown.flatMap((t) => t.records), ...waits.slice(0, waiting)]);
  const views = useViews(world, is);
  const items = itemsOf(shown, is, views);
  const room = useRef(/** @type {HTMLElement | null} */ (null));
  const atEnd = useRef(true);
  useLayoutEffect(() => { // who reads the end goes on reading the end
    const on = room.current?.parentElement;
    if (on && atEnd.current) on.scrollTop = on.scrollHeight;
  }, [items.length, end]);
  const calls = items.filter((x) => x.of === 'call').length;
  return html`<${Head} title=${spelled(cell)} about=${`${number(all.length)} turns` + (calls ? `, ${number(calls)} ${calls === 1 ? 'call' : 'calls'} shown` : '')}>
      <a href=${there('cells', { of: cell })}>state</a>
      <a href=${there('timeline', { filter: cell })}>timeline</a>
    <//>
    <${Trouble} of=${error} />
    ${of.n > 0 && turns.length === 0 && html`<p class="pad dim">This cell has handled nothing yet.</p>`}
    <div class="talk" ref=${room} onMouseMove=${() => { const on = room.current?.parentElement; atEnd.current = Boolean(on && on.scrollHeight - on.scrollTop - on.clientHeight < 60); }}>
      ${start > 0 && html`<p class="between"><a href=${here({ to: start })}>${number(start)} turns before</a></p>`}
      ${items.map((x) => html`<${Item} key=${x.of + x.record.id} item=${x} left=${left(x.step)} />`)}
      ${waits.length > 0 && html`<h2 class="sub">Not handled yet <small>${number(waits.length)}</small></h2>`}
      ${waits.slice(0, waiting).map((id) => is.get(id)).map((r) => r && html`<${Item} key=${'waits' + r.id} item=${{ of: 'event', record: r, said: messageOf(r.payload?.data, views.get(r.name)), step: r.id }} left=${0} />`)}
      ${end < all.length && html`<p class="between"><a href=${here({ to: end + window_ >= all.length ? '' : end + window_ })}>${number(all.length - end)} turns after</a></p>`}
      <footer><${Command} line=${'worldctl timeline ' + word(cell) + (at() ? ' --to ' + word(at()) : '')} /></footer>
    </div>`;
}

/**
 * @typedef {{of: 'event' | 'said' | 'call' | 'answer' | 'timer' | 'failed' | 'other', record: any, step: number, said?: any, answer?: any, before?: any, call?: any, what?: string}} Item
 */

/**
 * itemsOf are what is shown of turns, one after the other. An answer that a cell handled right
 * after it had asked is shown with what it asked. An agent sends what the user has said with
 * each request: it is shown once.
 * @param {import('./turns.js').Turn[]} turns @param {Map<number, any>} is @param {Map<string, any>} views @returns {Item[]}
 */
function itemsOf(turns, is, views) {
  /** @type {Item[]} */
  const items = [];
  let prompt = '';
  for (const turn of turns) {
    const event = is.get(turn.event);
    const step = turn.step;
    const before = items[items.length - 1];
    const call = is.get(turn.answers);
    if (event && call) {
      if (before?.of === 'call' && before.record.id === call.id) before.answer = event;
      else items.push({ of: 'answer', record: event, call, step });
    } else if (event) {
      const data = event.payload?.data;
      const again = isAsked(data) && data.prompt === prompt;
      if (isAsked(data)) prompt = data.prompt;
      if (!again) items.push({ of: event.kind === 'timer.fired' ? 'timer' : 'event', record: event, said: messageOf(data, views.get(event.name)), step });
    }
    for (const out of turn.out) {
      const record = is.get(out.id);
      if (!record) continue;
      if (out.what.startsWith('intent.')) items.push({ of: 'call', record, before: is.get(out.before), step, what: out.became });
      else if (out.what.startsWith('event.')) items.push({ of: 'said', record, said: messageOf(record.payload?.data, views.get(record.name)), step });
      else items.push({ of: out.what.startsWith('cell.failed') ? 'failed' : 'other', record, step });
    }
  }
  return items;
}

/** Item is one of them. @param {{item: Item, left: number}} props left: the rollback that left it behind; 0: none did */
function Item({ item, left }) {
  const shown = { event: Event, said: Event, call: Call, answer: Answer, timer: Line, failed: Line, other: Line }[item.of];
  return html`<article class=${'item is-' + item.of + (mine(item) ? ' mine' : '') + (left ? ' left' : '')}>
    ${left > 0 && html`<small class="was">left behind by the rollback <a href=${there('history', { of: left })}>#${left}</a></small>`}
    <${shown} item=${item} />
  </article>`;
}

/** mine reports whether it is the cell's own side of the conversation. @param {Item} item */
const mine = (item) => item.of === 'said' || item.of === 'call' || item.of === 'answer' || item.said?.who === 'assistant';

/** When leads to the record, with the tick of the step that handled it. @param {{of: any, step?: number}} props */
const When = ({ of, step = of.id }) => html`<a class="when" href=${there('records', { of: of.id })}>${when(columns.value.of.time[step - 1])} #${of.id}</a>`;

/** Event is what somebody said to the cell, or the cell to somebody. @param {{item: Item}} props */
function Event({ item }) {
  const { record, said } = item;
  const to = item.of === 'said' ? record.cells.join(', ') || 'nobody' : '';
  const due = item.step === record.id && record.payload?.due > record.time ? record.payload.due : 0;
  return html`<header><b>${line(said?.who || record.name, 60)}</b>${said?.who && html` <small>${line(record.name, 60)}</small>`}${to && html` <small>to ${line(to, 80)}</small>`}${due > 0 && html` <small>due at ${atTick(due)}</small>`}<${When} of=${record} step=${item.step} /></header>
    ${record.redacted ? html`<p class="dim">redacted</p>` : said ? html`<${Words} of=${said.text} />${said.rest !== undefined && html`<${More} of=${said.rest} />`}` : html`<div class="bubble"><${Whole} of=${record.payload?.data ?? null} /></div>`}`;
}

/** More is what else came with words. @param {{of: unknown}} props */
const More = ({ of }) => html`<details><summary>with it: ${line(of, 90)}</summary><div class="bubble"><${Whole} of=${of} /></div></details>`;

/** Line is what needs no more than a line. @param {{item: Item}} props */
const Line = ({ item }) => html`<header><span class="say">${line(item.record.what, 200)}</span><${When} of=${item.record} step=${item.step} /></header>`;

/** how a call came out, by the columns: a sign, a class */
const ends = [
  { test: /^invocation\.finished ok/, sign: '■', how: 'good' },
  { test: /^invocation\.finished (input_required|accepted)/, sign: '◔', how: 'warn' },
  { test: /^invocation\.finished|^intent\.ended/, sign: '✕', how: 'bad' },
  { test: /^intent\.denied/, sign: '⊖', how: 'bad' },
  { test: /^intent\.awaiting_approval/, sign: '◔', how: 'warn' },
  { test: /^intent\.in_doubt/, sign: '?', how: 'doubt' },
];

/** Call is what the cell asked for, and the answer where that came next. @param {{item: Item}} props */
function Call({ item }) {
  const { record, answer, before } = item;
  const [open, setOpen] = useState(false);
  const became = item.what ?? record.kind;
  const end = ends.find((e) => e.test.test(became)) ?? { sign: '◇', how: 'open' };
  const params = record.payload?.params;
  const grown = useMemo(() => (before ? context(before.payload?.params, params) : null), [before, record]);
  const called = calledOf(params);
  const about = called ? line(called, 160) : grown ? 'context: ' + grown.map((g) => `${spelled(g.name)} ${g.note}`).join(', ') : line(params ?? null, 160);
  return html`<div class=${'bubble ' + end.how}>
    <header><button type="button" class="fold" aria-expanded=${open} onClick=${() => setOpen(!open)}><span class=${end.how} aria-hidden="true">${end.sign}</span> <b>${line(record.name, 60)}</b> <code>${about}</code></button><${When} of=${record} /></header>
    ${open && html`<div class="opened">
      ${grown?.map((g) => html`<${Grown} key=${g.name} of=${g} since=${before.id} />`)}
      <h2 class="sub">params</h2><${Whole} of=${readable(params) ?? null} />
      <dl class="facts">
        ${record.payload?.rules?.length > 0 && html`<${Fact} name="decided by">${record.payload.rules.map((/** @type {string} */ r) => line(r, 200)).join(', ')}<//>`}
        ${record.payload?.reason && html`<${Fact} name="reason">${line(record.payload.reason, 400)}<//>`}
        ${record.key && html`<${Fact} name="intent"><a href=${there('inbox', { of: record.key, at: '' })}>${short(record.key)}</a><//>`}
        ${answer && html`<${Fact} name="answered"><${When} of=${answer} /><//>`}
      </dl><h2 class="sub">answer</h2></div>`}
    ${answer ? html`<${Told} of=${answer} open=${open} />` : html`<p class="dim">${line(became, 60)}${record.key && html` <a href=${there('inbox', { of: record.key, at: '' })}>${short(record.key)}</a>`}</p>`}
  </div>`;
}

/** Grown is what was added to the params since the call before. @param {{of: any, since: number}} props */
function Grown({ of, since }) {
  return html`<h2 class="sub">${spelled(of.name)}: ${of.note} since #${since}</h2>
    ${of.added.map((/** @type {unknown} */ x, /** @type {number} */ i) => {
      const said = messageOf(x, undefined);
      return said ? html`<header key=${i}><b>${line(said.who, 60)}</b></header><${Words} of=${said.text} />${said.rest !== undefined && html`<${More} of=${said.rest} />`}` : html`<div class="bubble" key=${i}><${Whole} of=${x} /></div>`;
    })}
    ${of.was !== undefined && html`<div class="bubble gone"><${Value} of=${of.was} /></div>`}`;
}

/** Answer is what the cell was told of something that it had asked for before. @param {{item: Item}} props */
function Answer({ item }) {
  return html`<div class=${'bubble answer ' + tone(item.record)}><header><b>answer</b> <small>to ${line(item.call.name, 60)} <a href=${there('records', { of: item.call.id })}>#${item.call.id}</a></small><${When} of=${item.record} step=${item.step} /></header>
    <${Told} of=${item.record} open=${false} /></div>`;
}

/** Told is an answer: the words of a model as words. @param {{of: any, open: boolean}} props */
function Told({ of, open }) {
  const [whole, setWhole] = useState(false);
  const receipt = of.payload?.receipt;
  if (of.redacted) return html`<p class="dim">redacted</p>`;
  const payload = receipt ? receipt.payload : of.payload?.payload ?? of.payload?.reason;
  const said = messageOf(payload?.message ?? payload, undefined);
  const status = receipt?.status ?? of.how;
  if (said) return html`${status && status !== 'ok' && html`<p class="bad">${line(status, 40)}</p>`}<header><b>${line(said.who, 60)}</b></header><${Words} of=${said.text} />${said.rest !== undefined && html`<${More} of=${said.rest} />`}`;
  return html`${!open && html`<button type="button" class="fold" aria-expanded=${whole} onClick=${() => setWhole(!whole)}>${status && status !== 'ok' && html`<b class="bad">${line(status, 40)}</b> `}<code>${line(payload ?? null, 160)}</code></button>`}
    ${(whole || open) && html`<${Whole} of=${payload ?? null} />`}`;
}
