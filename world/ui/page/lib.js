// What the page has from others, at one place: see ../vendor.sh.
import { h, render } from './vendor/preact.js';
import htm from './vendor/htm.js';

export { render };
export { useEffect, useLayoutEffect, useMemo, useRef, useState, useCallback } from './vendor/hooks.js';
export { signal, computed } from './vendor/signals.js';

/** html makes elements; what is put into it becomes text, never markup. */
export const html = htm.bind(h);
