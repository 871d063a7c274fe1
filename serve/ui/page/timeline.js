// All that happened in a world, a lane for each cell. The columns are in the browser: to
// zoom and to find causes asks the server nothing.
import { html, useEffect, useMemo, useRef, useState } from './lib.js';
import { pathOf } from './api.js';
import { isReal, Tick, when } from './clock.js';
import { columns } from './columns.js';
import { useAnswer } from './live.js';
import { axis, first, groups, look, wayOf } from './lanes.js';
import { at, recordAt } from './moment.js';
import { amend, go, here, lead, place, there, where } from './place.js';
import { Command, Head, useKey, word } from './parts.js';
import { Record } from './records.js';
import { Beside } from './shadow.js';
import { Mark, sentence, tone } from './story.js';
import { cut, number, spelled } from './text.js';

const laneHeight = 24;

/** @typedef {{from: number, to: number}} Span */

/** Timeline is the view. @param {{world: string}} props */
export function Timeline({ world }) {
  const { of, version } = columns.value;
  const byTick = place.value.of.axis !== 'order';
  const wanted = place.value.of.filter ?? '';
  const chosen = Number(place.value.of.of || 0);
  const [open, setOpen] = useState(() => new Set(/** @type {string[]} */ ([])));
  const line = useMemo(() => axis(of, byTick), [of, version, byTick]);
  const focus = place.value.of.focus && chosen > 0 && chosen <= of.n ? chosen : 0;
  const only = useMemo(() => (focus ? wayOf(of, focus - 1) : null), [of, version, focus]);
  const shown = useMemo(() => groups(of, wanted, open, only), [of, version, wanted, open, only]);
  const moment = at() ? recordAt(of) : 0;
  const [span, setSpan] = useState(/** @type {Span | null} */ (null));
  const now = span ?? { from: 0, to: Math.max(line.width, 1) };
  /** @param {Span | null} to */
  const move = (to) => {
    if (!to) return setSpan(null);
    const width = Math.min(Math.max(to.to - to.from, 0.5), Math.max(line.width, 1));
    const from = Math.max(0, Math.min(to.from, line.width - width));
    return setSpan(width >= line.width ? null : { from, to: from + width });
  };
  /** middle is what is zoomed at: the record that is chosen, where it is seen. */
  const middle = () => {
    const at = line.at[chosen - 1] ?? -1;
    return at >= now.from && at <= now.to ? at : (now.from + now.to) / 2;
  };
  /** @param {number} by @param {number} [around] */
  const zoom = (by, around = middle()) => move({ from: around - (around - now.from) * by, to: around + (now.to - around) * by });
  /** @param {number} by parts of what is seen */
  const pan = (by) => move({ from: now.from + (now.to - now.from) * by, to: now.to + (now.to - now.from) * by });
  useEffect(() => setSpan(null), [of, byTick]);
  useEffect(() => {
    const at = line.at[chosen - 1];
    if (chosen > 0 && at !== undefined && (at < now.from || at > now.to)) move({ from: at - (now.to - now.from) / 2, to: at + (now.to - now.from) / 2 });
  }, [chosen]);
  useKey('+', () => zoom(0.5));
  useKey('-', () => zoom(2));
  useKey('0', () => move(null));
  useKey('h', () => pan(-0.25));
  useKey('l', () => pan(0.25));
  useKey('f', () => amend({ focus: focus ? '' : '1' }), chosen > 0);
  const a = first(line.at, of.n, now.from);
  const b = first(line.at, of.n, now.to);
  return html`<${Head} title="Timeline" about=${number(b - a) + ' of ' + number(of.n) + ' records' + (moment > 0 && at() ? ', ' + number(moment) + ' of them by then' : '')}>
      <input class="filter" aria-label="Filter lanes" placeholder="filter lanes" value=${wanted} onInput=${(/** @type {any} */ e) => amend({ filter: e.target.value })} />
      <span class="choice"><a href=${here({ axis: '' })} aria-current=${byTick}>by tick</a><a href=${here({ axis: 'order' })} aria-current=${!byTick}>by order</a></span>
      <button type="button" aria-pressed=${focus > 0} disabled=${chosen === 0} onClick=${() => amend({ focus: focus ? '' : '1' })}>one way <kbd>f</kbd></button>
      <button type="button" aria-label="zoom out" onClick=${() => zoom(2)}>−</button>
      <button type="button" aria-label="zoom in" onClick=${() => zoom(0.5)}>+</button>
      <button type="button" onClick=${() => move(null)}>all</button>
    <//>
    <div class="two wide">
      <section class="side">
        <${Minimap} of=${of} line=${line} now=${now} move=${move} />
        <${Lanes} of=${of} line=${line} now=${now} groups=${shown} chosen=${chosen} moment=${moment} world=${world} zoom=${zoom} pan=${pan}
          toggle=${(/** @type {string} */ g) => setOpen((was) => { const is = new Set(was); if (!is.delete(g)) is.add(g); return is; })} open=${open} />
        <${InView} world=${world} of=${of} from=${a} count=${b - a} chosen=${chosen} />
        <footer><${Command} line=${'worldctl tail' + (at() ? ' --to ' + word(at()) : '')} /></footer>
      </section>
      <section class="main">${chosen > 0 && place.value.of.proposal && html`<${Beside} world=${world} proposal=${place.value.of.proposal} record=${chosen} />`}
        ${chosen > 0 ? html`<${Record} key=${chosen} world=${world} id=${chosen} />` : html`<p class="pad dim">Choose a record: click it, or walk the list below the lanes with j and k.</p>`}</section>
    </div>`;
}

/** paint makes a canvas as sharp as the screen and draws on it. @param {HTMLCanvasElement} canvas @param {number} height @param {(draw: CanvasRenderingContext2D, width: number, color: (name: string) => string) => void} act */
function paint(canvas, height, act) {
  const sharp = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  canvas.width = Math.round(width * sharp);
  canvas.height = Math.round(height * sharp);
  const draw = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  draw.scale(sharp, sharp);
  const style = getComputedStyle(canvas);
  /** @type {Record<string, string>} */
  const colors = {};
  act(draw, width, (name) => (colors[name] ??= style.getPropertyValue('--' + name).trim() || '#888'));
}

/** useWidth has something drawn again when the window changes. */
function useWidth() {
  const [width, setWidth] = useState(innerWidth);
  useEffect(() => {
    const changed = () => setWidth(innerWidth);
    addEventListener('resize', changed);
    return () => removeEventListener('resize', changed);
  }, []);
  return width;
}

/** Minimap is all of it, and which part is seen; a click leads there. @param {{of: any, line: any, now: Span, move: (to: Span) => void}} props */
function Minimap({ of, line, now, move }) {
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const width = useWidth();
  const height = 36;
  const counted = useRef(/** @type {{line: any, bins: Float64Array, bad: Float64Array} | null} */ (null)); // which takes longer than a frame
  useEffect(() => {
    if (!canvas.current) return;
    paint(canvas.current, height, (draw, wide, color) => {
      const n = Math.ceil(wide / 3);
      if (counted.current?.line !== line || counted.current.bins.length !== n) counted.current = { line, ...count(of, line, n) };
      const { bins, bad } = /** @type {{bins: Float64Array, bad: Float64Array}} */ (counted.current);
      const most = Math.log2(1 + bins.reduce((a, b) => Math.max(a, b), 1));
      bins.forEach((n, i) => {
        if (!n) return;
        const tall = (Math.log2(1 + n) / most) * (height - 6);
        draw.fillStyle = color('dim');
        draw.fillRect(i * 3, height - tall, 2, tall);
        if (bad[i]) {
          draw.fillStyle = color('bad');
          draw.fillRect(i * 3, 0, 2, 3);
        }
      });
      draw.strokeStyle = color('link');
      draw.strokeRect((now.from / line.width) * wide + 0.5, 0.5, Math.max(2, ((now.to - now.from) / line.width) * wide - 1), height - 1);
    });
  }, [of, line, now.from, now.to, width]);
  const lead = (/** @type {MouseEvent} */ e) => {
    const at = (e.offsetX / /** @type {HTMLElement} */ (e.currentTarget).clientWidth) * line.width;
    move({ from: at - (now.to - now.from) / 2, to: at + (now.to - now.from) / 2 });
  };
  return html`<canvas class="minimap" role="img" aria-label="all records" ref=${canvas} onClick=${lead}></canvas>`;
}

/** count counts the records in each part of the axis, and of these the troubled ones. @param {any} of @param {any} line @param {number} n */
function count(of, line, n) {
  const bins = new Float64Array(n);
  const bad = new Float64Array(n);
  const troubles = of.whats.map((/** @type {string} */ w) => (look(w).trouble ? 1 : 0));
  const scale = n / Math.max(line.width, 1);
  for (let i = 0; i < of.n; i++) {
    const bin = Math.min(n - 1, Math.floor(line.at[i] * scale));
    bins[bin]++;
    bad[bin] += troubles[of.what[i]];
  }
  return { bins, bad };
}

/** Lanes are the lanes. @param {any} props */
function Lanes({ of, line, now, groups: all, chosen, moment, world, zoom, pan, toggle, open }) {
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const width = useWidth();
  /** @type {{lane: any, y: number}[]} */
  const rows = [];
  let height = 18;
  const labels = all.flatMap((/** @type {any} */ g) => {
    const top = height;
    height += laneHeight;
    const lanes = g.lanes.map((/** @type {any} */ lane) => {
      rows.push({ lane, y: height + laneHeight / 2 });
      height += laneHeight;
      return html`<a key=${lane.cell} class="lane" href=${there('cells', { of: of.cells[lane.cell] })}><span>${cut(lane.name, 40)}</span><small>${number(lane.records.length)}</small></a>`;
    });
    return [html`<button key=${'g' + g.name + top} type="button" class="group" onClick=${() => toggle(g.name)} aria-expanded=${open.has(g.name)}><b>${spelled(g.name)}</b><small>${g.all > g.lanes.length ? g.lanes.length + ' of ' + number(g.all) : g.all + (g.all === 1 ? ' cell' : ' cells')}</small></button>`, ...lanes];
  });
  useEffect(() => {
    if (canvas.current) paint(canvas.current, height, (draw, wide, color) => drawLanes(draw, wide, height, color, of, line, now, rows, chosen, moment));
  }, [of, line, now.from, now.to, all, chosen, moment, width, height, isReal()]);
  useEffect(() => {
    const on = canvas.current;
    const turned = (/** @type {WheelEvent} */ e) => {
      if (!e.ctrlKey && Math.abs(e.deltaY) > Math.abs(e.deltaX) && !e.shiftKey) return; // the page is scrolled
      e.preventDefault();
      if (e.ctrlKey) zoom(e.deltaY > 0 ? 1.25 : 0.8, now.from + (e.offsetX / (on?.clientWidth ?? 1)) * (now.to - now.from));
      else pan((e.deltaX || e.deltaY) / 1000);
    };
    on?.addEventListener('wheel', turned, { passive: false });
    return () => on?.removeEventListener('wheel', turned);
  });
  const choose = (/** @type {MouseEvent} */ e) => {
    const row = rows.reduce((a, b) => (Math.abs(b.y - e.offsetY) < Math.abs(a.y - e.offsetY) ? b : a), rows[0]);
    if (!row) return;
    const at = now.from + (e.offsetX / /** @type {HTMLElement} */ (e.currentTarget).clientWidth) * (now.to - now.from);
    const near = nearest(row.lane.records, line.at, at);
    if (near >= 0) go(world, 'timeline', { ...place.value.of, of: near + 1 });
  };
  return html`<div class="lanes"><div class="labels">${labels}</div><canvas role="img" aria-label=${`lanes of ${rows.length} cells`} ref=${canvas} height=${height} onClick=${choose}></canvas></div>`;
}

/** nearest is the record of a lane that is nearest to a place; -1: it has none. @param {Int32Array} records @param {Float64Array} at @param {number} to */
function nearest(records, at, to) {
  let low = 0;
  for (let high = records.length; low < high; ) {
    const mid = (low + high) >> 1;
    if (at[records[mid]] < to) low = mid + 1;
    else high = mid;
  }
  const [a, b] = [records[low - 1], records[low]];
  if (a === undefined) return b ?? -1;
  return b === undefined || to - at[a] < at[b] - to ? a : b;
}

/** drawLanes draws what is seen. @param {CanvasRenderingContext2D} draw @param {number} wide @param {number} height @param {(name: string) => string} color @param {any} of @param {any} line @param {Span} now @param {any[]} rows @param {number} chosen @param {number} moment */
function drawLanes(draw, wide, height, color, of, line, now, rows, chosen, moment) {
  const scale = wide / (now.to - now.from);
  const x = (/** @type {number} */ i) => (line.at[i] - now.from) * scale;
  const looks = of.whats.map(look);
  if (moment > 0 && moment <= of.n) { // what comes after it has another ground
    draw.fillStyle = color('box');
    draw.fillRect(x(moment - 1) + 4, 0, wide, height);
    draw.fillStyle = color('link');
    draw.fillRect(x(moment - 1) + 3, 0, 1, height);
  }
  draw.font = '11px system-ui, sans-serif';
  const apart = isReal() ? 150 : 60; // a time of the calendar is longer than the number of a tick
  let last = -apart;
  for (const { tick, from } of line.ticks) {
    const px = (from - now.from) * scale;
    if (px < 0 || px > wide || px - last < apart) continue;
    last = px;
    draw.fillStyle = color('line');
    draw.fillRect(px, 0, 1, height);
    draw.fillStyle = color('dim');
    draw.fillText(when(tick), px + 3, 12);
  }
  const lanes = new Map(rows.map(({ lane, y }) => [lane.cell, y]));
  for (const { lane, y } of rows) {
    draw.fillStyle = color('line');
    draw.fillRect(0, y + laneHeight / 2, wide, 1);
    const records = lane.records;
    let i = firstIn(records, line.at, now.from);
    let pixel = -1;
    for (; i < records.length && line.at[records[i]] <= now.to; i++) {
      const r = records[i];
      const px = x(r);
      const is = looks[of.what[r]];
      if (Math.floor(px) === pixel && !is.trouble) continue; // there is one already
      pixel = Math.floor(px);
      const cause = of.cause[r] - 1;
      if (is.shape === 'answer' || is.shape === 'bad' || is.shape === 'doubt') {
        const asked = cause >= 0 ? of.cause[cause] - 1 : -1;
        if (asked >= 0 && of.cell[asked] === lane.cell) {
          draw.fillStyle = color(is.color);
          draw.fillRect(x(asked), y - 1, px - x(asked), 2);
        }
      }
      shape(draw, is.shape, px, y, color(is.color));
    }
  }
  if (chosen < 1 || chosen > of.n) return;
  ways(draw, color('link'), of, x, lanes, chosen - 1);
}

/** firstIn is the place in a list of the first record at a place of the axis. @param {Int32Array} records @param {Float64Array} at @param {number} from */
function firstIn(records, at, from) {
  let low = 0;
  for (let high = records.length; low < high; ) {
    const mid = (low + high) >> 1;
    if (at[records[mid]] < from) low = mid + 1;
    else high = mid;
  }
  return low;
}

/** ways draws what a record followed from, and what follows from it at once. @param {CanvasRenderingContext2D} draw @param {string} color @param {any} of @param {(i: number) => number} x @param {Map<number, number>} lanes @param {number} chosen */
function ways(draw, color, of, x, lanes, chosen) {
  draw.strokeStyle = color;
  draw.lineWidth = 1.5;
  const y = (/** @type {number} */ i) => lanes.get(of.cell[i] >= 0 ? of.cell[i] : of.several.get(i)?.[0]);
  const link = (/** @type {number} */ from, /** @type {number} */ to) => {
    const [ya, yb] = [y(from), y(to)];
    if (ya === undefined || yb === undefined) return;
    const [xa, xb] = [x(from), x(to)];
    draw.beginPath();
    draw.moveTo(xa, ya);
    draw.bezierCurveTo(xa + (xb - xa) / 2, ya - (ya === yb ? 9 : 0), xa + (xb - xa) / 2, yb - (ya === yb ? 9 : 0), xb, yb);
    draw.stroke();
  };
  for (let i = chosen, n = 0; of.cause[i] > 0 && n < 200; n++) {
    link(of.cause[i] - 1, i);
    i = of.cause[i] - 1;
  }
  for (let i = chosen + 1, n = 0; i < of.n && n < 200 && i < chosen + 100000; i++) {
    if (of.cause[i] - 1 !== chosen) continue;
    link(chosen, i);
    n++;
  }
  const at = y(chosen);
  if (at === undefined) return;
  draw.beginPath();
  draw.arc(x(chosen), at, 8, 0, 2 * Math.PI);
  draw.stroke();
}

/** shape draws one record. @param {CanvasRenderingContext2D} draw @param {string} is @param {number} x @param {number} y @param {string} color */
function shape(draw, is, x, y, color) {
  draw.fillStyle = draw.strokeStyle = color;
  draw.lineWidth = 1.3;
  draw.beginPath();
  switch (is) {
    case 'input':
    case 'event':
      draw.moveTo(x - 3, y - 4);
      draw.lineTo(x + 4, y);
      draw.lineTo(x - 3, y + 4);
      draw.closePath();
      if (is === 'input') draw.fill();
      else draw.stroke();
      return;
    case 'asks':
    case 'waits':
      draw.moveTo(x, y - 4);
      draw.lineTo(x + 4, y);
      draw.lineTo(x, y + 4);
      draw.lineTo(x - 4, y);
      draw.closePath();
      if (is === 'waits') draw.fill();
      else draw.stroke();
      return;
    case 'answer':
      draw.fillRect(x - 3, y - 3, 6, 6);
      return;
    case 'bad':
    case 'denied':
    case 'doubt':
      draw.moveTo(x - 3, y - 3);
      draw.lineTo(x + 3, y + 3);
      draw.moveTo(x + 3, y - 3);
      draw.lineTo(x - 3, y + 3);
      draw.stroke();
      return;
    case 'permit':
      draw.fillRect(x - 1, y - 1, 2, 2);
      return;
  }
  draw.arc(x, y, is === 'step' ? 2.5 : 3, 0, 2 * Math.PI);
  if (is === 'step') draw.fill();
  else draw.stroke();
}

/** how many records are told below the lanes */
const told = 40;

/** InView tells the records in view as text. @param {{world: string, of: any, from: number, count: number, chosen: number}} props */
function InView({ world, of, from, count, chosen }) {
  const start = chosen > from && chosen <= from + count ? Math.max(from, chosen - told / 2) : from;
  const [asked, setAsked] = useState(start);
  useEffect(() => {
    const later = setTimeout(() => setAsked(start), 150); // not while it is scrolled
    return () => clearTimeout(later);
  }, [start]);
  const { is } = useAnswer(pathOf(world, 'records') + `?raw=false&after=${asked}&limit=${told}`);
  const last = useRef(/** @type {any[]} */ ([])); // while the next ones come
  const records = (last.current = is?.records ?? last.current);
  const step = (/** @type {number} */ by) => {
    const at = Number(where().of.of || 0);
    lead(here({ of: at > 0 ? Math.max(1, Math.min(of.n, at + by)) : from + 1 }));
  };
  useKey('j', () => step(1));
  useKey('k', () => step(-1));
  return html`<h2 class="told">Records in view <small>${number(count)}, from #${start + 1}</small></h2>
    <nav class="list" aria-label="Records in view">${records.map((/** @type {any} */ r) => html`<a key=${r.id} href=${here({ of: r.id })} aria-current=${r.id === chosen}>
      <span class="row"><span class="n">#${r.id}</span><${Tick} of=${r.time} /><span><${Mark} of=${r} /> ${spelled(r.kind)}</span><span class=${'say ' + tone(r)}>${sentence(r)}</span></span></a>`)}</nav>`;
}
