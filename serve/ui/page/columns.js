// The journal as columns: what a picture of all of it takes. See the package comment of show/columns.
import { signal } from './lib.js';
import { bytes, followBytes, pathOf } from './api.js';

/** Columns are some of the columns of a world, grown as its journal grows. Records are counted from 0 here: the one with number n is n - 1. */
export class Columns {
  constructor() {
    this.n = 0;
    this.time = new Float64Array(1024);
    this.what = new Uint16Array(1024);
    this.name = new Int32Array(1024);
    this.cell = new Int32Array(1024); // -1: none, or several
    this.cause = new Float64Array(1024); // 0: none
    /** @type {Map<number, number[]>} the cells of a record with several */
    this.several = new Map();
    /** @type {string[]} */
    this.whats = [];
    /** @type {string[]} */
    this.names = [];
    /** @type {string[]} */
    this.cells = [];
    this.known = { whats: new Map(), names: new Map(), cells: new Map() };
  }

  /** add takes a page in; it returns how many records it has. @param {Uint8Array} page */
  add(page) {
    const length = new DataView(page.buffer, page.byteOffset).getUint32(0);
    const head = JSON.parse(new TextDecoder().decode(page.subarray(4, 4 + length)));
    const start = head.first - 1;
    if (head.records === 0 || start + head.records <= this.n) return head.records;
    this.n = start;
    this.room(start + head.records);
    let at = 4 + length;
    const number = () => {
      let n = 0;
      for (let of = 1; ; of *= 128) {
        const b = page[at++];
        n += (b & 127) * of;
        if (b < 128) return n;
      }
    };
    const whats = this.learn('whats', head.whats);
    const names = this.learn('names', head.names);
    const cells = this.learn('cells', head.cells);
    const end = start + head.records;
    let tick = head.time;
    for (let i = start; i < end; i++) this.time[i] = tick += number();
    for (let i = start; i < end; i++) this.what[i] = whats[number()];
    for (let i = start; i < end; i++) {
      const n = number();
      this.name[i] = n === 0 ? -1 : names[n - 1];
    }
    for (let i = start; i < end; i++) {
      const c = number();
      this.cell[i] = c & 1 ? cells[c >> 1] : -1;
      if (!(c & 1) && c > 0) this.several.set(i, Array.from({ length: c >> 1 }, () => cells[number()]));
    }
    for (let i = start; i < end; i++) {
      const before = number();
      this.cause[i] = before && i + 1 - before;
    }
    this.n = end;
    return head.records;
  }

  /** @param {'whats' | 'names' | 'cells'} kind @param {string[]} texts @returns {number[]} */
  learn(kind, texts) {
    const known = this.known[kind];
    return texts.map((text) => {
      let at = known.get(text);
      if (at === undefined) {
        at = this[kind].push(text) - 1;
        known.set(text, at);
      }
      return at;
    });
  }

  /** @param {number} n */
  room(n) {
    if (n <= this.time.length) return;
    const size = Math.max(n, this.time.length * 2);
    for (const name of /** @type {const} */ (['time', 'what', 'name', 'cell', 'cause'])) {
      const was = this[name];
      const is = new /** @type {any} */ (was.constructor)(size);
      is.set(was);
      /** @type {any} */ (this)[name] = is;
    }
  }
}

/** columns are those of the world that is shown; the number changes when they do. */
export const columns = signal({ of: new Columns(), version: 0 });

/**
 * track reads the columns of a world and follows them, until what it returns is called.
 * @param {string} world @param {(is: boolean) => void} alive @param {() => void} grown
 */
export function track(world, alive, grown) {
  const end = new AbortController();
  const of = new Columns();
  columns.value = { of, version: 0 };
  const changed = () => {
    if (!end.signal.aborted) columns.value = { of, version: columns.value.version + 1 };
  };
  const path = pathOf(world, 'columns') + '?after=';
  const read = async () => {
    for (let shown = 0; ;) {
      const page = await bytes(path + of.n, end.signal);
      if (of.add(page) === 0) return;
      if (of.n < 2 * shown) continue; // to show all that there is takes as long as it is
      changed();
      shown = of.n;
    }
  };
  (async () => {
    await read().catch(() => alive(false)); // the stream goes on where it broke off
    changed();
    for await (const page of followBytes(() => path + of.n, end.signal, alive)) {
      of.add(page);
      changed();
      grown();
    }
  })().catch(() => alive(false));
  return () => end.abort();
}
