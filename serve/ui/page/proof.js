// Every proof, green or red. A page that was given away proves nothing: it tells what was said
// when it was made.
import { html, useState } from './lib.js';
import { get, pathOf } from './api.js';
import { copy } from './copy.js';
import { useAnswer } from './live.js';
import { at } from './moment.js';
import { Command, CommandNow, Fact, Head, Trouble } from './parts.js';
import { there } from './place.js';
import { line, number, spelled, Value } from './text.js';

/** Proof is the view. @param {{world: string, status: any}} props */
export function Proof({ world, status }) {
  const snapshots = useAnswer(pathOf(world, 'snapshots'));
  return html`<${Head} title="Proof" about=${status ? number(status.head.id) + ' records' : ''} />
    <div class="pad">
      ${at() && html`<p class="dim">This is about all records as of now, not of the moment that is looked at.</p>`}
      ${copy ? html`<${Told} world=${world} status=${status} />` : html`<${Prove} world=${world} status=${status} />`}
      <h2 class="sub">Snapshots</h2>
      ${snapshots.is?.snapshots?.length ? html`<ol class="story">${snapshots.is.snapshots.map((/** @type {any} */ s) => html`<li key=${s.record}><a href=${there('history', { of: s.record })}>#${s.record}</a> <b>${spelled(s.name)}</b> <small>${s.pinned ? 'pinned, ' : ''}what was after #${s.at}</small>${s.label && html`<p>${line(s.label)}</p>`}</li>`)}</ol>` : html`<p class="dim">There are none.</p>`}
      <footer><${CommandNow} line="worldctl verify" /></footer>
    </div>`;
}

/** Prove has everything computed anew. @param {{world: string, status: any}} props */
function Prove({ world, status }) {
  const [is, setIs] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [busy, setBusy] = useState(false);
  const verify = async () => {
    setBusy(true);
    setError(null);
    try {
      setIs(await get(pathOf(world, 'verify')));
    } catch (err) {
      setError(/** @type {Error} */ (err));
    }
    setBusy(false);
  };
  return html`<dl class="facts">
      <${Fact} name="chain root"><code>${status?.head.root}</code><//>
      <${Fact} name="anchor">${status?.anchor.ok ? html`<span class="good">✓ the store is what was last said of it, up to #${status.anchor.id}</span>` : html`<span class="bad">✕ it is not what was last said of it</span>`}<//>
    </dl>
    <div class="buttons"><button type="button" class="full yes" disabled=${busy} onClick=${verify}>${busy ? 'It is computed anew…' : 'Verify: compute everything anew'}</button></div>
    <${Trouble} of=${error} />
    ${is && html`<h2 class="sub">${is.replay_proof_result.ok && is.tool_invocation_ledger_proof.ok ? html`<span class="good">✓ verified</span>` : html`<span class="bad">✕ it does not hold</span>`}</h2>
      <div class="box"><${Value} of=${is} /></div>`}`;
}

/** Told is what was said of the world when a copy was made. Whoever passes a copy on can change it: nothing here is green. @param {{world: string, status: any}} props */
function Told({ world, status }) {
  const { is, error } = useAnswer(pathOf(world, 'verify'));
  if (!copy) return null;
  const anchor = status?.anchor.ok ? 'the store was what had last been said of it, up to #' + status.anchor.id : 'the store was not what had last been said of it';
  return html`<p>This is what ${spelled(copy.by)} said when it made this file, at ${spelled(copy.made)}: ${copy.verified ? 'the world held, up to #' + copy.records : html`<b class="bad">the world did not hold</b>`}.</p>
    <p><b>The file proves nothing by itself</b>: whoever passes it on can change it. Who has to be sure asks for a bundle, and verifies that:</p>
    <${Command} line="worldctl export FILE --format bundle" /> <${Command} line="worldctl verify FILE" />
    <dl class="facts">
      <${Fact} name="chain root"><code>${status?.head.root}</code><//>
      <${Fact} name="anchor">${status && anchor}<//>
    </dl>
    <${Trouble} of=${error} />
    ${is && html`<h2 class="sub">What was said</h2><div class="box"><${Value} of=${is} /></div>`}`;
}
