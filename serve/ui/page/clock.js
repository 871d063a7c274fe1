// When a tick is. Of a world whose clock is real its number says nothing to a person: the
// page tells the time of the calendar then, in UTC, as worldctl does.
import { html, signal } from './lib.js';
import { Exact, get, pathOf } from './api.js';
import { place } from './place.js';

/** @typedef {{epoch: bigint, tick: bigint}} Clock in nanoseconds */

/** the clocks of worlds; null: it is simulated. A real one stays as it is. */
const clocks = signal(/** @type {Record<string, Clock | null>} */ ({}));

/** @type {Set<string>} */
const asked = new Set();

/** clockOf is the real clock of a world; null: it has none, or that is not known yet. @param {string} world @returns {Clock | null} */
function clockOf(world) {
  const known = clocks.value;
  if (Object.hasOwn(known, world)) return known[world];
  if (world && !asked.has(world)) {
    asked.add(world);
    get(pathOf(world, 'manifest')).then((is) => {
      const of = is.manifest?.clock ?? {};
      const clock = of.mode === 'real' ? { epoch: whole(of.epoch), tick: whole(of.tick) } : null;
      clocks.value = { ...clocks.value, [world]: clock };
    }).catch(() => asked.delete(world)); // what is shown says so already
  }
  return null;
}

/** whole is a number as it was written. @param {any} of */
const whole = (of) => BigInt(of instanceof Exact ? of.text : of ?? 0);

/** isReal reports whether the clock of the world that is shown is real. */
export const isReal = () => clockOf(place.value.world) !== null;

/**
 * when is a tick for a list: its time of the calendar, or t and its number.
 * @param {number | Exact} tick @param {string} [world]
 */
export function when(tick, world = place.value.world) {
  const clock = clockOf(world);
  if (clock === null) return 't' + (tick instanceof Exact ? tick.text : tick);
  if (tick === 0) return 'not begun';
  const ms = (clock.epoch + whole(tick) * clock.tick) / 1000000n;
  return new Date(Number(ms)).toISOString().replace('.000Z', 'Z');
}

/** atTick is when, within a sentence. @param {number | Exact} tick @param {string} [world] */
export const atTick = (tick, world) => when(tick, world).replace(/^t/, 'tick ');

/** Tick is when a record of a list was written. @param {{of: number}} props */
export const Tick = ({ of }) => html`<span class=${isReal() ? 'n dim time' : 'n dim'}>${when(of)}</span>`;
