// What waits for a person, and the form in which one decides about it. A form never changes
// under the hand: it is about the intent as it was when it was opened, and what it sends
// says so.
import { html, useEffect, useRef, useState } from './lib.js';
import { may, pathOf, post } from './api.js';
import { grown, useAnswer } from './live.js';
import { address, amend, here, place } from './place.js';
import { Command, Fact, Head, List, State, Trouble, useKey, word } from './parts.js';
import { Story } from './story.js';
import { isCut, line, short, spelled, Value } from './text.js';

/** Inbox is the view. @param {{world: string}} props */
export function Inbox({ world }) {
  const base = pathOf(world, 'intents');
  const parked = useAnswer(base + '?state=parked&limit=200');
  const doubt = useAnswer(base + '?state=in_doubt&limit=200');
  const all = [...(parked.is?.intents ?? []), ...(doubt.is?.intents ?? [])];
  const chosen = place.value.of.of ?? '';
  const known = Boolean((parked.is || parked.error) && (doubt.is || doubt.error));
  useEffect(() => {
    if (!chosen && all.length > 0 && known) amend({ of: all[0].key }); // and it stays, whatever the list becomes
  }, [chosen, all.length > 0, known]);
  const items = all.map((/** @type {any} */ x) => ({
    id: x.key,
    href: here({ of: x.key }),
    body: html`<b><${State} of=${x.state} /> ${spelled(x.kind)}</b><span>${spelled(x.cell)} <code>${line(x.params, 60)}</code></span>`,
  }));
  return html`<div class="two">
    <section class="side">
      <${Head} title="Inbox" about=${parked.is ? (all.length || 'nothing') + (all.length > 1 ? ' wait' : ' waits') + ' for a person' : ''} />
      <${Trouble} of=${parked.error ?? doubt.error} />
      <${List} label="Inbox" items=${items} chosen=${chosen} />
      <footer><${Command} line="worldctl intent list --state parked" /></footer>
    </section>
    <section class="main">${chosen && html`<${Intent} key=${chosen} world=${world} id=${chosen} />`}</section>
  </div>`;
}

/** Intent is one, with what can be decided about it. @param {{world: string, id: string}} props */
function Intent({ world, id }) {
  const path = /^[0-9a-f]{4,64}$/.test(id) ? pathOf(world, 'intents', id) : null;
  const { is, error } = useAnswer(path);
  const [whole, setWhole] = useState(false);
  const [form, setForm] = useState(/** @type {{way: any, about: any} | null} */ (null));
  const begin = (/** @type {any} */ way) => is && setForm({ way, about: is });
  if (path === null) return html`<${Trouble} of=${new Error('that is no key of an intent')} />`;
  if (!is && !form) return html`<${Trouble} of=${error} />`;
  const x = is ?? form?.about;
  return html`<${Head} title=${html`<code>${short(x.key)}</code>`} about=${html`<${State} of=${x.state} />`}>
      <a href=${address(world, 'records', { of: x.emitted })}>#${x.emitted} in the journal</a>
    <//>
    <div class="pad">
      <h2>${spelled(x.cell)} wants <b>${spelled(x.kind)}</b></h2>
      <div class="box"><${Value} of=${x.params} whole=${whole} /></div>
      ${isCut(x.params) && !whole && html`<p><button type="button" onClick=${() => setWhole(true)}>Show all of it</button> before you decide: some of it is cut.</p>`}
      <dl class="facts">
        ${x.rules?.length > 0 && html`<${Fact} name="decided by">${x.rules.map(spelled).join(', ')}<//>`}
        ${x.reason && html`<${Fact} name="what is owed">${spelled(x.reason)}<//>`}
        ${x.deadline > 0 && html`<${Fact} name="until">tick ${x.deadline}, then it is denied<//>`}
        ${x.cap && html`<${Fact} name="capability">${spelled(x.cap)}<//>`}
        ${x.attempts?.length > 0 && html`<${Fact} name="attempts">${x.attempts.length}<//>`}
        <${Fact} name="bound to"><code>${short(x.params_hash)}…</code> these params and no others<//>
      </dl>
      <${Trouble} of=${error} />
      ${form
        ? html`<${Form} path=${path} way=${form.way} about=${form.about} now=${x} close=${() => setForm(null)} />`
        : (whole || !isCut(x.params)) && html`<${Ways} of=${x} begin=${begin} />`}
      <h2 class="sub">How it came to this</h2>
      <${Story} world=${world} from=${x.finished || x.started || x.emitted} />
      <footer><${Command} line=${'worldctl intent show ' + short(x.key)} /></footer>
    </div>`;
}

/** What can be decided, by the state of the intent. */
const ways = {
  parked: [
    { name: 'Approve', key: 'a', verb: 'approve', kind: 'yes', body: () => ({}) },
    { name: 'Deny', key: 'd', verb: 'deny', kind: 'no', needs: true, body: () => ({}) },
  ],
  in_doubt: [
    { name: 'It happened', key: 'y', verb: 'resolve', kind: 'yes', needs: true, free: true, body: () => ({ executed: true }), flag: '--executed' },
    { name: 'It did not', key: 'n', verb: 'resolve', kind: 'no', needs: true, free: true, body: () => ({ executed: false }), flag: '--not-executed' },
  ],
  failed: [{ name: 'Try again', key: 'r', verb: 'retry', kind: 'yes', needs: true, body: () => ({}) }],
};

/** Ways are the buttons that begin a decision. @param {{of: any, begin: (way: any) => void}} props */
function Ways({ of, begin }) {
  const open = may('approve') ? ways[/** @type {keyof typeof ways} */ (of.state)] ?? [] : [];
  return html`<div class="buttons">${open.map((way) => html`<${Way} key=${way.key} way=${way} begin=${begin} />`)}</div>`;
}

/** @param {{way: any, begin: (way: any) => void}} props */
function Way({ way, begin }) {
  useKey(way.key, () => begin(way));
  return html`<button type="button" class=${way.kind} onClick=${() => begin(way)}>${way.name} <kbd>${way.key}</kbd></button>`;
}

/** changed says what has become of an intent since the form was opened; "": nothing. @param {any} was @param {any} is */
function changed(was, is) {
  if (was.state !== is.state) return `it was ${was.state.replace('_', ' ')}, and is ${is.state.replace('_', ' ')} now`;
  if (was.attempt !== is.attempt) return `it was at attempt ${was.attempt}, and is at ${is.attempt} now`;
  if (was.params_hash !== is.params_hash) return 'its params are others now';
  return '';
}

/** Form decides. @param {{path: string, way: any, about: any, now: any, close: () => void}} props */
function Form({ path, way, about, now, close }) {
  const [reason, setReason] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  useEffect(() => field.current?.focus(), []);
  const meanwhile = changed(about, now);
  const ready = !busy && !meanwhile && (!way.needs || reason.trim() !== '');
  const decide = async () => {
    if (!ready) return;
    setBusy(true);
    setError(null);
    try {
      await post(`${path}/${way.verb}`, { ...way.body(), reason, attempt: about.attempt, ...(way.free ? {} : { params_hash: about.params_hash }) });
      grown.value++;
      close();
    } catch (err) {
      setError(/** @type {Error} */ (err));
      grown.value++;
      setBusy(false);
    }
  };
  const pressed = (/** @type {KeyboardEvent} */ e) => {
    if (e.key === 'Escape') close();
    if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) void decide();
  };
  return html`<div class="form" role="form" aria-label=${way.name} onKeyDown=${pressed}>
    <label>Reason (the journal keeps it)<textarea ref=${field} rows="3" maxlength="4000" value=${reason} onInput=${(/** @type {any} */ e) => setReason(e.target.value)}></textarea></label>
    ${meanwhile && html`<p class="trouble" role="alert">Somebody else was faster: ${meanwhile}. Nothing was sent.</p>`}
    <${Trouble} of=${error} />
    <div class="buttons">
      <button type="button" class=${'full ' + way.kind} disabled=${!ready} onClick=${decide}>${way.name}: ${spelled(about.kind)} for ${spelled(about.cell)} <kbd>ctrl ↵</kbd></button>
      <button type="button" onClick=${close}>not yet <kbd>esc</kbd></button>
    </div>
    <${Command} line=${`worldctl intent ${way.verb} ${short(about.key)}${way.flag ? ' ' + way.flag : ''} --reason ${word(reason || '…')}`} />
  </div>`;
}
