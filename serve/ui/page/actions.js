// Forms that change what a world goes on from, or ask what would be. Each is about what was
// chosen when it was opened, whatever becomes of that meanwhile.
import { html, useEffect, useLayoutEffect, useRef, useState } from './lib.js';
import { parse, pathOf, post } from './api.js';
import { atTick } from './clock.js';
import { Difference } from './compare.js';
import { grown } from './live.js';
import { beside, Command, Fact, Trouble, word } from './parts.js';
import { there } from './place.js';
import { line, number, short, spelled, Whole } from './text.js';

/**
 * Form sends something once and says what came of it.
 * @param {{name: string, kind?: string, ready: boolean, meanwhile?: string, send: () => Promise<any>, done?: (is: any) => any, command: string, close: () => void, children?: any}} props
 */
function Form({ name, kind = 'yes', ready, meanwhile = '', send, done, command, close, children }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [is, setIs] = useState(/** @type {any} */ (null));
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const alive = useRef(true);
  useLayoutEffect(() => {
    /** @type {HTMLElement | null | undefined} */ (box.current?.querySelector('input, textarea'))?.focus();
    return () => {
      alive.current = false;
    };
  }, []);
  const act = async () => {
    if (!ready || busy || meanwhile || is) return;
    setBusy(true);
    setError(null);
    try {
      const answer = await send();
      if (done && alive.current) setIs(answer);
      else close();
    } catch (err) {
      setError(/** @type {Error} */ (err));
    }
    grown.value++;
    setBusy(false);
  };
  const pressed = (/** @type {KeyboardEvent} */ e) => {
    if (e.key === 'Escape' && !busy) close();
    if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) void act();
  };
  return html`<div class="form" role="form" aria-label=${name} ref=${box} onKeyDown=${pressed}>
    ${children}
    ${meanwhile && html`<p class="trouble" role="alert">${meanwhile} Nothing was sent.</p>`}
    <${Trouble} of=${error} />
    ${is && done?.(is)}
    <div class="buttons">
      ${!is && html`<button type="button" class=${'full ' + kind} disabled=${!ready || busy || meanwhile !== ''} onClick=${act}>${busy ? 'Under way…' : name} <kbd>ctrl ↵</kbd></button>`}
      <button type="button" disabled=${busy} onClick=${close}>${is ? 'close' : 'not yet'} <kbd>esc</kbd></button>
    </div>
    <${Command} line=${command} />
  </div>`;
}

/** Field is a line of text. @param {{name: string, of: string, set: (to: string) => void, kind?: string, hint?: string}} props */
const Field = ({ name, of, set, kind = 'text', hint = '' }) => html`<label>${name}<input type=${kind} value=${of} placeholder=${hint} maxlength="4000" onInput=${(/** @type {any} */ e) => set(e.target.value)} /></label>`;

/** Check is something that is so or not. @param {{name: string, of: boolean, set: (to: boolean) => void}} props */
const Check = ({ name, of, set }) => html`<label class="check"><input type="checkbox" checked=${of} onChange=${(/** @type {any} */ e) => set(e.target.checked)} /> ${name}</label>`;

/** Snap makes a snapshot. @param {{world: string, close: () => void}} props */
export function Snap({ world, close }) {
  const [name, setName] = useState('');
  const [label, setLabel] = useState('');
  return html`<${Form} name="Make a snapshot" ready=${true} send=${() => post(pathOf(world, 'snapshots'), { name: name.trim(), label })} close=${close}
    command=${`worldctl snapshot create${name.trim() ? ' ' + word(name.trim()) : ''}${label ? ' -m ' + word(label) : ''}`}>
    <${Field} name="Name" of=${name} set=${setName} hint="s1, s2 and so on" />
    <${Field} name="What it is for" of=${label} set=${setLabel} />
  <//>`;
}

/** Prune lets a snapshot go. @param {{world: string, snap: any, gone: boolean, close: () => void}} props */
export function Prune({ world, snap, gone, close }) {
  return html`<${Form} name=${'Prune ' + line(snap.name, 60)} kind="no" ready=${true} meanwhile=${gone ? 'It was let go meanwhile.' : ''} send=${() => post(pathOf(world, 'snapshots', 'prune'), { snapshot: snap.hash })} close=${close}
    command=${'worldctl snapshot prune ' + word(snap.name)}>
    <p>What only this snapshot holds goes with it, and nobody can return to it. Its record stays.</p>
  <//>`;
}

/** owes is what a rollback would leave, for comparing. @param {any} is */
const owes = (is) => JSON.stringify([...is.abandoned, ...is.reads].map((e) => [e.key, e.state]));

/** RollBack returns to a snapshot, once what stays behind was shown. @param {{world: string, snap: any, gone: boolean, close: () => void}} props */
export function RollBack({ world, snap, gone, close }) {
  const [reason, setReason] = useState('');
  const [ack, setAck] = useState(false);
  const [compensate, setCompensate] = useState(false);
  const [fresh, setFresh] = useState(false);
  const [leaves, setLeaves] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const path = pathOf(world, 'rollback');
  const what = { snapshot: snap.hash, compensate, fresh_effects: fresh };
  const ask = () => post(path, { ...what, reason: 'what would stay behind', ack: true, dry_run: true });
  useEffect(() => {
    let here = true;
    setLeaves(null);
    setAck(false);
    ask().then((is) => here && setLeaves(is), (err) => here && setError(err));
    return () => {
      here = false;
    };
  }, [compensate, fresh]);
  const some = leaves && leaves.abandoned.length + leaves.reads.length > 0;
  const send = async () => {
    const now = await ask();
    if (owes(now) === owes(leaves)) return post(path, { ...what, reason, ack });
    setLeaves(now);
    setAck(false);
    throw new Error('Meanwhile something else was done that would stay behind: look at the list again. Nothing was sent.');
  };
  return html`<${Form} name=${'Roll back to ' + line(snap.name, 60)} kind="no" ready=${reason.trim() !== '' && leaves !== null && (ack || !some)} meanwhile=${gone ? 'The snapshot was let go meanwhile.' : ''}
    send=${send} close=${close} command=${`worldctl rollback ${word(snap.name)} --reason ${word(reason || '…')}${ack ? ' --ack' : ''}${compensate ? ' --compensate' : ''}${fresh ? ' --fresh-effects' : ''}`}>
    <${Field} name="Reason (the journal keeps it)" of=${reason} set=${setReason} />
    <${Check} name="Make up for what its kind says how to" of=${compensate} set=${setCompensate} />
    <${Check} name="The same steps ask for new effects" of=${fresh} set=${setFresh} />
    <${Trouble} of=${error} />
    ${!leaves && !error && html`<p class="dim">What would stay behind is looked for…</p>`}
    ${leaves && html`<p>Cells, mailboxes and timers return to what they were after #${snap.at}. ${number(leaves.prior_journal_len - snap.at)} records are left behind${leaves.events > 0 ? `, with ${number(leaves.events)} events that came meanwhile` : ''}. Time, the ledger, budgets and rules do not return.</p>`}
    ${leaves?.abandoned.length > 0 && html`<h2 class="sub">Done outside, or under way</h2><${Effects} of=${leaves.abandoned} />`}
    ${leaves?.reads.length > 0 && html`<h2 class="sub">Only read</h2><${Effects} of=${leaves.reads} />`}
    ${some && html`<${Check} name="These stay as they are said to, and I know it" of=${ack} set=${setAck} />`}
  <//>`;
}

/** Fork makes another world of the past of this one. @param {{world: string, snap: any, record: any, name: string, close: () => void}} props */
export function Fork({ world, record, name, close }) {
  const [id, setId] = useState('');
  const [effects, setEffects] = useState('hold');
  const [seed, setSeed] = useState('');
  const [live, setLive] = useState('');
  const kinds = effects !== 'hold' ? live.split(/[\s,]+/).filter((k) => k !== '') : [];
  const send = () => post(pathOf(world, 'fork'), { id: id.trim(), at: String(record.id), effects, live: kinds, ...(seed ? { seed: parse(seed) } : {}) });
  const done = (/** @type {any} */ is) => html`<p class="good" role="status">✓ ${spelled(is.world_id)} is forked after #${is.at}. Whoever serves worlds here says whether it is served, too.</p>`;
  return html`<${Form} name=${'Fork after ' + spelled(name)} ready=${id.trim() !== '' && /^\d*$/.test(seed)} send=${send} done=${done} close=${close}
    command=${`worldctl fork ${word(beside(world, id.trim() || 'try'))} --at ${word(name)}${effects === 'hold' ? '' : ' --effects ' + effects}${kinds.map((k) => ' --live ' + word(k)).join('')}${seed ? ' --seed ' + word(seed) : ''}`}>
    <${Field} name="Its id, and the name of its directory" of=${id} set=${setId} hint="try" />
    <label>New effects of the fork<select value=${effects} onChange=${(/** @type {any} */ e) => setEffects(e.target.value)}>
      <option value="hold">wait for a person</option><option value="recorded">are answered by what this world has recorded</option>
      <option value="live">are performed</option></select></label>
    ${effects !== 'hold' && html`<${Field} name=${effects === 'live' ? 'Kinds of effects that are performed, for real' : 'Kinds that are performed, for real, where nothing recorded answers'} of=${live} set=${setLive} hint="model.ask, tool.*" />`}
    <${Field} name="Another seed, if its randomness shall be another" of=${seed} set=${setSeed} hint="a number" />
  <//>`;
}

/** eventsOf reads lines as worldctl send takes them. @param {string} text */
function eventsOf(text) {
  return text.split('\n').map((l, i) => [l.trim(), i + 1]).filter(([l]) => l !== '').map(([l, i]) => {
    try {
      return parse(String(l));
    } catch {
      throw new Error(`line ${i} is no JSON`);
    }
  });
}

/** WhatIf asks how it would have gone on otherwise. @param {{world: string, record: any, name: string, close: () => void}} props */
export function WhatIf({ world, record, name, close }) {
  const [text, setText] = useState('');
  const [only, setOnly] = useState(false);
  const [seed, setSeed] = useState('');
  const send = async () => post(pathOf(world, 'what-if'), { at: String(record.id), events: eventsOf(text), only, ...(seed ? { seed: parse(seed) } : {}) });
  return html`<${Form} name=${'What if, after ' + spelled(name)} ready=${/^\d*$/.test(seed) && (text.trim() !== '' || only || seed !== '')} send=${send} done=${(/** @type {any} */ is) => html`<${Supposed} of=${is} world=${world} />`} close=${close}
    command=${`worldctl what-if --at ${word(name)}${text.trim() ? ' --send -' : ''}${only ? ' --only' : ''}${seed ? ' --seed ' + word(seed) : ''}`}>
    <p>A copy of the world goes on from there, is answered by what was recorded, and is gone afterwards. Nothing outside is touched.</p>
    <label>Events that it gets then, a line of JSON each<textarea rows="3" placeholder='{"event": "ticket.opened", "data": {"customer": "ada"}}' value=${text} onInput=${(/** @type {any} */ e) => setText(e.target.value)}></textarea></label>
    <${Check} name="Without what the world really got from there on" of=${only} set=${setOnly} />
    <${Field} name="Another seed" of=${seed} set=${setSeed} hint="a number" />
  <//>`;
}

/** Supposed is what came of a what-if. @param {{of: any, world: string}} props */
function Supposed({ of, world }) {
  return html`<h2 class="sub">${of.same ? 'Nothing would be different' : of.diff.same ? 'Nothing that can be known would be different' : 'It would be different'}</h2>
    <dl class="facts">
      <${Fact} name="events">${number(of.sent)} new, ${number(of.again.events)} sent again${of.again.refused > 0 ? `, ${number(of.again.refused)} refused` : ''}<//>
      ${of.again.decided > 0 && html`<${Fact} name="decided">${number(of.again.decided)} approved or denied, as a person did about the same<//>`}
      ${of.again.left_out?.length > 0 && html`<${Fact} name="left out">what persons decided and is not repeated: ${of.again.left_out.map((/** @type {any} */ l) => number(l.records) + ' ' + spelled(l.kind)).join(', ')}<//>`}
      <${Fact} name="effects">${number(of.answered)} answered by what was recorded${of.stubbed > 0 ? `, ${number(of.stubbed)} by stubs` : ''}<//>
      ${of.unknown.length > 0 && html`<${Fact} name="unknown"><span class="doubt">? ${number(of.unknown.length + of.unknown_more)} ${of.unknown.length + of.unknown_more === 1 ? 'cell' : 'cells'}, left out of what is compared</span>
        ${of.unknown.map((/** @type {any} */ u) => html`<div key=${u.cell}><b>${line(u.cell, 60)}</b> after ${atTick(u.tick)}: ${because(u)}${u.why === 'asks' && html` <${Whole} of=${u.effect.params} />`}</div>`)}<//>`}
    </dl>
    ${of.diff && html`<${Difference} of=${of.diff} worlds=${[world, '']} />`}`;
}

/** because says why a cell is unknown. @param {any} u */
const because = (u) => (u.why === 'asks' ? `nothing recorded answers ${line(u.effect.kind, 60)}` : u.why === 'told' ? `${line(u.of, 60)} tells it something` : u.why === 'waits' ? `it waits for ${line(u.of, 60)}` : `what it asks for has no room beside what ${line(u.of, 60)} asks for`);

/** Effects are side effects of a part that was left, or would be. @param {{of: any[]}} props */
export function Effects({ of }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Side effects"><table>
    <thead><tr><th>effect</th><th>cell</th><th>state</th><th>becomes</th><th>record</th></tr></thead>
    <tbody>${of.map((e) => html`<tr key=${e.key}><td><b>${line(e.kind, 60)}</b> <a href=${there('inbox', { of: e.key, at: '' })}>${short(e.key, 8)}</a></td><td>${line(e.cell, 60)}</td><td>${spelled(e.state)}</td><td>${spelled(e.disposition)}</td><td><a href=${there('records', { of: e.record })}>#${e.record}</a></td></tr>`)}</tbody>
  </table></div>`;
}
