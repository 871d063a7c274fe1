// Where the records of a world are in a picture: along the axis, and in which lane.

/** @typedef {import('./columns.js').Columns} Columns */

/** how many lanes of a group are shown before somebody asks for all */
const some = 24;

/** What a record looks like, by its kind and how it came out. */
const looks = [
  { test: /^event\.submitted/, shape: 'input', color: 'link' },
  { test: /^event\./, shape: 'event', color: 'event' },
  { test: /^cell\.(failed|step_failed)|^cell\.stepped fail/, shape: 'bad', color: 'bad', trouble: 3 },
  { test: /^cell\.stepped/, shape: 'step', color: 'dim' },
  { test: /^intent\.in_doubt/, shape: 'doubt', color: 'doubt', trouble: 4 },
  { test: /^intent\.denied/, shape: 'denied', color: 'bad', trouble: 2 },
  { test: /^intent\.awaiting_approval/, shape: 'waits', color: 'warn', trouble: 4 },
  { test: /^invocation\.finished ok/, shape: 'answer', color: 'good' },
  { test: /^invocation\.finished input_required/, shape: 'waits', color: 'warn', trouble: 4 },
  { test: /^invocation\.finished accepted/, shape: 'permit', color: 'dim' },
  { test: /^invocation\.finished|^intent\.ended (?!ok)/, shape: 'bad', color: 'bad', trouble: 2 },
  { test: /^intent\./, shape: 'asks', color: 'link' },
  { test: /^invocation\.late (?!ok|input_required|accepted)/, shape: 'permit', color: 'bad' },
  { test: /^invocation\./, shape: 'permit', color: 'dim' },
  { test: /^timer\./, shape: 'timer', color: 'event' },
];
const other = { shape: 'rule', color: 'doubt' };

/** look is how a kind of record is drawn. @param {string} what @returns {{shape: string, color: string, trouble?: number}} */
export const look = (what) => looks.find((l) => l.test.test(what)) ?? other;

/**
 * axis places records: each tick is as wide as log2(1 + its records), or each record as
 * wide as any other. Places grow with records.
 * @param {Columns} of @param {boolean} byTick
 */
export function axis(of, byTick) {
  const at = new Float64Array(of.n + 1);
  /** @type {{tick: number, from: number}[]} */
  const ticks = [];
  let place = 0;
  for (let i = 0; i < of.n; ) {
    let end = i + 1;
    while (end < of.n && of.time[end] === of.time[i]) end++;
    const width = byTick ? Math.log2(1 + end - i) : end - i;
    ticks.push({ tick: of.time[i], from: place });
    for (let k = i; k < end; k++) at[k] = place + ((k - i + 0.5) * width) / (end - i);
    place += width;
    i = end;
  }
  at[of.n] = place;
  return { at, ticks, width: place };
}

/** first is the first record at a place or after it. @param {Float64Array} at @param {number} n @param {number} place */
export function first(at, n, place) {
  let low = 0;
  for (let high = n; low < high; ) {
    const mid = (low + high) >> 1;
    if (at[mid] < place) low = mid + 1;
    else high = mid;
  }
  return low;
}

/**
 * wayOf marks a record, what led to it, and all that followed from it.
 * @param {Columns} of @param {number} i
 */
export function wayOf(of, i) {
  const on = new Uint8Array(of.n);
  for (let k = i; k >= 0 && !on[k]; k = of.cause[k] - 1) on[k] = 1;
  const after = new Uint8Array(of.n);
  after[i] = 1;
  for (let k = i + 1; k < of.n; k++) if (of.cause[k] && after[of.cause[k] - 1]) on[k] = after[k] = 1;
  return on;
}

/** @typedef {{cell: number, name: string, records: Int32Array, trouble: number}} Lane */
/** @typedef {{name: string, lanes: Lane[], all: number}} Group */

/**
 * groups are the lanes by reducer, those with trouble first where there are many.
 * @param {Columns} of @param {string} wanted @param {Set<string>} open groups of which all lanes are shown
 * @param {Uint8Array | null} only the records that are shown; null: all
 * @returns {Group[]}
 */
export function groups(of, wanted, open, only) {
  const counts = new Int32Array(of.cells.length + 1);
  const trouble = new Float64Array(of.cells.length);
  const troubles = of.whats.map((w) => look(w).trouble ?? 0);
  const each = (/** @type {(i: number, cell: number) => void} */ act) => {
    for (let i = 0; i < of.n; i++) if (of.cell[i] >= 0 && (!only || only[i])) act(i, of.cell[i]);
    for (const [i, cells] of of.several) if (!only || only[i]) for (const c of cells) act(i, c);
  };
  each((i, c) => {
    counts[c]++;
    trouble[c] += troubles[of.what[i]];
  });
  const lists = Array.from(counts.subarray(0, of.cells.length), (n) => new Int32Array(n));
  const filled = new Int32Array(of.cells.length);
  each((i, c) => {
    lists[c][filled[c]++] = i;
  });
  /** @type {Map<string, Lane[]>} */
  const found = new Map();
  of.cells.forEach((name, cell) => {
    if ((wanted && !name.includes(wanted)) || (only && counts[cell] === 0)) return;
    const slash = name.indexOf('/');
    const group = slash < 0 ? name : name.slice(0, slash);
    const lane = { cell, name: slash < 0 ? name : name.slice(slash + 1), records: of.several.size ? lists[cell].sort() : lists[cell], trouble: trouble[cell] };
    found.get(group)?.push(lane) ?? found.set(group, [lane]);
  });
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, lanes]) => {
    const all = lanes.length;
    if (all > some && !open.has(name)) {
      lanes.sort((a, b) => b.trouble - a.trouble || b.records.length - a.records.length);
      lanes.length = some;
    }
    lanes.sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
    return { name, lanes, all };
  });
}
