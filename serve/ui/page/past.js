// Which part of a journal is the past of what is now: a rollback leaves a part behind.
import { useMemo } from './lib.js';
import { columns } from './columns.js';
import { useRecords } from './records_by_id.js';

/** @typedef {{id: number, at: number, record: any}} Rollback at: the last record of what came back */

/** useRollbacks are those of the world that is shown, from the first. @param {string} world @returns {Rollback[]} */
export function useRollbacks(world) {
  const { of, version } = columns.value;
  const ids = useMemo(() => idsOf(of, /^rollback\.applied/), [of, version]);
  const { is } = useRecords(world, ids);
  const all = ids.filter((id) => is.has(id)).map((id) => ({ id, at: is.get(id).payload?.snapshot_journal_len ?? 0, record: is.get(id) }));
  const key = all.map((r) => r.id).join();
  return useMemo(() => all, [world, key]);
}

/** idsOf are the records of some kinds. @param {import('./columns.js').Columns} of @param {RegExp} test */
export function idsOf(of, test) {
  const wanted = of.whats.map((w) => test.test(w));
  const ids = [];
  for (let i = 0; i < of.n; i++) if (wanted[of.what[i]]) ids.push(i + 1);
  return ids;
}

/** kept are the parts that are the past of a record, from the newest. @param {Rollback[]} all @param {number} head @returns {[number, number][]} */
export function kept(all, head) {
  /** @type {[number, number][]} */
  const parts = [];
  for (let end = head; end > 0; ) {
    const last = all.findLast((r) => r.id <= end);
    parts.push([last?.id ?? 1, end]);
    end = last?.at ?? 0;
  }
  return parts;
}

/**
 * leftBehind tells of a record which rollback left it behind; 0: it is of the past of what is now.
 * @param {Rollback[]} all @param {number} head @returns {(id: number) => number}
 */
export function leftBehind(all, head) {
  const parts = kept(all, head);
  return (id) => (parts.some(([from, to]) => id >= from && id <= to) ? 0 : parts.findLast(([from]) => from > id)?.[0] ?? 0);
}
