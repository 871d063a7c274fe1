// Where one can go back to, and where somebody did: snapshots, rollbacks with the part that
// they left behind, forks, and what a world descends from.
import { html, useMemo, useState } from './lib.js';
import { Effects, Fork, Prune, RollBack, Snap, WhatIf } from './actions.js';
import { may, pathOf, post } from './api.js';
import { when } from './clock.js';
import { columns } from './columns.js';
import { copy } from './copy.js';
import { grown, useAnswer } from './live.js';
import { Tree } from './lineage.js';
import { at, recordAt } from './moment.js';
import { here, place, there } from './place.js';
import { Command, CommandNow, Fact, Head, List, Trouble, useKey, word } from './parts.js';
import { idsOf, kept, leftBehind, useRollbacks } from './past.js';
import { Mark } from './story.js';
import { line, number, spelled } from './text.js';
import { useRecords } from './records_by_id.js';

/** how many marks are listed, and how many parts the line is drawn of */
const [most, parts] = [200, 60];

/** marks are the kinds of records that make a history. */
const marks = /^(world\.(created|forked)|snapshot\.created|rollback\.applied|manifest\.applied)/;

/** History is the view. @param {{world: string, status: any}} props */
export function History({ world, status }) {
  const { of, version } = columns.value;
  const back = useRollbacks(world);
  const left = useMemo(() => leftBehind(back, of.n), [back, of, version]);
  const all = useMemo(() => idsOf(of, marks), [of, version]);
  const shown = all.slice(-most).reverse();
  const chosen = Number(place.value.of.of || (at() && recordAt(of)) || shown[0] || 0);
  const { is, error } = useRecords(world, chosen > 0 && chosen <= of.n ? [...shown, chosen] : shown);
  const list = useAnswer(pathOf(world, 'snapshots') + '?limit=1000');
  const snaps = new Map((list.is?.snapshots ?? []).map((/** @type {any} */ s) => [s.record, s]));
  const [making, setMaking] = useState(false);
  const changes = may('admin') && !at();
  useKey('n', () => setMaking(true), changes);
  const items = shown.map((id) => ({ id: String(id), href: here({ of: id }), body: is.has(id) ? html`<${Row} of=${is.get(id)} snap=${snaps.get(id)} left=${left(pastOf(is.get(id)))} />` : '#' + id }));
  return html`<${Head} title="History" about=${number(snaps.size) + (snaps.size === 1 ? ' snapshot is kept, ' : ' snapshots are kept, ') + number(back.length) + (back.length === 1 ? ' rollback' : ' rollbacks')}>
      ${changes && html`<button type="button" onClick=${() => setMaking(true)}>make a snapshot <kbd>n</kbd></button>`}
    <//>
    <${Past} back=${back} head=${of.n} />
    <div class="two">
      <section class="side">
        <${Trouble} of=${error ?? list.error} />
        <${List} label="History" items=${items} chosen=${String(chosen)} />
        ${all.length > most && html`<p class="pad dim">${number(all.length - most)} before them.</p>`}
        <footer><${CommandNow} line="worldctl snapshot list" /></footer>
      </section>
      <section class="main">
        ${making && html`<div class="pad"><${Snap} world=${world} close=${() => setMaking(false)} /></div>`}
        ${chosen > 0 && is.get(chosen) && html`<${Moment} key=${chosen} world=${world} record=${is.get(chosen)} snap=${snaps.get(chosen)} left=${left(pastOf(is.get(chosen)))} known=${list.is !== null} />`}
        <div class="pad"><${Tree} world=${world} name=${status?.world} /></div>
      </section>
    </div>`;
}

/** pastOf is the record that has to be of the past, for that a mark is: of a snapshot the last one that it holds. @param {any} r */
const pastOf = (r) => (r.kind === 'snapshot.created' ? r.payload?.at ?? r.id : r.id);

/** Past is the journal as a line: what is the past of now, and hatched what is not. @param {{back: any[], head: number}} props */
function Past({ back, head }) {
  if (back.length === 0 || head === 0) return null;
  /** @type {{from: number, to: number, by: number}[]} */
  const line = [];
  let next = 1;
  for (const [from, to] of kept(back, head).reverse()) {
    if (from > next) line.push({ from: next, to: from - 1, by: from });
    line.push({ from, to, by: 0 });
    next = to + 1;
  }
  return html`<nav class="past" aria-label="The journal, with what was left behind">${line.slice(-parts).map((p) => {
    const text = `#${p.from} to #${p.to}` + (p.by ? `, left behind by the rollback #${p.by}` : '');
    return html`<a key=${p.from} href=${here({ of: p.by || p.from })} title=${text} class=${p.by ? 'hatched' : ''} style=${{ flexGrow: Math.log2(2 + p.to - p.from) }}><span class="gone">${text}</span><span aria-hidden="true">#${p.from}</span></a>`;
  })}</nav>`;
}

/** about is what a mark is, on a line. @param {any} r */
function about(r) {
  const p = r.payload ?? {};
  switch (r.kind) {
    case 'snapshot.created': return line(p.name, 60);
    case 'rollback.applied': return 'back to ' + line(p.snapshot, 60);
    case 'world.forked': return 'forked from ' + line(p.parent, 20);
    case 'world.created': return 'the world is made';
    case 'manifest.applied': return 'other rules';
  }
  return line(r.what, 80);
}

/** Row is a mark in the list. @param {{of: any, snap: any, left: number}} props */
function Row({ of, snap, left }) {
  const more = {
    'snapshot.created': (snap ? (snap.pinned ? 'pinned' : 'kept') : 'let go') + (of.payload?.label ? ': ' + line(of.payload.label, 80) : ''),
    'rollback.applied': `#${of.payload?.snapshot_journal_len + 1} to #${of.id - 1} are left behind: ${line(of.payload?.reason ?? '', 80)}`,
  }[/** @type {string} */ (of.kind)];
  return html`<span class=${left ? 'hatched mark-row' : 'mark-row'}><span><${Mark} of=${of} /> <b>${about(of)}</b> <small class="when">${when(of.time)} #${of.id}</small></span>${more && html`<small>${more}</small>`}${left > 0 && html`<small>left behind by the rollback #${left}</small>`}</span>`;
}

/** Moment is one, and what can be done from there. @param {{world: string, record: any, snap: any, left: number, known: boolean}} props */
function Moment({ world, record, snap, left, known }) {
  const [form, setForm] = useState(/** @type {{of: any, about: any, name: string} | null} */ (null));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const { forks } = useAnswer('/api/worlds', true).is ?? {};
  const name = snap ? snap.name : '#' + record.id;
  const begin = (/** @type {any} */ of) => setForm((was) => was ?? { of, about: snap, name }); // what is open stays
  const pin = async () => {
    setError(null);
    try {
      await post(pathOf(world, 'snapshots', 'pin'), { snapshot: snap.hash, pinned: !snap.pinned });
    } catch (err) {
      setError(/** @type {Error} */ (err));
    }
    grown.value++;
  };
  const p = record.payload ?? {};
  return html`<${Head} title=${html`<${Mark} of=${record} /> ${about(record)}`} about=${`${when(record.time)} #${record.id}`}>
      ${!copy && html`<a href=${there('compare', { a: record.id, at: '' })}>compare with now</a>`}
      <a href=${there('timeline', { of: record.id })}>timeline</a>
    <//>
    <div class="pad">
      <p class="sentence">${spelled(record.what)}</p>
      <dl class="facts">
        ${left > 0 && html`<${Fact} name="left behind">by the rollback <a href=${here({ of: left })}>#${left}</a>: it is not the past of what is now<//>`}
        ${p.label && html`<${Fact} name="label">${line(p.label, 400)}<//>`}
        ${p.reason && html`<${Fact} name="reason">${line(p.reason, 400)}<//>`}
        ${p.actor && html`<${Fact} name="by">${line(p.actor, 80)}<//>`}
        ${record.kind === 'snapshot.created' && html`<${Fact} name="stands">${snap ? (snap.pinned ? 'kept, whatever the retention says' : 'kept') : known ? 'let go: nobody can return to it' : ''}<//>`}
        ${p.state_root && html`<${Fact} name="state root"><code>${p.state_root}</code><//>`}
        ${p.parent && html`<${Fact} name="parent">${line(p.parent, 80)}, up to #${p.at}; effects: ${line(p.effects, 30)}<//>`}
      </dl>
      <${Trouble} of=${error} />
      ${may('admin') && !form && html`<div class="buttons">
        ${snap && !at() && html`<${Way} hot="b" name="Roll back to it" of=${RollBack} begin=${begin} />`}
        ${forks && html`<${Way} hot="f" name="Fork here" of=${Fork} begin=${begin} />`}
        <${Way} hot="w" name="What if…" of=${WhatIf} begin=${begin} />
        ${snap && !at() && html`<button type="button" onClick=${pin}>${snap.pinned ? 'Let the retention decide' : 'Pin'}</button><${Way} hot="x" name="Prune" of=${Prune} begin=${begin} />`}
      </div>`}
      ${form && html`<${form.of} world=${world} snap=${form.about} record=${record} name=${form.name} gone=${known && form.about && !snap} close=${() => setForm(null)} />`}
      ${p.abandoned?.length > 0 && html`<h2 class="sub">What was done in the part that it left behind</h2><${Effects} of=${p.abandoned} />`}
      <footer><${Command} line=${snap ? `worldctl snapshot show ${word(name)}` : 'worldctl why ' + record.id} /></footer>
    </div>`;
}

/** Way is a button that opens a form, and its key. @param {{hot: string, name: string, of: any, begin: (of: any) => void}} props */
function Way({ hot, name, of, begin }) {
  useKey(hot, () => begin(of));
  return html`<button type="button" onClick=${() => begin(of)}>${name} <kbd>${hot}</kbd></button>`;
}
