// What the page knows of the world it shows, kept up with what happens there.
import { useEffect, useRef, useState, signal } from './lib.js';
import { get, session } from './api.js';
import { track } from './columns.js';

/** grown counts what has happened since the page was opened: whoever shows something reads it again then. */
export const grown = signal(0);

/** following says whether the page hears of what happens. */
export const following = signal(false);

/** watch follows a world until what it returns is called. @param {string} world */
export function watch(world) {
  let due = 0;
  const end = track(world, (is) => (following.value = is), () => {
    due ||= setTimeout(() => {
      due = 0;
      grown.value++;
    }, 100); // what comes together is read together
  });
  return () => {
    end();
    clearTimeout(due);
    following.value = false;
  };
}

/** how often all worlds are looked at, in milliseconds: a browser has too few connections for a stream of each */
const look = 1500;

/** watchAll follows all worlds that are served, until what it returns is called. */
export function watchAll() {
  const end = new AbortController();
  let was = '';
  (async () => {
    while (!end.signal.aborted && session.value) {
      try {
        const is = document.hidden ? was : JSON.stringify((await get('/api/worlds', end.signal)).worlds);
        following.value = true;
        if (was && is !== was) grown.value++;
        was = is;
      } catch {
        following.value = false;
      }
      await new Promise((done) => setTimeout(done, look));
    }
  })();
  return () => {
    end.abort();
    following.value = false;
  };
}

/**
 * useAnswer is what the server answers, asked again when something has happened: once what
 * was asked has been answered, so that a busy world is shown, too. What is known stays when
 * something goes wrong.
 * @param {string | null} path null: nothing is asked @param {boolean} [still] not again
 * @returns {{is: any, error: Error | null, of: string | null}}
 */
export function useAnswer(path, still = false) {
  const [answer, setAnswer] = useState({ is: /** @type {any} */ (null), error: /** @type {Error | null} */ (null), of: /** @type {string | null} */ (null) });
  const since = still ? 0 : grown.value;
  const asks = useRef({ of: /** @type {string | null} */ (null), end: new AbortController(), busy: false, again: false });
  useEffect(() => () => asks.current.end.abort(), []);
  useEffect(() => {
    const now = asks.current;
    if (now.of !== path) {
      now.end.abort();
      asks.current = { of: path, end: new AbortController(), busy: false, again: false };
    }
    if (path !== null) void ask(asks.current, path, setAnswer);
  }, [path, since]);
  return answer.of === path ? answer : { is: null, error: null, of: path };
}

/** @param {{of: string | null, end: AbortController, busy: boolean, again: boolean}} asks @param {string} path @param {(to: (was: any) => any) => void} set */
async function ask(asks, path, set) {
  asks.again = true;
  if (asks.busy) return;
  asks.busy = true;
  while (asks.again && !asks.end.signal.aborted) {
    asks.again = false;
    try {
      const is = await get(path, asks.end.signal);
      if (!asks.end.signal.aborted) set(() => ({ is, error: null, of: path }));
    } catch (error) {
      if (!asks.end.signal.aborted) set((was) => ({ is: was.of === path ? was.is : null, error, of: path }));
    }
  }
  asks.busy = false;
}
