// What a cell handled, and what it did then: of the columns, so that the server is asked for
// nothing but what is shown.

/** @typedef {{id: number, what: string, before: number, became: string}} Out before: the call of the same kind before it; 0: none */
/** @typedef {{step: number, event: number, answers: number, out: Out[], records: number[]}} Turn answers: the call that the event answers; 0: none. Numbers are those of records. */

/**
 * turnsOf are the turns of a cell in the order in which it took them, and the events that
 * came to it and wait: also again, since a rollback left behind how they were handled.
 * @param {import('./columns.js').Columns} of @param {string} cell @param {(id: number) => number} left @returns {{turns: Turn[], pending: number[]}}
 */
export function turnsOf(of, cell, left) {
  const c = of.cells.indexOf(cell);
  /** @type {Turn[]} */
  const turns = [];
  if (c < 0) return { turns, pending: [] };
  const kinds = of.whats.map(kind);
  const turnOf = new Int32Array(of.n + 1); // of a step, by its record: its place, from 1
  const callOf = new Int32Array(of.n + 1); // of what tells of a call, by its record: the call
  /** @type {Map<number, Out>} */
  const calls = new Map();
  /** @type {Map<number, number>} */
  const last = new Map(); // of each kind of call
  /** @type {Set<number>} */
  const waits = new Set();
  for (let i = 0; i < of.n; i++) {
    const [id, cause, is] = [i + 1, of.cause[i], kinds[of.what[i]]];
    if (is === 'event' && (of.cell[i] === c || of.several.get(i)?.includes(c))) waits.add(id);
    if (is === 'step' && of.cell[i] === c) {
      if (!left(id)) waits.delete(cause);
      turnOf[id] = turns.push({ step: id, event: cause, answers: callOf[cause], out: [], records: [cause] });
      if (of.whats[of.what[i]].startsWith('cell.failed')) output(turns[turns.length - 1], id, of.whats[of.what[i]], 0);
      continue;
    }
    const turn = turnOf[cause];
    if (cause > 0 && turn > 0 && is !== 'quiet') {
      const out = output(turns[turn - 1], id, of.whats[of.what[i]], is === 'call' ? last.get(of.name[i]) ?? 0 : 0);
      if (is !== 'call') continue;
      last.set(of.name[i], id);
      calls.set(id, out);
      callOf[id] = id;
    } else if (cause > 0 && callOf[cause] > 0) {
      callOf[id] = callOf[cause];
      if (is === 'call' || is === 'answer') /** @type {Out} */ (calls.get(callOf[id])).became = of.whats[of.what[i]];
    }
  }
  for (const turn of turns) if (turn.answers) turn.records.push(turn.answers);
  return { turns, pending: [...waits].filter((id) => !left(id)) };
}

/** @param {Turn} turn @param {number} id @param {string} what @param {number} before @returns {Out} */
function output(turn, id, what, before) {
  const out = { id, what, before, became: what };
  turn.out.push(out);
  turn.records.push(id);
  if (before) turn.records.push(before);
  return out;
}

/** kind is what a record is for a conversation. @param {string} what */
function kind(what) {
  if (/^cell\.(stepped|failed)/.test(what)) return 'step';
  if (/^event\.(submitted|emitted)/.test(what)) return 'event';
  if (/^intent\.(emitted|awaiting_approval|denied)/.test(what)) return 'call';
  if (/^(invocation\.finished|intent\.(in_doubt|ended|cancelled))/.test(what)) return 'answer';
  if (/^(timer\.set|cell\.cancelled|cell\.deleted)/.test(what)) return 'other';
  return 'quiet';
}
