// All worlds that are served here: those that need somebody first.
import { html, useEffect, useState } from './lib.js';
import { get, pathOf } from './api.js';
import { grown, useAnswer } from './live.js';
import { address } from './place.js';
import { Command, Head, Trouble } from './parts.js';
import { number, short, spelled } from './text.js';

/** owed counts what waits for a person. @param {any} status */
const owed = (status) => (status.intents?.parked ?? 0) + (status.intents?.in_doubt ?? 0);

/** Worlds is the view. */
export function Worlds() {
  const all = useAnswer('/api/worlds');
  const [stands, setStands] = useState(/** @type {Record<string, any>} */ ({}));
  const ids = (all.is?.worlds ?? []).map((/** @type {any} */ w) => w.id);
  useEffect(() => {
    const end = new AbortController();
    for (const id of ids) {
      get(pathOf(id), end.signal).then((is) => setStands((was) => ({ ...was, [id]: is })), () => {});
    }
    return () => end.abort();
  }, [ids.join(), grown.value]);
  const rows = (all.is?.worlds ?? []).map((/** @type {any} */ w) => ({ ...w, ...stands[w.id] }));
  rows.sort((/** @type {any} */ a, /** @type {any} */ b) => owed(b) - owed(a));
  return html`<${Head} title="Worlds" about=${number(rows.length) + ' served here'} />
    <${Trouble} of=${all.error} />
    <div class="scroll" tabindex="0" role="region" aria-label="Table"><table>
      <thead><tr><th>world</th><th class="n">records</th><th class="n">tick</th><th class="n">cells</th><th>effects</th><th>needs a person</th><th>rules</th><th>chain root</th></tr></thead>
      <tbody>${rows.map((/** @type {any} */ w) => html`<tr key=${w.id}>
        <td><a href=${address(w.id, 'inbox')}>${spelled(w.name)}</a> <small>${short(w.id, 8)}</small></td>
        <td class="n">${number(w.head?.id ?? 0)}</td><td class="n">${number(w.time ?? 0)}</td><td class="n">${number(w.cells ?? 0)}</td>
        <td>${w.intents && html`<${Effects} of=${w.intents} />`}</td>
        <td>${owed(w) ? html`<a href=${address(w.id, 'inbox')}>${w.intents.parked} parked, ${w.intents.in_doubt} in doubt</a>` : html`<span class="dim">nothing</span>`}</td>
        <td>v${w.manifest?.version} <small>${short(w.manifest?.hash ?? '', 8)}</small></td>
        <td><code>${short(w.head?.root ?? '')}</code></td>
      </tr>`)}</tbody>
    </table></div>
    <footer><${Command} line="worldctl status" /></footer>`;
}

/** The states of intents: what is done, what goes on, what needs somebody, what is not done. */
const order = ['committed', 'in_flight', 'open', 'parked', 'in_doubt', 'failed', 'denied'];

/** Effects are how the intents of a world stand. @param {{of: Record<string, number>}} props */
function Effects({ of }) {
  const some = order.map((state) => /** @type {[string, number]} */ ([state, of[state] ?? 0])).filter(([, n]) => n > 0);
  if (some.length === 0) return html`<span class="dim">none</span>`;
  const text = some.map(([state, n]) => n + ' ' + state.replace('_', ' ')).join(', ');
  return html`<span class="bar" role="img" aria-label=${text} title=${text}>${some.map(([state, n]) => html`<i class=${state} style=${{ flexGrow: n }}></i>`)}</span>`;
}
