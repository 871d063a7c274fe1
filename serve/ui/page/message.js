// What of an event or a param are words that somebody said.
import { useEffect, useRef, useState } from './lib.js';
import { get, pathOf } from './api.js';
import { useAnswer } from './live.js';

/** @typedef {{who?: string, text: string}} View the names of the properties that hold who speaks and what they say */
/** @typedef {{who: string, text: string, rest: Record<string, unknown> | undefined}} Message */

/** The shapes that are known: of the chat API of models, and of people who talk. */
const known = [{ who: 'role', text: 'content' }, { who: 'from', text: 'words' }];

/**
 * messageOf is what somebody said; null: it has no shape that is known, or says nothing.
 * @param {any} data @param {View | undefined} view of the event's schema @returns {Message | null}
 */
export function messageOf(data, view) {
  if (data === null || typeof data !== 'object' || Array.isArray(data)) return null;
  const of = sessionOf(data);
  if (of) return of;
  for (const shape of view ? [view] : known) {
    const text = wordsOf(own(data, shape.text));
    const who = shape.who === undefined ? '' : own(data, shape.who);
    if (text === null || typeof who !== 'string' || !(who || text)) continue;
    const rest = Object.entries(data).filter(([name, v]) => name !== shape.text && name !== shape.who && !isEmpty(v));
    return { who, text, rest: rest.length > 0 ? Object.fromEntries(rest) : undefined };
  }
  return null;
}

/**
 * sessionOf is what a request to a model, its answer, or that of a tool says in a session of an agent (docs/gateway.md); null: it is none of them.
 * @param {any} data @returns {Message | null}
 */
function sessionOf(data) {
  const { prompt, model, text, usage, result, body, header, ...rest } = data;
  if (isAsked(data)) return { who: 'user', text: prompt, rest: { model, ...rest } };
  if (typeof text !== 'string') return null;
  if (usage !== undefined && Array.isArray(data.calls)) return { who: 'assistant', text, rest: data.calls.length > 0 ? { calls: data.calls } : undefined };
  return typeof result === 'string' && typeof data.late === 'boolean' ? { who: 'tool', text: text || spoken(result) || spoken(String(data.error ?? '')), rest: undefined } : null;
}

/** isAsked reports whether data is a request of an agent to a model. @param {any} data */
export const isAsked = (data) => isObject(data) && ['ask', 'prompt', 'model', 'dialect'].every((name) => typeof own(data, name) === 'string') && data.model !== '';

/** calledOf is on one line what a session asks a model or a tool; null: it is no session's call. @param {any} params */
export function calledOf(params) {
  if (isAsked(params)) return params.model + ': ' + params.prompt;
  if (!isObject(params) || !['ask', 'tool', 'server'].every((name) => typeof own(params, name) === 'string')) return null;
  return (params.server && params.server + '/') + params.tool + ' ' + text(own(params, 'arguments'));
}

/** readable has the body of a request as text, where it is. @param {any} params */
export const readable = (params) => (isAsked(params) && typeof params.body === 'string' ? { ...params, body: spoken(params.body) || params.body } : params);

/** spoken is the text that base64 holds; empty: it holds none. @param {string} base64 */
function spoken(base64) {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)));
  } catch {
    return '';
  }
}

/** own is a property that the data has itself. @param {any} data @param {string} name */
const own = (data, name) => (Object.hasOwn(data, name) ? data[name] : undefined);

/** isEmpty reports whether there is nothing to say of it. @param {any} v */
const isEmpty = (v) => v === null || v === '' || (Array.isArray(v) && v.length === 0);

/** wordsOf is the text of a content, which models may have in parts, or not at all where they call tools; null: it is none. @param {any} content */
function wordsOf(content) {
  if (content === null || typeof content === 'string') return content ?? '';
  if (!Array.isArray(content) || content.length === 0) return null;
  const parts = content.map((p) => p?.text);
  return parts.every((p) => typeof p === 'string') ? parts.join('\n') : null;
}

/**
 * useViews are the views that the schemas of events have, by the names of the events.
 * @param {string} world @param {Map<number, any>} records whose events are shown @returns {Map<string, View>}
 */
export function useViews(world, records) {
  const manifest = useAnswer(pathOf(world, 'manifest'), true);
  const [views, setViews] = useState(/** @type {Map<string, View>} */ (new Map()));
  const asked = useRef(new Set());
  const events = manifest.is?.manifest?.events ?? {};
  const names = new Set([...records.values()].filter((r) => r.kind.startsWith('event.')).map((r) => r.name));
  useEffect(() => {
    for (const name of names) {
      const schema = Object.hasOwn(events, name) ? events[name].schema : undefined;
      if (!schema || asked.current.has(name)) continue;
      asked.current.add(name);
      get(pathOf(world, 'contents', schema)).then((is) => {
        const view = is?.['x-view'];
        if (typeof view?.text === 'string' && (view.who === undefined || typeof view.who === 'string')) setViews((was) => new Map(was).set(name, view));
      }, () => {}); // without it the event is shown as it is
    }
  }, [manifest.is, [...names].join()]);
  return views;
}

/** @typedef {{name: string, note: string, added: unknown[], was?: unknown}} Growth */

/**
 * context is what became of the params of a call since the one before: what was added to
 * their lists and texts, and what else is another; null: they do not go on from it.
 * @param {any} before @param {any} now @returns {Growth[] | null}
 */
export function context(before, now) {
  if (!isObject(before) || !isObject(now)) return null;
  /** @type {Growth[]} */
  const found = [];
  let goesOn = false;
  for (const name of new Set([...Object.keys(before), ...Object.keys(now)])) {
    const [a, b] = [own(before, name), own(now, name)];
    if (JSON.stringify(a) === JSON.stringify(b)) continue;
    if (Array.isArray(a) && Array.isArray(b)) {
      const { kept, gone } = overlap(a.map(text), b.map(text));
      goesOn ||= kept > 0 && b.every((x) => typeof x === 'string' || messageOf(x, undefined) !== null);
      found.push({ name, added: b.slice(kept), note: `${b.length - kept} more` + (gone ? `, ${gone} left out` : '') });
    } else if (typeof a === 'string' && typeof b === 'string' && a && b.startsWith(a)) {
      goesOn = true;
      found.push({ name, added: [b.slice(a.length)], note: `${b.length - a.length} letters more` });
    } else found.push({ name, added: b === undefined ? [] : [b], was: a, note: 'another' });
  }
  return goesOn ? found : null;
}

/** @param {any} v */
const isObject = (v) => v !== null && typeof v === 'object' && !Array.isArray(v);

/** @param {unknown} v */
const text = (v) => JSON.stringify(v);

/** overlap is how many of a list's first items were in the one before, and how many that one had that are left out. @param {string[]} a @param {string[]} b */
function overlap(a, b) {
  let first = 0;
  while (first < a.length && a[first] === b[first]) first++;
  for (let gone = 0; first + gone < a.length; gone++) { // a head that stays, some that are left out, and then as before
    let i = 0;
    while (first + gone + i < a.length && a[first + gone + i] === b[first + i]) i++;
    if (first + gone + i === a.length) return { kept: first + i, gone };
  }
  return { kept: first, gone: a.length - first };
}
