// Changes of the rules: what is proposed, what rights it gives, what it would have done, and
// who has to sign it. No key is in a browser: it shows what is to be signed, takes a
// signature that was made elsewhere, and sees by itself when one is there.
import { html, useState } from './lib.js';
import { may, pathOf, post } from './api.js';
import { Form, Ways } from './decide.js';
import { columns } from './columns.js';
import { grown, useAnswer } from './live.js';
import { at, recordAt } from './moment.js';
import { here, place, there } from './place.js';
import { Command, CommandNow, Fact, Head, List, Trouble, word } from './parts.js';
import { Report } from './shadow.js';
import { number, short, spelled } from './text.js';

/** Stage is how far a proposal has come. @param {{of: string}} props */
const Stage = ({ of }) => html`<span class=${'stage ' + of}>${spelled(of)}</span>`;

/** Rules is the view. @param {{world: string, status: any}} props */
export function Rules({ world, status }) {
  const { is, error } = useAnswer(pathOf(world, 'proposals') + '?all=true&limit=1000');
  const until = at() ? recordAt(columns.value.of) : Infinity;
  const all = (is?.proposals ?? []).filter((/** @type {any} */ p) => p.record <= until).reverse();
  const chosen = place.value.of.of || (all[0]?.proposal ?? '');
  const items = all.map((/** @type {any} */ p) => ({
    id: p.proposal,
    href: here({ of: p.proposal }),
    body: html`<b>${p.proposal} <${Stage} of=${p.stage} /></b><span>${spelled(p.reason)} · ${spelled(p.author)}${!p.ended && ` · ${p.approved} of ${p.needed} signatures`}</span>`,
  }));
  return html`<div class="two">
    <section class="side">
      <${Head} title="Rules" about=${status ? `in force: v${status.manifest.version} ${short(status.manifest.hash, 8)}` : ''} />
      <${Trouble} of=${error} />
      ${is && all.length === 0 && html`<p class="pad dim">${at() ? 'No change had been proposed.' : 'No change was ever proposed.'}</p>`}
      <${List} label="Proposals" items=${items} chosen=${chosen} />
      <footer><${CommandNow} line="worldctl proposal list --all" /></footer>
    </section>
    <section class="main">${chosen && html`<${Proposal} key=${chosen} world=${world} id=${chosen} />`}</section>
  </div>`;
}

/** Proposal is one, as worldctl proposal show tells it. @param {{world: string, id: string}} props */
function Proposal({ world, id }) {
  const { is, error } = useAnswer(pathOf(world, 'proposals', id));
  if (!is) return html`<${Trouble} of=${error} />`;
  return html`<${Head} title=${is.proposal} about=${html`<${Stage} of=${is.stage} /> to version ${is.version}`}><a href=${there('records', { of: is.record })}>#${is.record} in the journal</a><//>
    <div class="pad whole">
      <${Trouble} of=${error} />
      ${at() && html`<p class="dim">It stands here as it does now, not as of the moment that is looked at.</p>`}
      <h2>${spelled(is.reason) || html`<span class="dim">no reason was given</span>`}</h2>
      <dl class="facts">
        <${Fact} name="author">${spelled(is.author)}, ${is.signed_by ? html`signed with ${signer(is.signed_by)}` : 'not signed'}<//>
        <${Fact} name="base"><code>${short(is.base)}</code> ${is.base_in_force ? 'which is in force' : !is.ended && html`<b class="bad">which is not in force any more</b>`}<//>
        <${Fact} name="candidate"><code>${short(is.candidate)}</code>, version ${is.version}<//>
        ${is.ended && html`<${Fact} name=${is.stage}><a href=${there('records', { of: is.ended.record })}>#${is.ended.record}</a> by ${spelled(is.ended.by)}${is.ended.reason && ': ' + spelled(is.ended.reason)}<//>`}
      </dl>
      <${Changes} name="Gains rights, or may" of=${is.gains} kind="gains" />
      <${Changes} name="Loses rights" of=${is.loses} kind="loses" />
      <${Changes} name="Besides" of=${is.changes} kind="" />
      ${is.code && html`<h2 class="sub">How the code differs</h2><pre class="block" tabindex="0">${spelled(is.code)}</pre>`}
      <h2 class="sub">What it would have done</h2>
      ${is.report ? html`<${Report} of=${is.report} proposal=${is.proposal} />`
        : html`<p class="dim">${is.report_hash ? 'The report was redacted.' : 'It was not shadowed yet.'}</p><${Command} line=${'worldctl shadow ' + is.proposal} />`}
      ${is.migration?.cells > 0 && html`<p>Applied now, new code takes over the states of ${number(is.migration.cells)} cells.</p>`}
      <${Signatures} of=${is} world=${world} />
      <${End} of=${is} world=${world} />
      <footer><${CommandNow} line=${'worldctl proposal show ' + is.proposal} /></footer>
    </div>`;
}

/** signer names who holds a key. @param {any} of */
const signer = (of) => (of.name ? spelled(of.name) + ', ' : '') + of.fingerprint;

/** @param {{name: string, of: any[], kind: string}} props */
function Changes({ name, of, kind }) {
  if (of.length === 0) return null;
  return html`<h2 class="sub">${name}</h2><ul class="rights">${of.map((c, i) => html`<li key=${i} class=${kind}><b>${spelled(c.name)}</b><pre class="block">${spelled(c.text)}</pre></li>`)}</ul>`;
}

/** Signatures are those that are there, those that are missing, and what one signs. @param {{of: any, world: string}} props */
function Signatures({ of, world }) {
  return html`<h2 class="sub">Signatures <small>${of.approved}${of.needed > 0 && ' of ' + of.needed}</small></h2>
    <ul class="rights">${of.approvals.map((/** @type {any} */ a) => html`<li key=${a.record} class=${a.current ? 'loses' : ''}>${signer(a)}, <a href=${there('records', { of: a.record })}>#${a.record}</a>, says ${spelled(a.actor)}${a.reason && ': ' + spelled(a.reason)}
      ${!a.current && html` <b class="warn">It is for another report, and does not count.</b>`}</li>`)}</ul>
    ${of.missing.length > 0 && html`<p>Missing: ${of.missing.map(spelled).join('; ')}.</p>`}
    ${of.statement && of.stage !== 'approved' && !at() && html`<div class="form">
      <p>An approval is an Ed25519 signature over exactly this. Sign it where your key is; this page sees by itself when it is there.</p>
      <pre class="block" id="statement">${spelled(of.statement)}</pre>
      <${Command} line=${`worldctl approve ${of.proposal} --key ~/.ssh/id_ed25519`} />
      ${may('approve') && html`<${Paste} of=${of} world=${world} />`}
    </div>`}`;
}

/**
 * keyOf is a public key in hex, of hex or of a line of ssh; "": it is neither. The last 32
 * bytes of what ssh writes of an Ed25519 key are the key.
 * @param {string} text
 */
function keyOf(text) {
  if (/^[0-9a-f]{64}$/i.test(text.trim())) return text.trim().toLowerCase();
  const line = /^ssh-ed25519\s+([A-Za-z0-9+/=]{68})(\s|$)/.exec(text.trim());
  return line ? Array.from(atob(line[1]).slice(-32), (c) => c.charCodeAt(0).toString(16).padStart(2, '0')).join('') : '';
}

/** Paste takes a signature that was made elsewhere. @param {{of: any, world: string}} props */
function Paste({ of, world }) {
  const [key, setKey] = useState('');
  const [signature, setSignature] = useState('');
  const [reason, setReason] = useState('');
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const ready = keyOf(key) !== '' && /^[A-Za-z0-9+/]{86}==$/.test(signature.trim());
  const send = async (/** @type {Event} */ e) => {
    e.preventDefault();
    if (!ready) return;
    await post(pathOf(world, 'proposals', of.proposal, 'approve'), { key: keyOf(key), signature: signature.trim(), reason }).then(() => setError(null), setError);
    grown.value++;
  };
  const field = (/** @type {(to: string) => void} */ set) => (/** @type {any} */ e) => set(e.target.value);
  return html`<details><summary>Paste a signature that was made elsewhere</summary><form onSubmit=${send}>
    <label>Public key, hex or a line of ssh<input spellcheck="false" autocomplete="off" value=${key} onInput=${field(setKey)} /></label>
    <label>Signature over these bytes, base64<input spellcheck="false" autocomplete="off" value=${signature} onInput=${field(setSignature)} /></label>
    <label>Reason (the journal keeps it)<input maxlength="4000" autocomplete="off" value=${reason} onInput=${field(setReason)} /></label>
    <${Trouble} of=${error} />
    <button class="full yes" disabled=${!ready}>Approve with this signature</button>
  </form></details>`;
}

/** How a proposal ends. @type {import('./decide.js').Way[]} */
const ends = [
  { name: 'Apply', key: 'x', verb: 'apply', kind: 'yes', scope: 'admin', silent: true },
  { name: 'Reject', key: 'd', verb: 'reject', kind: 'no', needs: true },
];

/** End says what an apply would come to, and offers what ends a proposal. @param {{of: any, world: string}} props */
function End({ of, world }) {
  const [form, setForm] = useState(/** @type {any} */ (null));
  if (of.ended && !form) return null;
  const open = ends.filter((way) => way.verb !== 'apply' || of.would_apply.ok);
  const meanwhile = form && (of.ended ? `it is ${of.stage} now` : form.about.report_hash !== of.report_hash ? 'there is another report now' : '');
  return html`<h2 class="sub">Now</h2>
    <p>${of.would_apply.ok ? `It would be applied, and migrate ${number(of.would_apply.migrated)} cells.` : html`It would not be applied: ${spelled(of.would_apply.error).replace(/^\w+: /, '')}.`}</p>
    ${form ? html`<${Form} world=${world} way=${form.way} about=${of.proposal} meanwhile=${meanwhile} close=${() => setForm(null)}
        send=${(/** @type {string} */ reason) => post(pathOf(world, 'proposals', of.proposal, form.way.verb), form.way.verb === 'apply' ? {} : { reason })}
        line=${(/** @type {string} */ reason) => `worldctl ${form.way.verb} ${word(of.proposal)}` + (form.way.verb === 'apply' ? '' : ` -m ${reason}`)} />`
      : html`<${Ways} of=${open} begin=${(/** @type {any} */ way) => setForm({ way, about: of })} />`}`;
}
