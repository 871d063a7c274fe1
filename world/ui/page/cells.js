// The cells of a world, and how one stands or stood.
import { html } from './lib.js';
import { may, pathOf, post } from './api.js';
import { grown, useAnswer } from './live.js';
import { here, place } from './place.js';
import { Command, Fact, Head, List, Trouble, word } from './parts.js';
import { Mark, sentence } from './story.js';
import { number, spelled, Value } from './text.js';

/** Cells is the view. @param {{world: string, status: any}} props */
export function Cells({ world, status }) {
  const after = place.value.of.after ?? '';
  const { is, error } = useAnswer(pathOf(world, 'cells') + `?limit=500${after ? '&after=' + encodeURIComponent(after) : ''}`);
  const cells = is?.cells ?? [];
  const chosen = place.value.of.of || cells[0]?.cell || '';
  const items = cells.map((/** @type {any} */ c) => ({
    id: c.cell,
    href: here({ of: c.cell }),
    body: html`<b>${spelled(c.cell)}</b><span>${c.n} steps${c.mailbox ? `, ${c.mailbox} waiting` : ''}${c.parked ? html` <em class="parked">parked</em>` : ''}</span>`,
  }));
  return html`<div class="two">
    <section class="side">
      <${Head} title="Cells" about=${number(status?.cells ?? 0)}>${is?.next && html`<a href=${here({ after: cells[cells.length - 1].cell, of: '' })}>more</a>`}<//>
      <${Trouble} of=${error} />
      <${List} label="Cells" items=${items} chosen=${chosen} />
      <footer><${Command} line="worldctl cell list" /></footer>
    </section>
    <section class="main">${chosen && html`<${Cell} key=${chosen} world=${world} cell=${chosen} at=${place.value.of.at} />`}</section>
  </div>`;
}

/** Cell is one, now or at a record. @param {{world: string, cell: string, at?: string}} props */
function Cell({ world, cell, at }) {
  const name = encodeURIComponent(cell);
  const { is, error } = useAnswer(pathOf(world, 'cell') + `?cell=${name}${at ? '&at=' + encodeURIComponent(at) : ''}`);
  const way = useAnswer(pathOf(world, 'records') + `?raw=false&cell=${name}&limit=200`);
  if (!is) return html`<${Trouble} of=${error} />`;
  const decide = async (/** @type {string} */ verb) => {
    const reason = prompt('Reason (the journal keeps it)');
    if (reason === null) return;
    await post(pathOf(world, 'cell', verb), { cell, reason }).catch((err) => alert(spelled(err.message)));
    grown.value++;
  };
  return html`<${Head} title=${spelled(cell)} about=${at ? 'at #' + at : 'now'}>${at && html`<a href=${here({ at: '' })}>now</a>`}<//>
    <div class="pad">
      <dl class="facts">
        <${Fact} name="steps">${is.n}<//>
        <${Fact} name="stands">${is.parked ? html`<em class="parked">parked</em>` : 'goes on'}<//>
        ${is.failure && html`<${Fact} name="failed"><${Value} of=${is.failure} /><//>`}
        ${is.mailbox?.length > 0 && html`<${Fact} name="mailbox"><${Value} of=${is.mailbox} /><//>`}
      </dl>
      ${is.parked && !at && may('approve') && html`<div class="buttons"><button type="button" onClick=${() => decide('resume')}>Try again</button><button type="button" onClick=${() => decide('skip')}>Skip the event</button></div>`}
      <h2 class="sub">State</h2>
      <div class="box"><${Value} of=${is.state} /></div>
      <h2 class="sub">Its way</h2>
      <ol class="story">${(way.is?.records ?? []).map((/** @type {any} */ r) => html`<li key=${r.id} class=${String(r.id) === at ? 'here' : ''}>
        <a href=${here({ of: cell, at: r.id })}>#${r.id}</a> <${Mark} of=${r.kind} /> <b>${spelled(r.kind)}</b> <small>t${r.time}</small><p>${sentence(r)}</p></li>`)}</ol>
      <footer><${Command} line=${`worldctl cell show ${word(cell)}${at ? ` --at '#${at}'` : ''}`} /></footer>
    </div>`;
}
