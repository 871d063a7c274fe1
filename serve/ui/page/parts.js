// Small parts that several views have.
import { html, useEffect, useLayoutEffect, useRef, useState } from './lib.js';
import { dirOf, Problem } from './api.js';
import { lead, place, where } from './place.js';
import { spelled } from './text.js';

/**
 * Command is the worldctl line that gives the same; a click copies it. Where it is known in
 * which directory the world is, the line names that, and can be typed anywhere.
 * @param {{line: string, world?: string}} props
 */
export function Command({ line: short, world = place.value.world }) {
  const dir = dirOf(world);
  const line = dir ? 'worldctl -w ' + word(dir) + short.slice('worldctl'.length) : short;
  const [copied, setCopied] = useState(false);
  const copy = () => {
    void navigator.clipboard?.writeText(line).then(() => setCopied(true));
    setTimeout(() => setCopied(false), 1500);
  };
  return html`<button class="command" type="button" onClick=${copy} title="copy"><code>${spelled(line)}</code><span aria-live="polite">${copied ? ' copied' : ''}</span></button>`;
}

/** CommandNow is a line that tells what is now, and says so where a moment of the past is looked at. @param {{line: string}} props */
export const CommandNow = ({ line }) => html`${place.value.of.at && html`<small>as of now: </small>`}<${Command} line=${line} />`;

/** beside is where another world is, of that name in the same place. @param {string} world @param {string} name */
export const beside = (world, name) => (dirOf(world) ? dirOf(world).replace(/[^/]*$/, '') : '../') + name;

/** word quotes what a shell would take apart. @param {string} text */
export function word(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : "'" + text.replace(/'/g, `'\\''`) + "'";
}

/** Trouble says what went wrong. @param {{of: Error | null}} props */
export function Trouble({ of }) {
  if (!of) return null;
  const kind = of instanceof Problem && of.kind ? of.kind : '';
  return html`<p class="trouble" role="alert">${spelled(of.message)} ${kind && html`<small>${kind}</small>`}</p>`;
}

/** Fact is a line of what is known. @param {{name: string, children?: any}} props */
export function Fact({ name, children }) {
  return html`<div class="fact"><dt>${name}</dt><dd>${children}</dd></div>`;
}

/** Head is the line above a pane. @param {{title: any, about?: any, children?: any}} props */
export function Head({ title, about, children }) {
  return html`<header class="head"><h1>${title}</h1>${about && html`<span class="about">${about}</span>`}<div class="right">${children}</div></header>`;
}

/** What a state of an intent looks like: a sign, and a word, so that color is not all. */
const signs = {
  awaiting_approval: '◔', awaiting_answer: '◔', awaiting_confirmation: '◔', in_doubt: '?', in_flight: '→', open: '◇', committed: '■', failed: '✕', denied: '⊖', cancelled: '⊘',
};

/** State is the state of an intent, or what it is called here. @param {{of: string, name?: string}} props */
export function State({ of, name = of.replace('_', ' ') }) {
  return html`<span class=${'state ' + of}><span aria-hidden="true">${signs[/** @type {keyof typeof signs} */ (of)] ?? '•'}</span> ${name}</span>`;
}

/**
 * List is a list that is walked with j and k or the arrows.
 * @param {{items: {id: string, href: string, body: any}[], chosen: string, label: string}} props
 */
export function List({ items, chosen, label }) {
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    list.current?.querySelector('[aria-current=true]')?.scrollIntoView({ block: 'nearest' });
  }, [chosen]);
  useLayoutEffect(() => {
    /** @param {KeyboardEvent} e */
    const walk = (e) => {
      const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[e.key];
      if (!step || typing(e) || e.ctrlKey || e.metaKey || e.altKey) return;
      const is = items.findIndex((x) => x.id === (where().of.of ?? chosen));
      const to = items[Math.max(0, Math.min(items.length - 1, is + step))];
      if (!to) return;
      e.preventDefault();
      lead(to.href);
    };
    addEventListener('keydown', walk);
    return () => removeEventListener('keydown', walk);
  }, [items, chosen]);
  return html`<nav class="list" aria-label=${label} ref=${list}>
    ${items.map((x) => html`<a key=${x.id} href=${x.href} aria-current=${x.id === chosen}>${x.body}</a>`)}
  </nav>`;
}

/** typing reports whether a key is text that somebody writes. @param {KeyboardEvent} e */
export function typing(e) {
  const on = /** @type {HTMLElement | null} */ (e.target);
  return on instanceof HTMLInputElement || on instanceof HTMLTextAreaElement || on instanceof HTMLSelectElement;
}

/** useKey has a key do something, unless somebody writes. @param {string} key @param {() => void} act @param {boolean} [on] */
export function useKey(key, act, on = true) {
  useLayoutEffect(() => { // what is seen can be pressed
    /** @param {KeyboardEvent} e */
    const pressed = (e) => {
      if (!on || e.key !== key || typing(e) || e.ctrlKey || e.metaKey || e.altKey) return;
      e.preventDefault();
      act();
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  });
}
