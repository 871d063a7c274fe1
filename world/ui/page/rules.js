// Changes of the rules: what is proposed, and who has to say something about it.
import { html } from './lib.js';
import { pathOf } from './api.js';
import { useAnswer } from './live.js';
import { here, place } from './place.js';
import { Command, Head, List, Trouble } from './parts.js';
import { short, spelled, Value } from './text.js';

/** Rules is the view. @param {{world: string, status: any}} props */
export function Rules({ world, status }) {
  const { is, error } = useAnswer(pathOf(world, 'proposals') + '?all=true');
  const all = is?.proposals ?? [];
  const chosen = place.value.of.of || String(all[0]?.id ?? all[0]?.proposal ?? '');
  const items = all.map((/** @type {any} */ p) => {
    const id = String(p.id ?? p.proposal);
    return { id, href: here({ of: id }), body: html`<b>${spelled(id)} ${spelled(p.state ?? '')}</b><span>${spelled(p.reason ?? p.by ?? '')}</span>` };
  });
  return html`<div class="two">
    <section class="side">
      <${Head} title="Rules" about=${status ? `v${status.manifest.version} ${short(status.manifest.hash, 8)}` : ''} />
      <${Trouble} of=${error} />
      ${is && all.length === 0 && html`<p class="pad dim">No change was ever proposed.</p>`}
      <${List} label="Proposals" items=${items} chosen=${chosen} />
      <footer><${Command} line="worldctl proposal list --all" /></footer>
    </section>
    <section class="main">${chosen && html`<${Proposal} key=${chosen} world=${world} id=${chosen} />`}</section>
  </div>`;
}

/** Proposal is one. @param {{world: string, id: string}} props */
function Proposal({ world, id }) {
  const { is, error } = useAnswer(pathOf(world, 'proposals', id.replace(/^p/, '')));
  if (!is) return html`<${Trouble} of=${error} />`;
  return html`<${Head} title=${spelled(id)} about=${spelled(is.state ?? '')} />
    <div class="pad"><div class="box"><${Value} of=${is} /></div>
    <footer><${Command} line=${'worldctl proposal show ' + id} /></footer></div>`;
}
