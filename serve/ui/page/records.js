// The journal as text, and one record of it.
import { html, useState } from './lib.js';
import { pathOf } from './api.js';
import { isReal, Tick, when } from './clock.js';
import { columns } from './columns.js';
import { useAnswer } from './live.js';
import { at, recordAt } from './moment.js';
import { here, place, there } from './place.js';
import { Command, Fact, Head, List, State, Trouble } from './parts.js';
import { Mark, sentence, Story, tone } from './story.js';
import { number, spelled, Value } from './text.js';

/** how many records a page has */
const page = 200;

/** Records is the view. @param {{world: string, status: any}} props */
export function Records({ world, status }) {
  const end = at() ? recordAt(columns.value.of) : 0;
  const head = end || (status?.head?.id ?? 0);
  const of = Number(place.value.of.of || 0);
  const from = Number(place.value.of.from || Math.max(0, (of || head) - page / 2));
  const { is, error } = useAnswer(head ? pathOf(world, 'records') + `?raw=false&after=${from}&limit=${page}${end ? '&to=' + end : ''}` : null);
  const records = is?.records ?? [];
  const items = records.map((/** @type {any} */ r) => ({
    id: String(r.id),
    href: here({ of: r.id, from }),
    body: html`<span class="row"><span class="n">#${r.id}</span><${Tick} of=${r.time} /><span><${Mark} of=${r} /> ${spelled(r.kind)}</span><span class=${'say ' + tone(r)}>${sentence(r)}</span></span>`,
  }));
  return html`<div class="two wide">
    <section class="side">
      <${Head} title="Journal" about=${number(head) + ' records'}>
        <a href=${here({ from: Math.max(0, from - page), of: '' })}>earlier</a>
        <a href=${here({ from: from + page, of: '' })}>later</a>
        <a href=${here({ from: '', of: '' })}>now</a>
      <//>
      <${Trouble} of=${error} />
      <${List} label="Records" items=${items} chosen=${String(of)} />
      <footer><${Command} line=${'worldctl tail --from ' + (from + 1)} /></footer>
    </section>
    <section class="main">${of > 0 && html`<${Record} key=${of} world=${world} id=${of} />`}</section>
  </div>`;
}

/** Record is one. @param {{world: string, id: number}} props */
export function Record({ world, id }) {
  const { is, error } = useAnswer(pathOf(world, 'records', id) + '?raw=false', true);
  const [why, setWhy] = useState(false);
  if (!is) return html`<${Trouble} of=${error} />`;
  const cell = is.cells[0];
  const said = is.payload ?? {};
  const matter = said.receipt?.payload ?? said.params ?? said.data; // what matters first
  return html`<${Head} title=${'#' + id} about=${html`<${Mark} of=${is} /> ${spelled(is.kind)}`} />
    <div class="pad">
      <p class=${'sentence ' + tone(is)}>${sentence(is)}</p>
      <dl class="facts">
        <${Fact} name="tick">${is.time}${isReal() && `, ${when(is.time)}`}<//>
        ${cell && html`<${Fact} name="cell"><a href=${there('cells', { of: cell, at: id })}>${spelled(cell)}</a><//>`}
        ${is.cause > 0 && html`<${Fact} name="caused by"><a href=${here({ of: is.cause })}>#${is.cause}</a><//>`}
        ${is.key && html`<${Fact} name="intent"><a href=${there('inbox', { of: is.key, at: '' })}>${is.key.slice(0, 12)}</a><//>`}
      </dl>
      ${is.key && html`<${Life} world=${world} intent=${is.key} here=${id} />`}
      ${matter !== undefined && html`<h2 class="sub">${is.kind === 'invocation.finished' ? html`It answered <small class=${tone(is)}>${spelled(is.how)}</small>` : 'What it says'}</h2><div class="box"><${Value} of=${matter} /></div>`}
      <details open=${matter === undefined}><summary>the record as it is stored</summary><div class="box"><${Value} of=${is.payload} /></div></details>
      <button type="button" aria-expanded=${why} onClick=${() => setWhy(!why)}>Why: the way to the input</button>
      ${why && html`<${Story} world=${world} from=${id} />`}
      <footer><${Command} line=${'worldctl why ' + id} /></footer>
    </div>`;
}

/** Life is what an intent went through, from the asking to its last answer, and how it stands now. @param {{world: string, intent: string, here: number}} props */
function Life({ world, intent, here: shown }) {
  const { is } = useAnswer(pathOf(world, 'intents', intent));
  if (!is) return null;
  const steps = [{ id: is.emitted, says: 'asked for' }, ...is.decisions.map((/** @type {any} */ d) => ({
    id: d.record, says: d.how.replace('_', ' ') + ', says ' + d.actor + (d.reason ? ': ' + d.reason : ''), payload: d.payload,
  })), ...is.attempts.flatMap((/** @type {any} */ a) => [
    { id: a.started, says: 'attempt ' + a.attempt + ' may go out' },
    { id: a.expired, says: 'it is given up' + (a.reason ? ': ' + a.reason : '') },
    { id: a.receipt, says: (a.late ? 'a late answer: ' : 'its answer: ') + a.status, bad: tone({ kind: 'invocation.finished', how: ['input_required', 'accepted'].includes(a.outcome) ? a.outcome : a.status }) },
  ])].filter((x) => x.id > 0).sort((a, b) => a.id - b.id);
  return html`<h2 class="sub">The life of the intent <small><${State} of=${is.state} /> now</small></h2>
    <ol class="story">${steps.map((x) => html`<li key=${x.id + x.says} class=${x.id === shown ? 'here' : ''}><a href=${here({ of: x.id })}>#${x.id}</a> <span class=${x.bad ?? ''}>${spelled(x.says)}</span>${x.payload !== undefined && x.payload !== null && html`<div class="box"><${Value} of=${x.payload} /></div>`}</li>`)}</ol>
    <details><summary>the params that it is about</summary><div class="box"><${Value} of=${is.params} /></div></details>`;
}
