// Every proof, green or red.
import { html, useState } from './lib.js';
import { get, pathOf } from './api.js';
import { useAnswer } from './live.js';
import { Command, Fact, Head, Trouble } from './parts.js';
import { number, Value } from './text.js';

/** Proof is the view. @param {{world: string, status: any}} props */
export function Proof({ world, status }) {
  const [is, setIs] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [busy, setBusy] = useState(false);
  const snapshots = useAnswer(pathOf(world, 'snapshots'));
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
  return html`<${Head} title="Proof" about=${status ? number(status.head.id) + ' records' : ''} />
    <div class="pad">
      <dl class="facts">
        <${Fact} name="chain root"><code>${status?.head.root}</code><//>
        <${Fact} name="anchor">${status?.anchor.ok ? html`<span class="good">✓ the store is what was last said of it, up to #${status.anchor.id}</span>` : html`<span class="bad">✕ it is not what was last said of it</span>`}<//>
      </dl>
      <div class="buttons"><button type="button" class="full yes" disabled=${busy} onClick=${verify}>${busy ? 'It is computed anew…' : 'Verify: compute everything anew'}</button></div>
      <${Trouble} of=${error} />
      ${is && html`<h2 class="sub">${is.replay_proof_result.ok && is.tool_invocation_ledger_proof.ok ? html`<span class="good">✓ verified</span>` : html`<span class="bad">✕ it does not hold</span>`}</h2>
        <div class="box"><${Value} of=${is} /></div>`}
      <h2 class="sub">Snapshots</h2>
      ${snapshots.is?.snapshots?.length ? html`<div class="box"><${Value} of=${snapshots.is.snapshots} /></div>` : html`<p class="dim">There are none.</p>`}
      <footer><${Command} line="worldctl verify" /></footer>
    </div>`;
}
