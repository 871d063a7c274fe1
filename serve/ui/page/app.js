// The page: who looks, at which world, and which view of it.
import { html, render, useEffect, useLayoutEffect, useRef, useState } from './lib.js';
import { begin, enter, get, leave, may, ousted, pathOf, Problem, session } from './api.js';
import { Cells } from './cells.js';
import { columns } from './columns.js';
import { Compare } from './compare.js';
import { Conversations } from './conversations.js';
import { copy } from './copy.js';
import { Find } from './find.js';
import { History } from './history.js';
import { Inbox } from './inbox.js';
import { following, useAnswer, watch, watchAll } from './live.js';
import { Meters } from './meters.js';
import { Moment } from './moment.js';
import { Head, typing } from './parts.js';
import { address, go, place, replace, there, where } from './place.js';
import { Proof } from './proof.js';
import { Records } from './records.js';
import { Rules } from './rules.js';
import { Timeline } from './timeline.js';
import { line, short, spelled } from './text.js';
import { Worlds } from './worlds.js';

/** The views of a world, and the key that leads there after g. */
const views = [
  { id: 'timeline', name: 'Timeline', key: 't', of: Timeline },
  { id: 'conversations', name: 'Conversations', key: 's', of: Conversations },
  { id: 'inbox', name: 'Inbox', key: 'i', of: Inbox },
  { id: 'records', name: 'Journal', key: 'j', of: Records },
  { id: 'cells', name: 'Cells', key: 'c', of: Cells },
  { id: 'rules', name: 'Rules', key: 'r', of: Rules },
  { id: 'history', name: 'History', key: 'h', of: History },
  ...(copy ? [] : [{ id: 'compare', name: 'Compare', key: 'd', of: Compare }]), // which a server computes
  { id: 'meters', name: 'Meters', key: 'm', of: Meters },
  { id: 'proof', name: 'Proof', key: 'p', of: Proof },
];

const themes = ['system', 'light', 'dark'];

/** wear puts a theme on. @param {string} theme */
function wear(theme) {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem('worldkernel.theme', theme);
  } catch { /* it is forgotten with the tab */ }
}

/** App is all of it. */
function App() {
  const { world, view } = place.value;
  if (!session.value) return html`<${Door} />`;
  if (!may('read')) return html`<main class="door"><p>You are here as <b>${spelled(session.value.name)}</b>, with a token for ${session.value.scopes.map(spelled).join(', ')}: it cannot read, so there is nothing to show.</p><button type="button" onClick=${leave}>leave</button></main>`;
  return html`<${Page} key=${world} world=${world} view=${view} />`;
}

/** Page is what somebody sees who was let in. @param {{world: string, view: string}} props */
function Page({ world, view }) {
  const worlds = useAnswer('/api/worlds', Boolean(world));
  const status = useAnswer(world ? pathOf(world) : null);
  const [help, setHelp] = useState(false);
  useEffect(() => (world ? watch(world) : watchAll()), [world]);
  useKeys(() => setHelp((was) => !was));
  const shown = views.find((v) => v.id === view);
  const inbox = useAnswer(world ? '/api/inbox?limit=1000' : null);
  const owed = (inbox.is?.owed ?? []).filter((/** @type {any} */ o) => o.world === world).length;
  useEffect(() => {
    document.title = (owed ? `(${owed}) ` : '') + (status.is ? spelled(status.is.world) + ' · ' : '') + 'worldkernel';
  });
  return html`<a class="skip" href="#main" onClick=${(/** @type {Event} */ e) => { e.preventDefault(); document.getElementById('main')?.focus(); }}>to the content</a>
    <aside>
      <a class="brand" href=${address('', '')}><img src="mark.svg" alt="" width="16" height="16" /> worldkernel</a>
      <select aria-label="World" value=${world} onChange=${(/** @type {any} */ e) => go(e.target.value, view === 'worlds' ? 'inbox' : view)}>
        <option value="">all worlds</option>
        ${(worlds.is?.worlds ?? []).map((/** @type {any} */ w) => html`<option key=${w.id} value=${w.id}>${spelled(w.name)} · ${short(w.id, 6)}</option>`)}
      </select>
      <${Find} world=${world} />
      <nav aria-label="Views">
        ${world && views.map((v) => html`<a key=${v.id} href=${there(v.id)} aria-current=${v.id === view ? 'page' : undefined}>${v.name}${v.id === 'inbox' && owed > 0 && html`<span class="count">${owed}</span>`}</a>`)}
        <a href=${address('', '')} aria-current=${world || view === 'inbox' ? undefined : 'page'}>All worlds</a>
        ${!world && html`<a href=${address('', 'inbox')} aria-current=${view === 'inbox' ? 'page' : undefined}>Inbox</a>`}
      </nav>
      <div class="foot">
        ${copy ? html`<${Copied} />` : html`<span class=${following.value ? 'lamp on' : 'lamp'} role="status">${following.value ? 'following' : 'not following'}</span>`}
        <button type="button" onClick=${() => wear(themes[(themes.indexOf(document.documentElement.dataset.theme ?? 'system') + 1) % themes.length])}>colors</button>
        <button type="button" onClick=${() => setHelp(!help)}>keys <kbd>?</kbd></button>
        ${session.value?.name && html`<span class="dim">as ${spelled(session.value.name)}</span>`}
        ${!copy && html`<button type="button" onClick=${leave}>leave</button>`}
      </div>
    </aside>
    <main id="main" tabindex="-1">${absent(status.error) ? html`<${Nowhere} />` : html`${world && html`<${Moment} />`}${shown && (world || view === 'inbox') ? html`<${shown.of} world=${world} status=${status.is} />` : world || view !== 'worlds' ? html`<${Nowhere} view=${view} />` : html`<${Worlds} />`}`}</main>
    ${help && html`<${Help} close=${() => setHelp(false)} />`}`;
}

/** absent reports whether a world is not there, or not for who asks: nothing of it can be shown, and no empty view looks like a world at rest. @param {Error | null} error */
const absent = (error) => error instanceof Problem && (error.status === 403 || error.status === 404);

/** Nowhere stands where an address leads to nothing. @param {{view?: string}} props a view that there is none of; without it the world is not there */
function Nowhere({ view }) {
  return html`<${Head} title=${view === undefined ? 'No such world' : 'No such view'} />
    <p class="pad" role="alert">${view === undefined ? 'there is no such world here, or not for this token' : 'there is no view named ' + line(view, 60)}. <a href=${address('', '')}>All worlds</a></p>`;
}

/** Copied says what somebody looks at who was given a copy. */
function Copied() {
  if (!copy) return null;
  return html`<p class="copied" role="note"><b>A copy</b>, made ${spelled(copy.made)}: ${copy.verified ? 'it was verified' : html`<span class="bad">it did not hold</span>`} when it was made, by ${spelled(copy.by)}, up to #${copy.records}. It can have been changed since.
    ${copy.whole < copy.records && ` A payload was redacted: cells are shown up to #${copy.whole}.`} A bundle of the world lets you verify it yourself.</p>`;
}

let after = -Infinity; // when g was pressed, which may have been in another world

/** useKeys has g and a letter lead to a view, also on the way to a world. @param {() => void} help */
function useKeys(help) {
  useLayoutEffect(() => {
    /** @param {KeyboardEvent} e */
    const pressed = (e) => {
      if (typing(e) || e.ctrlKey || e.metaKey || e.altKey) return;
      const soon = e.timeStamp - after < 1500;
      after = e.key === 'g' ? e.timeStamp : -Infinity;
      const to = soon && views.find((v) => v.key === e.key);
      const { world, of } = where();
      if (to && world) go(world, to.id, { at: of.at });
      else if (soon && e.key === 'w') go('', '');
      else if (soon && e.key === 'i') go('', 'inbox');
      else if (e.key === '?') help();
      else if (e.key === '/') document.getElementById('find')?.focus();
      else return;
      e.preventDefault();
      e.stopImmediatePropagation(); // the letter after g is no key of the view
    };
    addEventListener('keydown', pressed, true);
    return () => removeEventListener('keydown', pressed, true);
  }, []);
}

/** Help lists the keys. @param {{close: () => void}} props */
function Help({ close }) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useLayoutEffect(() => box.current?.showModal(), []);
  return html`<dialog ref=${box} onClose=${close} aria-label="Keys">
    <h2>Keys</h2>
    <dl class="facts">
      ${views.map((v) => html`<div class="fact" key=${v.id}><dt><kbd>g</kbd> <kbd>${v.key}</kbd></dt><dd>${v.name}</dd></div>`)}
      <div class="fact"><dt><kbd>g</kbd> <kbd>w</kbd></dt><dd>All worlds</dd></div>
      <div class="fact"><dt><kbd>j</kbd> <kbd>k</kbd></dt><dd>down and up a list</dd></div>
      <div class="fact"><dt><kbd>m</kbd></dt><dd>the world as of the record that is chosen</dd></div>
      <div class="fact"><dt><kbd>[</kbd> <kbd>]</kbd> <kbd>.</kbd> <kbd>p</kbd></dt><dd>a record earlier, later, now, and play</dd></div>
      <div class="fact"><dt><kbd>f</kbd></dt><dd>in the timeline: one way only, from its input to its end</dd></div>
      <div class="fact"><dt><kbd>a</kbd> <kbd>d</kbd></dt><dd>approve, deny</dd></div>
      <div class="fact"><dt><kbd>y</kbd> <kbd>n</kbd></dt><dd>it happened, it did not</dd></div>
      <div class="fact"><dt><kbd>/</kbd></dt><dd>find: #16, t7, desk/B-2, a key</dd></div>
    </dl>
    <form method="dialog"><button>close <kbd>esc</kbd></button></form>
  </dialog>`;
}

/** Door asks who is not known for a code or a token. */
function Door() {
  const [secret, setSecret] = useState('');
  const [error, setError] = useState('');
  const knock = async (/** @type {Event} */ e) => {
    e.preventDefault();
    try {
      await enter(secret.trim());
    } catch (err) {
      setError(/** @type {Error} */ (err).message);
    }
  };
  return html`<main class="door"><form onSubmit=${knock}>
    <h1><img src="mark.svg" alt="" width="24" height="24" /> worldkernel</h1>
    <p>worldctl ui leads a browser here with a code; worldctl serve prints a token, and worldctl token new makes one.</p>
    <label>Code or token<input type="password" autocomplete="off" value=${secret} onInput=${(/** @type {any} */ e) => setSecret(e.target.value)} autofocus /></label>
    ${(error || ousted.value) && html`<p class="trouble" role="alert">${spelled(error || 'your token is not taken any more: its time is over, or somebody has taken it back')}</p>`}
    <button class="full yes">Enter</button>
  </form></main>`;
}

try {
  wear(localStorage.getItem('worldkernel.theme') ?? 'system');
} catch {
  wear('system');
}
const app = /** @type {HTMLElement} */ (document.getElementById('app'));
let trouble = '';
try {
  await begin();
  if (copy && location.hash === '') replace(address((await get('/api/worlds')).worlds[0].id, 'timeline')); // it has one
} catch (err) {
  trouble = /** @type {Error} */ (err).message;
}
// Once: what shows a signal is rendered anew by itself, and never while it is being rendered.
render(html`${trouble && html`<p class="trouble pad" role="alert">${spelled(trouble)}</p>`}<${App} />`, app);

// What a test of the page holds to the records.
export { columns, get, pathOf };
