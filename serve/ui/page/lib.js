// What the page has from others, at one place: see ../vendor.sh.
import { h, render } from './vendor/preact.js';
import { useMemo as memo, useState as state } from './vendor/hooks.js';
import htm from './vendor/htm.js';

export { render };
export { useEffect, useLayoutEffect, useRef, useCallback } from './vendor/hooks.js';
export { signal, computed } from './vendor/signals.js';

/** html makes elements; what is put into it becomes text, never markup. */
export const html = htm.bind(h);

// What was published has no types; these two are told them, since others follow.

/** useState is a value that is kept, and what changes it. @type {<T>(of: T | (() => T)) => [T, (to: T | ((was: T) => T)) => void]} */
export const useState = state;

/** useMemo is a value that is made again when what it is made of is another. @type {<T>(make: () => T, of: unknown[]) => T} */
export const useMemo = memo;
