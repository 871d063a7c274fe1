// What a world was forked from, and which worlds that are served here were forked of the same.
import { html, useEffect, useState } from './lib.js';
import { get, pathOf } from './api.js';
import { address } from './place.js';
import { line, number, short } from './text.js';

/** how many pages of a journal are looked through for its forks */
const pages = 5;

/** @typedef {{id: string, name: string, served: boolean, parent: string, at: number, effects: string}} Kin */

/** forksOf are the records of a world that say it is a fork, from the first. @param {string} world @param {AbortSignal} until */
async function forksOf(world, until) {
  const found = [];
  let path = pathOf(world, 'records') + '?raw=false&kind=world.forked';
  for (let n = 0; path && n < pages; n++) {
    const page = await get(path, until);
    found.push(...page.records);
    path = page.next;
  }
  return found;
}

/** useKin are the worlds that the served ones descend from, and they themselves. @returns {Map<string, Kin>} */
function useKin() {
  const [kin, setKin] = useState(/** @type {Map<string, Kin>} */ (new Map()));
  useEffect(() => {
    const end = new AbortController();
    (async () => {
      const { worlds } = await get('/api/worlds', end.signal);
      const found = new Map();
      const know = (/** @type {string} */ id, /** @type {Partial<Kin>} */ is) => found.set(id, { id, name: '', served: false, parent: '', at: 0, effects: '', ...found.get(id), ...is });
      for (const w of worlds) know(w.id, { name: w.name, served: true });
      for (const w of worlds.filter((/** @type {any} */ w) => w.open)) { // one that rests is not woken
        for (const r of await forksOf(w.id, end.signal).catch(() => [])) {
          const p = r.payload ?? {};
          know(p.parent, {});
          know(p.world, { parent: p.parent, at: p.at, effects: p.effects });
        }
      }
      setKin(found);
    })().catch(() => {}); // what is known without it is shown
    return () => end.abort();
  }, []);
  return kin;
}

/** Tree is the family of a world. @param {{world: string, name?: string}} props */
export function Tree({ world }) {
  const kin = useKin();
  let root = kin.get(world);
  for (let n = 0; root?.parent && kin.has(root.parent) && n < kin.size; n++) root = kin.get(root.parent);
  if (!root || (!root.parent && ![...kin.values()].some((k) => k.parent === root?.id))) return null;
  return html`<h2 class="sub">Where it comes from</h2><ul class="tree"><${Branch} of=${root} kin=${kin} world=${world} depth=${0} /></ul>`;
}

/** Branch is a world and what was forked from it. @param {{of: Kin, kin: Map<string, Kin>, world: string, depth: number}} props */
function Branch({ of, kin, world, depth }) {
  const forks = depth < 20 ? [...kin.values()].filter((k) => k.parent === of.id).sort((a, b) => a.at - b.at) : [];
  const name = html`${of.name ? line(of.name, 40) + ' ' : ''}<code>${short(line(of.id, 64), 16)}</code>`;
  return html`<li>
    ${of.id === world ? html`<b>${name}</b>` : of.served ? html`<a href=${address(of.id, 'history')}>${name}</a>` : html`<span class="dim">${name}, not served here</span>`}
    ${of.parent && html` <small>after #${number(of.at)}, effects: ${line(of.effects, 30)}</small>`}
    ${of.served && of.id !== world && html` <a href=${address(world, 'compare', { a: 'head', with: of.id })}>compare</a>`}
    ${forks.length > 0 && html`<ul>${forks.map((k) => html`<${Branch} key=${k.id} of=${k} kin=${kin} world=${world} depth=${depth + 1} />`)}</ul>`}
  </li>`;
}
