// How it came to something: the way back to the input, a record a line.
import { html, useEffect, useState } from './lib.js';
import { get, pathOf } from './api.js';
import { look } from './lanes.js';
import { address } from './place.js';
import { spelled } from './text.js';

/** What a kind of record looks like. */
const marks = {
  'event.submitted': '▶', 'event.emitted': '▷', 'cell.stepped': '●', 'intent.emitted': '◇', 'intent.denied': '⊖', 'intent.in_doubt': '?', 'intent.awaiting_approval': '◔', 'invocation.started': '•',
  'invocation.finished': '■', 'intent.resolved': '⚑', 'timer.fired': '◷', 'clock.advanced': '·', 'snapshot.created': '⚐', 'rollback.applied': '↶',
};

/** tone is the class of what tells of a record: bad where it came out so, such as an answer that is an error. @param {{kind: string, how?: string}} of */
export const tone = ({ kind, how }) => (look(how ? kind + ' ' + how : kind).color === 'bad' ? 'bad' : '');

/** Mark is the sign of a record. @param {{of: {kind: string, how?: string}}} props */
export function Mark({ of: record }) {
  const of = record.kind;
  return html`<span class=${'mark ' + of.replace('.', '-') + ' ' + tone(record)} aria-hidden="true">${marks[/** @type {keyof typeof marks} */ (of)] ?? '·'}</span>`;
}

/** sentence says on one line what a record says, as worldctl tail does. @param {any} record */
export const sentence = (record) => spelled(record.what);

/** the longest way that is told */
const most = 40;

/**
 * Story tells the way from a record back to the input that began it.
 * @param {{world: string, from: number}} props
 */
export function Story({ world, from }) {
  const [way, setWay] = useState(/** @type {any[]} */ ([]));
  useEffect(() => {
    const end = new AbortController();
    (async () => {
      const found = [];
      for (let at = from; at > 0 && found.length < most && !end.signal.aborted; ) {
        const record = await get(pathOf(world, 'records', at) + '?raw=false', end.signal);
        found.push(record);
        at = record.cause;
      }
      setWay(found);
    })().catch(() => {}); // what is shown says so already
    return () => end.abort();
  }, [world, from]);
  return html`<ol class="story">${way.map((r) => html`<li key=${r.id}>
    <a href=${address(world, 'records', { of: r.id })}>#${r.id}</a> <${Mark} of=${r} /> <b>${spelled(r.kind)}</b>
    <p class=${tone(r)}>${sentence(r)}</p>
  </li>`)}</ol>`;
}
