// A copy of a world that was given away: the page has with it what it would have asked a
// server for, and asks nobody. See docs/ui.md; serve/api/copy.go has the other half.

/** What of a query says how much is wanted of an answer: each is there whole. */
const ofForm = ['raw', 'all', 'limit', 'mail'];

/** What of a query the items of a list have to have. */
const ofItems = ['state', 'cell', 'kind', 'status', 'decision'];

/** The answers, by the paths that are asked for them. @type {Map<string, Element>} */
const answers = new Map();
for (const is of document.querySelectorAll('script[data-path]')) answers.set(canonical(/** @type {HTMLElement} */ (is).dataset.path ?? ''), is);

/**
 * copy says what was copied, when and by what; null: there is a server.
 * @type {{made: string, by: string, verified: boolean, records: number, whole: number} | null}
 */
export const copy = JSON.parse(text('/copy') ?? 'null');

/** @param {string} path */
function canonical(path) {
  const url = new URL(path, 'http://copy');
  for (const name of ofForm) url.searchParams.delete(name);
  return url.pathname + (url.searchParams.size ? '?' + url.searchParams : '');
}

/** @param {string} path @returns {string | null} */
function text(path) {
  return answers.get(path)?.textContent ?? null;
}

/** answered is what a server would answer, as JSON; null: the copy does not hold it. @param {string} path @returns {string | null} */
export function answered(path) {
  const { pathname, searchParams: query } = new URL(path, 'http://copy');
  const [, world, of] = /^(\/api\/worlds\/[^/]+)(\/.*)$/.exec(pathname) ?? [];
  if (of === '/records') return records(world, query);
  if (of === '/cell') return cell(world, query.get('cell') ?? '', query.get('at') ?? '');
  if (of === '/cell/diff') return step(world, query.get('cell') ?? '', query.get('at') ?? '');
  if (of === '/cells' && query.get('at')) return cells(world, query.get('at') ?? '');
  return text(canonical(path)) ?? filtered(text(pathname), query);
}

/** lacking says why a copy does not hold something. @param {string} path @returns {string} */
export function lacking(path) {
  const { pathname, searchParams: query } = new URL(path, 'http://copy');
  const [, world = '', of] = /^(\/api\/worlds\/[^/]+)(\/.*)$/.exec(pathname) ?? [];
  if (copy && /^\/cells?(\/diff)?$/.test(of ?? '')) {
    const at = record(world, query.get('at') ?? '');
    if (at > copy.whole) return `a payload was redacted that cells are computed of: this copy of a world has them up to #${copy.whole}`;
    return at > 0 ? 'there was no such cell at #' + at : 'there is no such moment in this copy of a world';
  }
  if (of === '/series') return 'this copy of a world has its meters as of its end only';
  return 'this copy of a world does not hold that';
}

/** exact is JSON whose numbers stringify writes as they were. @param {string} of @returns {any} */
const exact = (of) => JSON.parse(of, /** @type {any} */ ((/** @type {string} */ _, /** @type {any} */ v, /** @type {any} */ at) =>
  typeof v === 'number' && !Number.isSafeInteger(v) && at?.source ? /** @type {any} */ (JSON).rawJSON?.(at.source) ?? v : v));

/** filtered is a list of which only some is wanted. @param {string | null} all @param {URLSearchParams} query */
function filtered(all, query) {
  const wanted = ofItems.filter((name) => query.get(name));
  if (all === null || wanted.length === 0) return null;
  const of = exact(all);
  for (const [name, list] of Object.entries(of)) {
    if (Array.isArray(list)) of[name] = list.filter((item) => wanted.every((of) => query.get(of)?.split(',').includes(item[of])));
  }
  return JSON.stringify(of);
}

/** The records, for what is looked up of them. @type {any[]} */
let known = [];

/** @param {string} world @returns {any[]} */
function all(world) {
  if (known.length === 0 && copy) known = Array.from({ length: copy.records }, (_, i) => JSON.parse(text(world + '/records/' + (i + 1)) ?? '{}'));
  return known;
}

/** tells reports whether a record concerns a cell, or was written in a turn of it. @param {string} world @param {any} r @param {string} cell @returns {boolean} */
function tells(world, r, cell) {
  if (r.cells.includes(cell)) return true;
  const cause = all(world)[r.caused_by - 1];
  if (cause?.kind === 'cell.stepped') return cause.cells.includes(cell);
  return r.kind === 'event.dropped' && cause ? tells(world, cause, cell) : false;
}

/** records are those that are wanted, as they are written. @param {string} world @param {URLSearchParams} query */
function records(world, query) {
  const number = (/** @type {string} */ name) => Number(query.get(name)?.replace('#', '') ?? 0);
  const [cell, kinds, ids, cause, before] = [query.get('cell'), query.getAll('kind').flatMap((k) => k.split(',')), query.get('ids'), number('caused_by'), number('before')];
  const fits = (/** @type {any} */ r) => r.id > number('after') && r.id >= number('from') && (!before || r.id < before) && r.id <= (number('to') || Infinity)
    && (!cell || tells(world, r, cell)) && (kinds.length === 0 || kinds.includes(r.kind)) && (!cause || r.caused_by === cause);
  const found = ids ? ids.split(',').map((id) => all(world)[Number(id) - 1]) : all(world).filter(fits);
  const limit = number('limit') || found.length;
  const page = before ? found.slice(-limit) : found.slice(0, limit);
  const rest = new URLSearchParams(query);
  if (page.length > 0) rest.set(before ? 'before' : 'after', String(before ? page[0].id : page[page.length - 1].id));
  const next = page.length < found.length ? world + '/records?' + rest : null;
  return `{"records":[${page.map((r) => text(world + '/records/' + r?.id)).join()}],"next":${JSON.stringify(next)}}`;
}

/** record is the one of a moment: #12, 12, t5 or head; 0: there is none. @param {string} world @param {string} at @returns {number} */
function record(world, at) {
  if (at === '' || at === 'head') return copy?.records ?? 0;
  if (/^t\d+$/.test(at)) return all(world).findLast((r) => r.time <= Number(at.slice(1)))?.id ?? 0;
  return /^#?\d+$/.test(at) ? Number(at.replace('#', '')) : 0;
}

/** cell is how a cell stood: each moment is the one before with edits, [from, keep, drop, text, ...]. @param {string} world @param {string} name @param {string} moment */
function cell(world, name, moment) {
  const at = record(world, moment);
  const moments = text(canonical(world + '/cell?cell=' + encodeURIComponent(name)));
  if (moments === null || at === 0 || at > (copy?.whole ?? 0)) return null;
  let is = '';
  for (const [from, ...edits] of JSON.parse(moments)) {
    if (from > at) break;
    let [next, done] = ['', 0];
    for (let i = 0; i < edits.length; i += 3) {
      next += is.slice(done, done + edits[i]) + edits[i + 2];
      done += edits[i] + edits[i + 1];
    }
    is = next + is.slice(done);
  }
  return is === '' ? null : is.replace(/"at":0}$/, `"at":${at}}`);
}

/** cells are all that there were. @param {string} world @param {string} moment */
function cells(world, moment) {
  if (record(world, moment) > (copy?.whole ?? 0)) return null;
  const names = JSON.parse(text(world + '/cells') ?? '{"cells":[]}').cells.map((/** @type {any} */ c) => c.cell);
  const then = names.map((/** @type {string} */ name) => JSON.parse(cell(world, name, moment) ?? 'null')).filter(Boolean);
  return JSON.stringify({ at: record(world, moment), next: null, cells: then.map((/** @type {any} */ c) => ({ cell: c.cell, n: c.n, state_hash: null, mailbox: c.mailbox_len, halted: c.halted })) });
}

/**
 * step is what the last step that a cell had taken by a moment changed in its state or, where
 * something else has changed that since, what that did. @param {string} world @param {string} name @param {string} moment
 */
function step(world, name, moment) {
  const at = record(world, moment);
  const last = all(world).findLast((r) => r.id <= at && r.kind === 'cell.stepped' && r.cells.includes(name))?.id;
  const state = (/** @type {number} */ of) => exact((of > 0 && cell(world, name, String(of))) || '{}').state;
  if (cell(world, name, moment) === null) return null;
  const [a, b] = last === undefined ? [at, at] : JSON.stringify(state(last)) === JSON.stringify(state(at)) ? [last - 1, last] : [last, at];
  const changes = differences('', state(a) ?? undefined, state(b) ?? undefined);
  return JSON.stringify({ cell: name, a, b, same: changes.length === 0, state: changes });
}

/** differences are where two values differ, as deep as both are objects or both are lists. @param {string} path @param {any} a @param {any} b @returns {{path: string, a?: any, b?: any}[]} */
function differences(path, a, b) {
  const kind = (/** @type {any} */ v) => (Array.isArray(v) ? 'list' : v !== null && typeof v === 'object' && !(/** @type {any} */ (JSON).isRawJSON?.(v)) ? 'object' : '');
  if (JSON.stringify(a) === JSON.stringify(b)) return [];
  if (!kind(a) || kind(a) !== kind(b)) return [{ path, a, b }];
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].flatMap((name) =>
    differences(path + '/' + name.replace(/~/g, '~0').replace(/\//g, '~1'), Object.hasOwn(a, name) ? a[name] : undefined, Object.hasOwn(b, name) ? b[name] : undefined));
}
