// All worlds that are served here: those that need somebody first.
import { html, useEffect, useRef, useState } from './lib.js';
import { dirOf, get, pathOf } from './api.js';
import { when } from './clock.js';
import { useAnswer } from './live.js';
import { address } from './place.js';
import { Command, Head, Trouble } from './parts.js';
import { number, short, spelled } from './text.js';

/** of how many worlds there is a line that tells the same */
const told = 5;

/** What somebody is wanted for, in words. */
const words = { approve: 'awaiting approval', repeat: 'possible repeat', answer: 'asked', confirm: 'to confirm', resolve: 'in doubt', resume: 'cell halted' };

/** owedBy counts what waits for a person, by world and by what is wanted. @param {any} inbox @returns {Map<string, Map<string, number>>} */
function owedBy(inbox) {
  const by = new Map();
  for (const o of inbox?.owed ?? []) {
    const of = by.get(o.world) ?? new Map();
    of.set(o.wants, (of.get(o.wants) ?? 0) + 1);
    by.set(o.world, of);
  }
  return by;
}

/** useStands is how worlds stand, asked again of those only whose journal has grown; one that rests is not woken. @param {any[]} worlds */
function useStands(worlds) {
  const [stands, setStands] = useState(/** @type {Record<string, any>} */ ({}));
  const asked = useRef(/** @type {Map<string, string>} */ (new Map()));
  const end = useRef(new AbortController());
  useEffect(() => () => end.current.abort(), []);
  const now = worlds.map((w) => w.id + ' ' + w.head.id + ' ' + w.idle);
  useEffect(() => {
    worlds.forEach((w, i) => {
      if (!w.open || asked.current.get(w.id) === now[i]) return;
      asked.current.set(w.id, now[i]);
      get(pathOf(w.id), end.current.signal).then((is) => setStands((was) => ({ ...was, [w.id]: is })), () => asked.current.delete(w.id));
    });
  }, [now.join()]);
  return stands;
}

/** Worlds is the view. */
export function Worlds() {
  const all = useAnswer('/api/worlds');
  const inbox = useAnswer('/api/inbox?limit=1000');
  const stands = useStands(all.is?.worlds ?? []);
  const by = owedBy(inbox.is);
  const owed = (/** @type {any} */ w) => [...(by.get(w.id)?.values() ?? [])].reduce((a, b) => a + b, 0);
  const rows = (all.is?.worlds ?? []).map((/** @type {any} */ w) => ({ ...stands[w.id], ...w }));
  rows.sort((/** @type {any} */ a, /** @type {any} */ b) => owed(b) - owed(a));
  return html`<${Head} title="Worlds" about=${number(rows.length) + (all.is?.next ? ' or more' : '')}>${inbox.is?.owed.length > 0 && html`<a href=${address('', 'inbox')}>${number(inbox.is.owed.length)}${inbox.is.next && ' or more'} in the inbox of all</a>`}<//>
    <${Trouble} of=${all.error ?? inbox.error} />
    ${all.is?.away && html`<p class="bad">${number(all.is.away)} of the stores ${all.is.away === 1 ? 'does' : 'do'} not answer: worlds there are not in this list, and wait</p>`}
    <div class="scroll" tabindex="0" role="region" aria-label="Table"><table>
      <thead><tr><th>world</th><th>stands</th><th class="n">records</th><th class="n">tick or time</th><th class="n">cells</th><th>effects</th><th>needs a person</th><th>rules</th><th>chain root</th></tr></thead>
      <tbody>${rows.map((/** @type {any} */ w) => html`<tr key=${w.id}>
        <td><a href=${address(w.id, 'inbox')}>${spelled(w.world ?? w.name)}</a> <small>${short(w.id, 8)}</small></td>
        <td>${w.anchor && !w.anchor.ok ? html`<span class="bad">✕ its anchor differs</span>` : w.idle ? html`<span class="dim">${w.open ? 'idle' : 'rests'}</span>` : html`<span class="good">has work</span>`}</td>
        <td class="n">${number(w.head.id)}</td><td class="n">${w.intents && (w.now === undefined ? number(w.time) : when(w.time, w.id))}</td><td class="n">${w.intents && number(w.cells)}</td>
        <td>${w.intents && html`<${Effects} of=${w.intents} />`}</td>
        <td>${owed(w) ? html`<a href=${address(w.id, 'inbox')}>${Object.entries(words).filter(([wants]) => by.get(w.id)?.get(wants)).map(([wants, name]) => by.get(w.id)?.get(wants) + ' ' + name).join(', ')}</a>` : html`<span class="dim">nothing</span>`}</td>
        <td>${w.manifest && html`v${w.manifest.version} <small>${short(w.manifest.hash, 8)}</small>`}</td>
        <td><code>${short(w.head.root ?? '')}</code></td>
      </tr>`)}</tbody>
    </table></div>
    <footer>${rows.slice(0, told).filter((/** @type {any} */ w, /** @type {number} */ i) => i === 0 || dirOf(w.id)).map((/** @type {any} */ w) => html`<${Command} key=${w.id} world=${w.id} line="worldctl status" />`)}</footer>`;
}

/** The states of intents: what is done, what goes on, what needs somebody, what is not done. */
const order = ['committed', 'in_flight', 'open', 'awaiting_approval', 'awaiting_answer', 'awaiting_confirmation', 'in_doubt', 'failed', 'denied', 'cancelled'];

/** Effects are how the intents of a world stand. @param {{of: Record<string, number>}} props */
function Effects({ of }) {
  const some = order.map((state) => /** @type {[string, number]} */ ([state, of[state] ?? 0])).filter(([, n]) => n > 0);
  if (some.length === 0) return html`<span class="dim">none</span>`;
  const text = some.map(([state, n]) => n + ' ' + state.replace('_', ' ')).join(', ');
  return html`<span class="bar" role="img" aria-label=${text} title=${text}>${some.map(([state, n]) => html`<i class=${state} style=${{ flexGrow: n }}></i>`)}</span>`;
}
