// The form in which somebody decides. It never changes under the hand: it is about what it
// was when it was opened, and sends nothing once that has become something else.
import { html, useLayoutEffect, useRef, useState } from './lib.js';
import { may, pathOf, post } from './api.js';
import { grown } from './live.js';
import { at } from './moment.js';
import { Command, Trouble, useKey, word } from './parts.js';
import { isCut, spelled, Value } from './text.js';

/**
 * @typedef {object} Way what can be decided
 * @property {string} name @property {string} key that begins it @property {'yes' | 'no'} kind
 * @property {string} verb of the API and of worldctl @property {boolean} [needs] a reason
 * @property {string} [field] what is asked besides, as JSON
 * @property {string} [scope] that it takes; approve, if none is named @property {boolean} [silent] it takes no reason
 */

/** Ways are the buttons that begin a decision, for whoever may take one, now. @param {{of: Way[], begin: (way: any) => void}} props */
export function Ways({ of, begin }) {
  const open = at() ? [] : of.filter((way) => may(way.scope ?? 'approve'));
  return html`<div class="buttons">${open.map((way) => html`<${Begin} key=${way.key} way=${way} begin=${begin} />`)}</div>`;
}

/** @param {{way: Way, begin: (way: Way) => void}} props */
function Begin({ way, begin }) {
  useKey(way.key, () => begin(way));
  return html`<button type="button" class=${way.kind} onClick=${() => begin(way)}>${way.name} <kbd>${way.key}</kbd></button>`;
}

/**
 * Form asks why, and sends the decision.
 * @param {{world: string, way: Way, about: string, meanwhile: string, first?: string, send: (reason: string, data: string) => Promise<any>, line: (reason: string, data: string) => string, close: () => void}} props
 * first is what stands in the field to begin with;
 * meanwhile says what has changed since the form was opened; "": nothing
 */
export function Form({ world, way, about, meanwhile, first = '', send, line, close }) {
  const [reason, setReason] = useState('');
  const [data, setData] = useState(first);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const form = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => /** @type {HTMLElement | null | undefined} */ (form.current?.querySelector('textarea') ?? form.current?.querySelector('button'))?.focus(), []);
  const ready = !busy && !meanwhile && (!way.needs || reason.trim() !== '') && (!way.field || json(data));
  const decide = async () => {
    if (!ready) return;
    setBusy(true);
    setError(null);
    try {
      await send(reason, data);
      close();
    } catch (err) {
      setError(/** @type {Error} */ (err));
      setBusy(false);
    }
    grown.value++;
  };
  const pressed = (/** @type {KeyboardEvent} */ e) => {
    if (e.key === 'Escape') close();
    if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) void decide();
  };
  return html`<div class="form" role="form" aria-label=${way.name} ref=${form} onKeyDown=${pressed}>
    ${way.field && html`<label>${way.field}<textarea rows="5" spellcheck="false" value=${data} onInput=${(/** @type {any} */ e) => setData(e.target.value)}></textarea></label>`}
    ${!way.silent && html`<label>Reason (the journal keeps it)<textarea rows="3" maxlength="4000" value=${reason} onInput=${(/** @type {any} */ e) => setReason(e.target.value)}></textarea></label>`}
    ${meanwhile && html`<p class="trouble" role="alert">Somebody else was faster: ${meanwhile}. Nothing was sent.</p>`}
    <${Trouble} of=${error} />
    <div class="buttons">
      <button type="button" class=${'full ' + way.kind} disabled=${!ready} onClick=${decide}>${way.name}: ${spelled(about)} <kbd>ctrl ↵</kbd></button>
      <button type="button" onClick=${close}>not yet <kbd>esc</kbd></button>
    </div>
    <${Command} world=${world} line=${line(word(reason || '…'), word(data || '…'))} />
  </div>`;
}

/** json reports whether a text is JSON. @param {string} text */
function json(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** What can be done about a cell that is halted. @type {Way[]} */
const ofCells = [
  { name: 'Try again', key: 'r', verb: 'resume', kind: 'yes', needs: true },
  { name: 'Skip the event', key: 's', verb: 'skip', kind: 'no', needs: true },
];

/** Stuck is what a halted cell failed on and, once all of that was shown, what can be done about it. @param {{world: string, of: any}} props */
export function Stuck({ world, of }) {
  const [whole, setWhole] = useState(false);
  const mail = of.halted && of.mailbox[0];
  return html`<div class="whole">
    ${mail && html`<h2 class="sub">The event that it failed on: ${spelled(mail.name)}</h2><div class="box"><${Value} of=${mail.data} whole=${whole} /></div>`}
    ${mail && isCut(mail.data) && !whole ? html`<${ShowAll} act=${() => setWhole(true)} />` : html`<${Resume} world=${world} of=${of} />`}
  </div>`;
}

/** ShowAll stands where the buttons are once all of it is shown. @param {{act: () => void}} props */
export const ShowAll = ({ act }) => html`<p><button type="button" onClick=${act}>Show all of it</button> before you decide: some of it is cut.</p>`;

/** Resume lets a halted cell go on, with the event that failed or without. @param {{world: string, of: any}} props */
function Resume({ world, of }) {
  const [form, setForm] = useState(/** @type {{way: Way, about: any} | null} */ (null));
  if (!form) return of.halted ? html`<${Ways} of=${ofCells} begin=${(/** @type {Way} */ way) => setForm({ way, about: of })} />` : null;
  const { way, about } = form;
  const meanwhile = !of.halted ? 'it was halted, and goes on now' : of.failure?.record !== about.failure?.record ? 'it has failed at something else' : '';
  return html`<${Form} world=${world} way=${way} about=${about.cell} meanwhile=${meanwhile} close=${() => setForm(null)}
    send=${(/** @type {string} */ reason) => post(pathOf(world, 'cell', way.verb), { cell: about.cell, reason })}
    line=${(/** @type {string} */ reason) => `worldctl cell ${way.verb} ${word(about.cell)} --reason ${reason}`} />`;
}
