// One decision about all intents of a kind. They are listed by the server and shown whole
// first; the decision is about that list, and is refused if it has become another.
import { html, useState } from './lib.js';
import { pathOf, post } from './api.js';
import { Form, Ways } from './decide.js';
import { here } from './place.js';
import { Head, Trouble, word } from './parts.js';
import { number, spelled, Value } from './text.js';

const deny = { name: 'Deny all', key: 'd', verb: 'deny', kind: 'no', needs: true };

const ways = {
  awaiting_approval: [{ name: 'Approve all', key: 'a', verb: 'approve', kind: 'yes', needs: true }, deny],
  awaiting_answer: [deny],
  awaiting_confirmation: [deny],
  in_doubt: [
    { name: 'All happened', key: 'y', verb: 'resolve', kind: 'yes', needs: true, body: { executed: true }, flag: ' --executed' },
    { name: 'None happened', key: 'n', verb: 'resolve', kind: 'no', needs: true, body: { executed: false }, flag: ' --not-executed' },
  ],
};

/** Batch decides about all. @param {{world: string, kind: string, state: string}} props */
export function Batch({ world, kind, state }) {
  const [cell, setCell] = useState('');
  const [form, setForm] = useState(/** @type {{way: any, about: any} | null} */ (null));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [done, setDone] = useState('');
  const ask = (/** @type {any} */ way, /** @type {object} */ more) => post(pathOf(world, 'intents', way.verb), { kind, cell, state, ...way.body, ...more });
  const begin = async (/** @type {any} */ way) => {
    setDone('');
    await ask(way, {}).then((about) => (setForm({ way, about }), setError(null)), setError);
  };
  const of = form?.about;
  const all = of?.intents.length ?? 0;
  return html`<${Head} title=${spelled(kind)} about="all that wait"><a href=${here({ all: '', state: '' })}>one by one</a><//>
    <div class="pad whole">
      ${!form && html`<label>Only of cells <input value=${cell} placeholder="all, or desk/*" onInput=${(/** @type {any} */ e) => setCell(e.target.value)} /></label>
        <${Ways} of=${ways[/** @type {keyof typeof ways} */ (state)] ?? []} begin=${begin} />`}
      <${Trouble} of=${error} />
      ${done && html`<p role="status">${done}</p>`}
      ${form && html`<p>${number(all)} are meant${of.more > 0 && `, and ${number(of.more)} more are left for another time`}${of.refused.length > 0 && `; ${number(of.refused.length)} cannot be decided so`}:</p>
        <ol class="story">${of.intents.map((/** @type {any} */ x) => html`<li key=${x.key}><b>${spelled(x.cell)}</b> <code>${x.key.slice(0, 12)}</code><${Value} of=${x.params} whole=${true} /></li>`)}</ol>
        <${Form} world=${world} way=${form.way} about=${`${number(all)} × ${kind}`} meanwhile=${all ? '' : 'none of them waits any more'} close=${() => setForm(null)}
          send=${(/** @type {string} */ reason) => ask(form.way, { digest: of.digest, reason }).then((is) => setDone(`Decided about ${number(is.intents.length)}.`))}
          line=${(/** @type {string} */ reason) => `worldctl intent ${form.way.verb}${form.way.flag ?? ''} --kind ${word(kind)} --state ${state}${cell ? ' --cell ' + word(cell) : ''} --digest ${of.digest} --reason ${reason}`} />`}
    </div>`;
}
