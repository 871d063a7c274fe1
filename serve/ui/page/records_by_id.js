// Records by their numbers. They do not change, so that each is asked for once.
import { useEffect, useRef, useState } from './lib.js';
import { get, pathOf } from './api.js';

/** how many are asked for at once */
const most = 300;

/**
 * useRecords are records in words, those that are there already.
 * @param {string} world @param {number[]} ids 0: none @returns {{is: Map<number, any>, error: Error | null}}
 */
export function useRecords(world, ids) {
  const kept = useRef({ world, is: /** @type {Map<number, any>} */ (new Map()) });
  const [, setCame] = useState(0);
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  if (kept.current.world !== world) kept.current = { world, is: new Map() };
  const { is } = kept.current;
  const missing = [...new Set(ids)].filter((id) => id > 0 && !is.has(id));
  useEffect(() => {
    if (missing.length === 0) return undefined;
    const end = new AbortController();
    (async () => {
      for (let i = 0; i < missing.length; i += most) {
        let path = pathOf(world, 'records') + '?raw=false&ids=' + missing.slice(i, i + most).join();
        while (path) {
          const page = await get(path, end.signal);
          for (const r of page.records) is.set(r.id, r);
          path = page.next;
          setCame((n) => n + 1);
        }
      }
      setError(null);
    })().catch((err) => !end.signal.aborted && setError(err));
    return () => end.abort();
  }, [world, missing.join()]);
  return { is, error };
}
