// What things cost: budgets burning down.
import { html } from './lib.js';
import { pathOf } from './api.js';
import { useAnswer } from './live.js';
import { Command, Head, Trouble } from './parts.js';
import { number, spelled } from './text.js';

/** Meters is the view. @param {{world: string}} props */
export function Meters({ world }) {
  const { is, error } = useAnswer(pathOf(world, 'budgets'));
  const all = is?.budgets ?? [];
  return html`<${Head} title="Meters" about=${is ? number(all.length) + (all.length === 1 ? ' budget' : ' budgets') : ''} />
    <${Trouble} of=${error} />
    <div class="scroll" tabindex="0" role="region" aria-label="Table"><table>
      <thead><tr><th>budget</th><th>unit</th><th class="n">limit</th><th class="n">spent</th><th class="n">held</th><th class="n">left</th><th>so far</th><th class="n">wait</th></tr></thead>
      <tbody>${all.flatMap((/** @type {any} */ b) => b.units.map((/** @type {any} */ u) => html`<tr key=${b.scope + b.name + u.unit}>
        <td>${spelled(b.scope)} <b>${spelled(b.name)}</b></td><td>${spelled(u.unit)}</td>
        <td class="n">${number(u.limit)}</td><td class="n">${number(u.spent)}</td><td class="n">${number(u.held)}</td><td class="n">${number(u.left)}</td>
        <td><meter min="0" max=${u.limit || 1} value=${u.spent + u.held} aria-label=${'spent and held of ' + spelled(u.unit)}></meter></td><td class="n">${b.waiting}</td></tr>`))}</tbody>
    </table></div>
    <footer><${Command} line="worldctl budget list" /></footer>`;
}
