// The API of the server that this page came from. The token is in the session storage of
// the tab, and goes out in a header: a cookie would go to every other port of the machine.
import { answered, copy, lacking } from './copy.js';
import { signal } from './lib.js';

const kept = 'worldkernel.session';

/** @typedef {{token: string, name: string, scopes: string[], worlds: string[] | null, dirs?: Record<string, string>}} Session dirs: where worlds are, for whom this machine is their own */

/** session is whom the server takes the page for; null: nobody. */
export const session = signal(/** @type {Session | null} */ (null));

/** ousted says that the server took the token no more, by which somebody was here. */
export const ousted = signal(false);

/** may reports whether there is a scope. @param {string} scope */
export const may = (scope) => session.value?.scopes.includes(scope) ?? false;

/** dirOf is where a world is, as shells here name it; "": nobody said. @param {string} world */
export const dirOf = (world) => {
  const dirs = session.value?.dirs ?? {};
  return Object.hasOwn(dirs, world) ? dirs[world] : '';
};

/** Problem is why the server did not do what it was asked for. */
export class Problem extends Error {
  /** @param {number} status @param {{type?: string, title?: string, detail?: string}} body */
  constructor(status, body) {
    super(body.detail || body.title || 'the server answered ' + status);
    this.status = status;
    this.kind = (body.type ?? '').replace('urn:worldkernel:problem:', '');
  }
}

/**
 * begin finds the session of this tab, or exchanges the code in the address for one. Who is
 * there stays: a link must not make somebody act in another's name.
 */
export async function begin() {
  if (copy) {
    session.value = { token: '', name: '', scopes: ['read'], worlds: null };
    return;
  }
  const code = /^#code=([\w-]+)$/.exec(location.hash);
  if (code) history.replaceState(null, '', location.pathname); // before anything else can read it
  try {
    session.value = JSON.parse(sessionStorage.getItem(kept) ?? 'null');
  } catch {
    sessionStorage.removeItem(kept);
  }
  if (code && session.value) throw new Error('you are here already: leave before you use another code');
  if (code) keep(await exchange(code[1]));
}

/** @param {Session} is */
function keep(is) {
  ousted.value = false;
  session.value = is;
  sessionStorage.setItem(kept, JSON.stringify(is));
}

/** exchange has a code become a session. @param {string} code @returns {Promise<Session>} */
async function exchange(code) {
  const res = await fetch('/api/sessions', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ code }) });
  if (!res.ok) throw await problemOf(res);
  return res.json();
}

/** enter lets somebody in who types a code of worldctl ui, or a token. @param {string} secret */
export async function enter(secret) {
  try {
    keep(await exchange(secret));
  } catch (err) {
    const who = await fetch('/api/whoami', { headers: { Authorization: 'Bearer ' + secret } });
    if (!who.ok) throw who.status === 401 ? err : await problemOf(who);
    keep({ ...await who.json(), token: secret });
  }
}

/** leave ends the session, and forgets its token. */
export function leave() {
  const token = session.value?.token;
  forget();
  if (token) void fetch('/api/sessions', { method: 'DELETE', headers: { Authorization: 'Bearer ' + token }, keepalive: true }).catch(() => {});
}

/** forget forgets the token, which may be taken still. */
function forget() {
  sessionStorage.removeItem(kept);
  session.value = null;
}

/** @param {Response} res */
async function problemOf(res) {
  try {
    return new Problem(res.status, await res.json());
  } catch {
    return new Problem(res.status, {});
  }
}

/** @param {string} path @param {RequestInit} [init] @returns {Promise<Response>} */
async function ask(path, init = {}) {
  if (copy) {
    const text = init.method ? null : answered(path);
    if (text === null) throw new Problem(404, { type: 'not-in-copy', title: lacking(path) });
    return new Response(text);
  }
  const headers = new Headers(init.headers);
  const token = session.value?.token ?? '';
  headers.set('Authorization', 'Bearer ' + token);
  const res = await fetch(path, { ...init, headers, cache: 'no-store' });
  if (res.ok) return res;
  const problem = await problemOf(res);
  if (res.status === 401 && session.value?.token === token) {
    ousted.value = true;
    forget();
  }
  throw problem;
}

/**
 * pathOf is the path of something of a world. What the address says is never more than one
 * part of it: a link must not have the page ask, or act, elsewhere.
 * @param {string} world @param {...(string | number)} parts
 */
export function pathOf(world, ...parts) {
  return '/api/worlds' + [world, ...parts].map((part) => {
    const text = String(part);
    if (/^\.{0,2}$/.test(text)) throw new Problem(404, { title: 'there is nothing of that name' });
    return '/' + encodeURIComponent(text);
  }).join('');
}

/** get reads something. @param {string} path @param {AbortSignal} [until] @returns {Promise<any>} */
export async function get(path, until) {
  return parse(await (await ask(path, { signal: until })).text());
}

/** Exact is a number that a JavaScript number would round. */
export class Exact {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }

  toJSON() {
    return /** @type {any} */ (JSON).rawJSON?.(this.text) ?? this.text;
  }
}

/** parse reads JSON; numbers that would be rounded stay as they are written. @param {string} text */
export function parse(text) {
  return JSON.parse(text, /** @type {any} */ ((/** @type {string} */ _, /** @type {any} */ v, /** @type {any} */ at) => {
    if (typeof v !== 'number' || Number.isSafeInteger(v)) return v;
    return new Exact(at?.source ?? '≈ ' + v); // a browser that does not tell cannot be trusted with it
  }));
}

/** post does something. @param {string} path @param {unknown} body @returns {Promise<any>} */
export async function post(path, body) {
  const res = await ask(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  return res.status === 204 ? null : parse(await res.text());
}

/** bytes reads something that is no JSON. @param {string} path @param {AbortSignal} [until] @returns {Promise<Uint8Array>} */
export async function bytes(path, until) {
  const res = await ask(path, { signal: until });
  return copy ? fromBase64(await res.json()) : new Uint8Array(await res.arrayBuffer());
}

/** @param {string} text */
const fromBase64 = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

/**
 * followBytes yields what a stream sends, as it comes, until the signal ends. One that breaks
 * off is taken up again at the path of then; alive is told whether there is one.
 * @param {() => string} path @param {AbortSignal} until @param {(is: boolean) => void} alive
 */
export async function* followBytes(path, until, alive) {
  for (let wait = 500; !until.aborted && !copy; wait = Math.min(wait * 2, 15000)) {
    try {
      const res = await ask(path(), { headers: { Accept: 'text/event-stream' }, signal: until });
      alive(true);
      for await (const event of events(res)) {
        wait = 500;
        if (event.data) yield fromBase64(event.data);
      }
    } catch (err) {
      if (until.aborted || (err instanceof Problem && err.status === 401)) return;
    }
    alive(false);
    await new Promise((done) => setTimeout(done, wait));
  }
}

/** events parses a stream of server-sent events. @param {Response} res */
async function* events(res) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ (res.body).pipeThrough(/** @type {ReadableWritablePair<string, any>} */ (new TextDecoderStream())).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      /** @type {Record<string, string>} */
      const event = {};
      for (const text of block.split('\n')) {
        const colon = text.indexOf(':');
        if (colon > 0) event[text.slice(0, colon)] = text.slice(colon + 1).replace(/^ /, '');
      }
      yield event;
    }
  }
}
