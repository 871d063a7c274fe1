// What waits for a person: in one world, or in all that are served here.
import { html, useLayoutEffect, useState } from './lib.js';
import { parse, pathOf, post } from './api.js';
import { Batch } from './batch.js';
import { atTick, when } from './clock.js';
import { columns } from './columns.js';
import { Form, ShowAll, Stuck, Ways } from './decide.js';
import { useAnswer } from './live.js';
import { calledOf, readable } from './message.js';
import { at, recordAt } from './moment.js';
import { address, amend, here, lead, place, there, where } from './place.js';
import { Command, CommandNow, Fact, Head, List, State, Trouble, useKey, word } from './parts.js';
import { Mark, sentence, Story } from './story.js';
import { isCut, line, short, spelled, Value } from './text.js';

/** What a person is wanted for. */
const wanted = {
  approve: ['awaiting_approval', 'awaits approval'], repeat: ['awaiting_approval', 'repeat?'], answer: ['awaiting_answer', 'asks'],
  confirm: ['awaiting_confirmation', 'confirm'], resolve: ['in_doubt', 'in doubt'], resume: ['failed', 'cell halted'],
};

/** Inbox is the view. @param {{world: string}} props without a world: of all worlds */
export function Inbox({ world }) {
  if (world && at()) return html`<${Past} world=${world} />`;
  return html`<${Present} world=${world} />`;
}

/** until is the tick at which something is decided by itself. @param {any} o */
const until = (o) => o.intent?.deadline || Number.MAX_SAFE_INTEGER;

/** Present is what waits now. @param {{world: string}} props */
function Present({ world }) {
  const { is, error } = useAnswer('/api/inbox?limit=1000');
  const worlds = useAnswer(world ? null : '/api/worlds');
  const names = new Map((worlds.is?.worlds ?? []).map((/** @type {any} */ w) => [w.id, w.name]));
  const called = (/** @type {string} */ id) => spelled(names.get(id) ?? '') + ' · ' + short(id, 6); // two may have the same name
  const all = (is?.owed ?? []).filter((/** @type {any} */ o) => !world || o.world === world);
  all.sort((/** @type {any} */ a, /** @type {any} */ b) => until(a) - until(b)); // the others stay in their order
  const idOf = (/** @type {any} */ o) => (world ? '' : o.world + '/') + (o.intent ? o.intent.key : 'cell:' + o.cell);
  const chosen = place.value.of.of || (all.length > 0 ? idOf(all[0]) : '');
  useLayoutEffect(() => {
    if (chosen && !where().of.of) amend({ of: chosen }); // and it stays, whatever the list becomes
  }, [chosen, place.value.of.of]);
  const items = all.map((/** @type {any} */ o) => {
    const [state, name] = wanted[/** @type {keyof typeof wanted} */ (o.wants)];
    return {
      id: idOf(o),
      href: here({ of: idOf(o), all: '' }),
      body: html`<b><${State} of=${state} name=${name} /> ${spelled(o.intent?.kind ?? o.cell)}</b>
        <span>${!world && html`${called(o.world)} · `}${o.intent ? html`${spelled(o.cell)} <code>${line(calledOf(o.intent.params) ?? o.intent.params, 60)}</code>` : line(o.failure?.error ?? '', 60)}</span>`,
    };
  });
  const slash = world ? -1 : chosen.indexOf('/');
  const [of, id] = world ? [world, chosen] : [chosen.slice(0, slash), chosen.slice(slash + 1)];
  const alike = all.filter((/** @type {any} */ o) => o.world === of);
  return html`<div class="two">
    <section class="side">
      <${Head} title="Inbox" about=${is ? (all.length || 'nothing') + (is.next ? ' or more' : '') + (all.length > 1 ? ' wait' : ' waits') + ' for a person' : ''} />
      <${Trouble} of=${error} />
      <${List} label="Inbox" items=${items} chosen=${chosen} />
      <footer>${linesOf(all).map((l) => html`<${Command} key=${l} world=${of} line=${l} />`)}</footer>
    </section>
    <section class="main">${!world && of && html`<p class="in">in <a href=${address(of, 'inbox')}>${called(of)}</a></p>`}${place.value.of.all
      ? html`<${Batch} key=${of + place.value.of.all} world=${of} kind=${place.value.of.all} state=${place.value.of.state ?? 'awaiting_approval'} />`
      : chosen && of && (id.startsWith('cell:') ? html`<${HaltedCell} key=${chosen} world=${of} cell=${id.slice(5)} />` : html`<${Intent} key=${chosen} world=${of} id=${id} alike=${alike} />`)}</section>
  </div>`;
}

/** The lines that list what waits, by its states. */
const lines = {
  awaiting_approval: 'worldctl intent list --state awaiting_approval', awaiting_answer: 'worldctl intent list --state awaiting_answer',
  awaiting_confirmation: 'worldctl intent list --state awaiting_confirmation', in_doubt: 'worldctl intent list --state in_doubt', failed: 'worldctl cell list',
};

/** linesOf are those that together list the same. @param {any[]} owed */
function linesOf(owed) {
  const states = new Set(owed.map((o) => wanted[/** @type {keyof typeof wanted} */ (o.wants)][0]));
  return Object.entries(lines).filter(([state]) => states.has(state) || (states.size === 0 && state === 'awaiting_approval')).map(([, l]) => l);
}

/** HaltedCell shows a cell that a failed step has halted. @param {{world: string, cell: string}} props */
function HaltedCell({ world, cell }) {
  const { is, error } = useAnswer(pathOf(world, 'cell') + `?cell=${encodeURIComponent(cell)}&mail=1`);
  if (!is) return html`<${Trouble} of=${error} />`;
  return html`<${Head} title=${spelled(cell)} about=${is.halted ? html`<em class="halted">halted</em>` : 'goes on'}><a href=${address(world, 'cells', { of: cell })}>the cell</a><//>
    <div class="pad whole">
      ${is.failure && html`<h2>A step of ${spelled(cell)} failed</h2><pre class="block">${spelled(is.failure.error)}</pre>`}
      <${Stuck} world=${world} of=${is} />
      ${is.failure && html`<h2 class="sub">How it came to this</h2><${Story} world=${world} from=${is.failure.record} />`}
      <footer><${Command} world=${world} line=${'worldctl cell show ' + word(cell)} /></footer>
    </div>`;
}

/** Intent is one, with what can be decided about it. @param {{world: string, id: string, alike: any[]}} props */
function Intent({ world, id, alike }) {
  const path = /^[0-9a-f]{4,64}$/.test(id) ? pathOf(world, 'intents', id) : null;
  const { is, error } = useAnswer(path);
  const [whole, setWhole] = useState(false);
  const [form, setForm] = useState(/** @type {{way: any, about: any} | null} */ (null));
  if (path === null) return html`<${Trouble} of=${new Error('that is no key of an intent')} />`;
  if (!is && !form) return html`<${Trouble} of=${error} />`;
  const x = is ?? form?.about;
  const asks = x.asks?.at(-1);
  const asked = asks && asks.answer === null ? asks.requests : [];
  const cut = !whole && [x.params, ...asked.flatMap((/** @type {any} */ r) => [r.message, r.schema])].some((v) => isCut(v));
  return html`<${Head} title=${html`<code>${short(x.key)}</code>`} about=${html`<${State} of=${x.state} />`}>
      <a href=${address(world, 'records', { of: x.emitted })}>#${x.emitted} in the journal</a>
    <//>
    <div class="pad whole">
      <h2>${spelled(x.cell)} wants <b>${spelled(x.kind)}</b></h2>
      <div class="box"><${Value} of=${readable(x.params)} whole=${whole} /></div>
      ${asked.map((/** @type {any} */ r) => html`<div class="form" key=${r.name}><b>It asks</b>: <${Value} of=${r.message} whole=${whole} />${r.schema && html`<${Value} of=${r.schema} whole=${whole} />`}</div>`)}
      ${cut && html`<${ShowAll} act=${() => setWhole(true)} />`}
      <${Facts} of=${x} world=${world} />
      <${Trouble} of=${error} />
      ${form
        ? html`<${Decide} world=${world} path=${path} way=${form.way} about=${form.about} now=${x} close=${() => setForm(null)} />`
        : !cut && html`<${Ways} of=${waysOf(x)} begin=${(/** @type {any} */ way) => is && setForm({ way, about: is })} /><${Alike} of=${x} among=${alike} />`}
      <h2 class="sub">How it came to this</h2>
      <${Story} world=${world} from=${x.finished || x.started || x.emitted} />
      <footer><${Command} world=${world} line=${'worldctl intent show ' + short(x.key)} /></footer>
    </div>`;
}

/** Facts are what is known of an intent. @param {{of: any, world: string}} props */
function Facts({ of, world }) {
  return html`<dl class="facts">
    ${of.rules?.length > 0 && html`<${Fact} name="decided by">${of.rules.map(spelled).join(', ')}<//>`}
    ${of.reason && html`<${Fact} name="what is owed">${spelled(of.reason)}<//>`}
    ${of.deadline > 0 && html`<${Fact} name="until">${atTick(of.deadline, world)}, then it is denied<//>`}
    ${of.repeats && html`<${Fact} name="repeats"><a href=${address(world, 'inbox', { of: of.repeats })}><code>${short(of.repeats)}</code></a>, which a rollback left behind<//>`}
    ${of.cap && html`<${Fact} name="capability">${spelled(of.cap)}<//>`}
    ${of.attempts?.length > 0 && html`<${Fact} name="attempts">${of.attempts.length}<//>`}
    <${Fact} name="bound to"><code>${short(of.params_hash)}…</code> these params and no others<//>
  </dl>`;
}

/** Alike leads to a decision about all that wait and are of the kind. @param {{of: any, among: any[]}} props */
function Alike({ of, among }) {
  const n = among.filter((o) => o.intent?.kind === of.kind && o.intent.state === of.state).length;
  const to = here({ all: of.kind, state: of.state });
  useKey('A', () => lead(to), n > 1);
  return n > 1 && html`<p><a href=${to}>Decide about all ${n} that want ${spelled(of.kind)} <kbd>A</kbd></a></p>`;
}

const [approve, deny, edit] = [
  { name: 'Approve', key: 'a', verb: 'approve', kind: 'yes' },
  { name: 'Deny', key: 'd', verb: 'deny', kind: 'no', needs: true },
  { name: 'Other params', key: 'e', verb: 'edit', kind: 'yes', needs: true, field: 'What is to be asked for in its place, as JSON', name2: 'params' },
];
/** What can be decided, by what a person is wanted for. */
const ways = {
  approve: [approve, deny, edit],
  repeat: [approve, { name: 'Give it the first result', key: 'u', verb: 'approve', kind: 'yes', body: { reuse: true }, flag: '--reuse' }, deny],
  answer: [{ name: 'Answer', key: 'a', verb: 'answer', kind: 'yes', free: true, field: 'The answer, as JSON', name2: 'data' }, deny],
  confirm: [{ name: 'It is as it should be', key: 'a', verb: 'confirm', kind: 'yes', needs: true }, deny],
  resolve: [
    { name: 'It happened', key: 'y', verb: 'resolve', kind: 'yes', needs: true, free: true, body: { executed: true }, flag: '--executed' },
    { name: 'It did not', key: 'n', verb: 'resolve', kind: 'no', needs: true, free: true, body: { executed: false }, flag: '--not-executed' },
    { name: 'Try again', key: 'r', verb: 'retry', kind: 'no', needs: true },
  ],
  failed: [{ name: 'Try again', key: 'r', verb: 'retry', kind: 'yes', needs: true }],
};

/** waysOf is what can be decided about an intent. @param {any} of @returns {any[]} */
function waysOf(of) {
  if (of.state === 'in_doubt') return ways.resolve;
  if (of.state === 'awaiting_answer') return ways.answer;
  if (of.state === 'awaiting_confirmation') return ways.confirm;
  if (of.state === 'awaiting_approval') return of.repeats ? ways.repeat : ways.approve;
  return of.state === 'failed' ? ways.failed : [];
}

/** changed says what has become of an intent since the form was opened; "": nothing. @param {any} was @param {any} is */
function changed(was, is) {
  if (was.state !== is.state) return `it was ${was.state.replace('_', ' ')}, and is ${is.state.replace('_', ' ')} now`;
  if (was.attempt !== is.attempt) return `it was at attempt ${was.attempt}, and is at ${is.attempt} now`;
  if (was.params_hash !== is.params_hash) return 'its params are others now';
  return '';
}

/** Decide is the form for an intent. @param {{world: string, path: string, way: any, about: any, now: any, close: () => void}} props */
function Decide({ world, path, way, about, now, close }) {
  const send = (/** @type {string} */ reason, /** @type {string} */ data) => post(`${path}/${way.verb}`, {
    ...way.body, reason, attempt: about.attempt, ...(way.free ? {} : { params_hash: about.params_hash }), ...(way.field ? { [way.name2]: parse(data) } : {}),
  });
  const meanwhile = changed(about, now);
  return html`${meanwhile && html`<${Other} world=${world} of=${about} />`}<${Form} world=${world} way=${way} about=${about.kind + ' for ' + about.cell} meanwhile=${meanwhile} close=${close} send=${send}
    first=${way.verb === 'edit' ? JSON.stringify(about.params, null, 2) : ''}
    line=${(/** @type {string} */ reason, /** @type {string} */ data) => `worldctl intent ${way.verb} ${short(about.key)}${way.flag ? ' ' + way.flag : ''}${way.field ? ` --${way.name2} ${data}` : ''} --reason ${reason}`} />`;
}

/** Other is the decision of whoever was faster, in the words of the journal. @param {{world: string, of: any}} props */
function Other({ world, of }) {
  const { is } = useAnswer(pathOf(world, 'records') + `?raw=false&kind=intent.resolved&cell=${encodeURIComponent(of.cell)}&before=${Number.MAX_SAFE_INTEGER}&limit=50`);
  const theirs = is?.records.findLast((/** @type {any} */ r) => r.key === of.key);
  return theirs && html`<p class="trouble">Theirs: <a href=${there('records', { of: theirs.id })}>#${theirs.id}</a> ${sentence(theirs)}</p>`;
}

/** Past is what waited at the moment that is looked at, as the columns tell it. @param {{world: string}} props */
function Past({ world }) {
  const { of } = columns.value;
  const owed = owedAt(of, Math.min(recordAt(of), of.n));
  const shown = owed.slice(-100);
  const { is, error } = useAnswer(shown.length ? pathOf(world, 'records') + `?raw=false&ids=${shown.map((i) => i + 1).join()}` : null, true);
  return html`<${Head} title="Inbox" about=${(owed.length || 'nothing') + ' waited for a person then'} />
    <div class="pad">
      <${Trouble} of=${error} />
      <ol class="story">${(is?.records ?? []).map((/** @type {any} */ r) => html`<li key=${r.id}><a href=${there('records', { of: r.id })}>#${r.id}</a> <${Mark} of=${r} /> <b>${spelled(r.kind)}</b> <small>${when(r.time)}</small>
        <p>${sentence(r)}</p>${r.key && html`<a href=${address(world, 'inbox', { of: r.key })}>what has become of it</a>`}</li>`)}</ol>
      <footer><${CommandNow} line="worldctl intent list --state awaiting_approval" /></footer>
    </div>`;
}

/**
 * owedAt are the records by which something came to wait for a person, and still did after
 * the first n records: nothing follows from them yet, and no expiry has ended one like it.
 * @param {import('./columns.js').Columns} of @param {number} n @returns {number[]}
 */
function owedAt(of, n) {
  const is = of.whats.map((w) => (/^intent\.(awaiting_approval|in_doubt)/.test(w) ? 1 : /^cell\.failed halted/.test(w) ? 2 : /^cell\.resumed/.test(w) ? 4 : /^intent\.denied approval_expired/.test(w) ? 3 : 0));
  /** @type {Set<number>} */
  const owed = new Set();
  for (let i = 0; i < n; i++) {
    owed.delete(of.cause[i] - 1);
    const kind = is[of.what[i]];
    if (kind === 1 || kind === 2) owed.add(i);
    if (kind < 3) continue;
    for (const k of owed) {
      if (of.cell[k] !== of.cell[i] || is[of.what[k]] !== (kind === 3 ? 1 : 2) || (kind === 3 && of.name[k] !== of.name[i])) continue;
      owed.delete(k); // the oldest goes first
      break;
    }
  }
  return [...owed];
}
