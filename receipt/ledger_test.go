package receipt_test

import (
	"encoding/binary"
	"iter"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

const modelSlots = 3

// row is what the dumb model knows of an intent.
type row struct {
	permit   receipt.Permit // of the last attempt
	state    receipt.State
	slot     uint64 // while in flight
	place    uint64 // record of the last change of state
	emitted  uint64
	deadline uint64           // awaiting approval
	waiting  bool             // open: the backoff is not over
	retry    bool             // it has ended, and may be attempted again
	lost     []receipt.Permit // given up without a receipt
}

// ledgerModel drives a Ledger and keeps the same facts in the plainest way.
type ledgerModel struct {
	ledger *receipt.Ledger
	rows   map[receipt.Key]*row
	stored map[receipt.Key][]byte // what checkpoints wrote
	record uint64
	now    uint64
}

func modelIntent(n uint64) receipt.Intent {
	params := receipt.Data(canon.AppendUint(nil, n))
	step := receipt.NewStepID("agent/a", n, 0, receipt.History{byte(n)})
	return receipt.Intent{
		Key: receipt.NewKey("w", step, "k", params), Step: step, Cell: "agent/a",
		Kind: "k", Params: params, Tag: "t", Cap: "c", Occurrence: n,
	}
}

func (m *ledgerModel) next() uint64 { m.record++; return m.record }

// askable draws an intent and tells whether the ledger lets it in.
func (m *ledgerModel) askable(t *rapid.T) (receipt.Intent, bool) {
	in := modelIntent(rapid.Uint64Range(0, 11).Draw(t, "intent"))
	want := receipt.AllowExecute
	if r := m.rows[in.Key]; r != nil {
		want = map[receipt.State]receipt.Decision{
			receipt.StateDenied: receipt.AllowExecute, receipt.StateOpen: receipt.WaitOtherWorker,
			receipt.StateInFlight: receipt.WaitOtherWorker, receipt.StateCommitted: receipt.ReturnRecordedResult,
			receipt.StateFailed: receipt.ReturnRecordedResult, receipt.StateInDoubt: receipt.WaitOtherWorker, receipt.StateAwaitingApproval: receipt.WaitOtherWorker,
		}[r.state]
	}
	require.Equal(t, want, m.ledger.Decide(in.Key))
	return in, want == receipt.AllowExecute
}

func (m *ledgerModel) Emit(t *rapid.T) {
	in, ok := m.askable(t)
	if !ok {
		require.Panics(t, func() { m.ledger.Emit(in, m.record) })
		return
	}
	m.ledger.Emit(in, m.next())
	m.enter(in, receipt.StateOpen)
}

func (m *ledgerModel) enter(in receipt.Intent, state receipt.State) *row {
	r := &row{permit: receipt.Permit{Intent: in}, state: state, place: m.record, emitted: m.record}
	m.rows[in.Key] = r
	return r
}

func (m *ledgerModel) Deny(t *rapid.T) {
	in, ok := m.askable(t)
	if !ok {
		return
	}
	m.ledger.Deny(in, m.next())
	m.enter(in, receipt.StateDenied)
}

func (m *ledgerModel) Start(t *rapid.T) {
	open := m.open()
	require.Equal(t, len(m.in(receipt.StateInFlight)) < modelSlots, m.ledger.HasSlot(modelSlots))
	if len(open) == 0 || !m.ledger.HasSlot(modelSlots) {
		return
	}
	at := rapid.IntRange(0, len(open)-1).Draw(t, "at")
	e := m.ledger.Open()[at]
	require.Equal(t, open[at].permit.Key, e.Intent.Key, "they are in their order")
	record := m.next()
	r := open[at]
	r.slot = m.lowestSlot()
	require.Equal(t, r.slot, m.ledger.NextSlot())
	r.permit.Attempt++
	r.permit.Nonce = receipt.NewNonce(receipt.Hash{byte(record)}, r.permit.Key, r.permit.Attempt)
	r.state, r.place, r.retry = receipt.StateInFlight, record, false
	require.Same(t, e, m.ledger.Start(at, r.permit.Nonce, record))
	require.Equal(t, r.permit.Attempt, e.Attempt)
	require.Equal(t, r.slot, e.Slot)
}

func (m *ledgerModel) lowestSlot() uint64 {
	flight := m.in(receipt.StateInFlight)
	for slot := uint64(0); ; slot++ {
		if !slices.ContainsFunc(flight, func(r *row) bool { return r.slot == slot }) {
			return slot
		}
	}
}

func (m *ledgerModel) Finish(t *rapid.T) {
	in := modelIntent(rapid.Uint64Range(0, 11).Draw(t, "intent"))
	r := m.rows[in.Key]
	permit := receipt.Permit{Intent: in, Attempt: 1}
	if r != nil {
		permit = r.permit
	}
	reply := rapid.SampledFrom([]receipt.Outcome{"", receipt.OutcomePermanentFailure, receipt.OutcomeRetryableFailure}).Draw(t, "class")
	got := receipt.New("w", permit, receipt.StatusOK, nil)
	if reply != "" {
		got.Status, got.Class = receipt.StatusError, reply
	}
	want, err := m.verdict(r, &got), m.ledger.Check(&got)
	require.ErrorIs(t, err, want)
	if want != nil {
		return
	}
	m.ledger.Finish(&got, m.next())
	r.place, r.state = m.record, receipt.StateFailed
	if reply == "" {
		r.state = receipt.StateCommitted
	}
	r.retry = reply == receipt.OutcomeRetryableFailure
}

// verdict is what Check must say of a receipt for an intent's last attempt.
func (m *ledgerModel) verdict(r *row, got *receipt.Receipt) error {
	switch {
	case r == nil:
		return receipt.ErrUnknownIntent
	case r.state == receipt.StateInFlight || r.state == receipt.StateInDoubt:
		return nil
	case slices.ContainsFunc(r.lost, func(p receipt.Permit) bool { return p.Attempt == got.Attempt && p.Nonce == got.Nonce }):
		return receipt.ErrLate
	case r.state == receipt.StateOpen || r.state == receipt.StateAwaitingApproval:
		return receipt.ErrWrongAttempt
	default:
		return receipt.ErrDuplicate
	}
}

// Late takes a receipt for an attempt that was given up, once.
func (m *ledgerModel) Late(t *rapid.T) {
	r := m.any(t, func(r *row) bool { return len(r.lost) > 0 })
	if r == nil {
		return
	}
	got := receipt.New("w", r.lost[0], receipt.StatusOK, nil)
	require.ErrorIs(t, m.ledger.Check(&got), receipt.ErrLate)
	before := *m.ledger.Entry(r.permit.Key)
	m.ledger.Late(&got)
	r.lost = r.lost[1:]
	after := *m.ledger.Entry(r.permit.Key)
	require.Len(t, after.Lost, len(before.Lost)-1)
	require.Equal(t, before.State, after.State)
	require.Error(t, m.ledger.Check(&got), "once")
	require.NotErrorIs(t, m.ledger.Check(&got), receipt.ErrLate)
}

func (m *ledgerModel) AwaitApproval(t *rapid.T) {
	in, ok := m.askable(t)
	if !ok {
		return
	}
	deadline := m.now + rapid.Uint64Range(1, 5).Draw(t, "ttl")
	m.ledger.AwaitApproval(in, deadline, m.next())
	m.enter(in, receipt.StateAwaitingApproval).deadline = deadline
}

// any draws a row that fits, nil where none does.
func (m *ledgerModel) any(t *rapid.T, fits func(r *row) bool) *row {
	var all []*row
	for _, s := range receipt.States() {
		all = append(all, slices.DeleteFunc(m.in(s), func(r *row) bool { return !fits(r) })...)
	}
	if len(all) == 0 {
		return nil
	}
	return all[rapid.IntRange(0, len(all)-1).Draw(t, "row")]
}

func inState(states ...receipt.State) func(r *row) bool {
	return func(r *row) bool { return slices.Contains(states, r.state) }
}

func (m *ledgerModel) Approve(t *rapid.T) {
	r := m.any(t, inState(receipt.StateAwaitingApproval))
	if r == nil {
		return
	}
	m.ledger.Approve(m.ledger.Entry(r.permit.Key), "c2", m.next())
	r.state, r.place, r.emitted, r.deadline, r.permit.Cap = receipt.StateOpen, m.record, m.record, 0, "c2"
}

// Tick denies what nobody approved in time, the earliest first.
func (m *ledgerModel) Tick(t *rapid.T) {
	m.now += rapid.Uint64Range(1, 3).Draw(t, "ticks")
	var last uint64
	for e := m.ledger.Overdue(m.now); e != nil; e = m.ledger.Overdue(m.now) {
		r := m.rows[e.Intent.Key]
		require.Equal(t, receipt.StateAwaitingApproval, r.state)
		require.LessOrEqual(t, last, r.deadline)
		last = r.deadline
		m.ledger.Refuse(e, m.next())
		r.state, r.place, r.deadline = receipt.StateDenied, m.record, 0
	}
	for _, r := range m.in(receipt.StateAwaitingApproval) {
		require.Greater(t, r.deadline, m.now)
	}
}

func (m *ledgerModel) Doubt(t *rapid.T) {
	if r := m.any(t, inState(receipt.StateInFlight)); r != nil {
		m.ledger.Doubt(m.ledger.Entry(r.permit.Key), rapid.Bool().Draw(t, "verify"))
		r.state, r.place = receipt.StateInDoubt, m.next()
	}
}

// Reopen lets an attempt follow one that failed or was given up.
func (m *ledgerModel) Reopen(t *rapid.T) {
	r := m.any(t, func(r *row) bool {
		return r.retry || r.state == receipt.StateInFlight || r.state == receipt.StateInDoubt
	})
	if r == nil {
		return
	}
	if !r.retry {
		r.lost = append(r.lost, r.permit)
	}
	r.state, r.place, r.retry, r.waiting = receipt.StateOpen, m.next(), false, rapid.Bool().Draw(t, "wait")
	m.ledger.Reopen(m.ledger.Entry(r.permit.Key), r.waiting)
}

func (m *ledgerModel) Due(t *rapid.T) {
	if r := m.any(t, func(r *row) bool { return r.waiting }); r != nil {
		m.ledger.Due(m.ledger.Entry(r.permit.Key))
		r.waiting = false
	}
}

// End ends an intent without a receipt.
func (m *ledgerModel) End(t *rapid.T) {
	r := m.any(t, inState(receipt.StateInFlight, receipt.StateInDoubt))
	if r == nil {
		return
	}
	r.lost = append(r.lost, r.permit)
	r.state = rapid.SampledFrom([]receipt.State{receipt.StateCommitted, receipt.StateFailed}).Draw(t, "end")
	outcome := receipt.OutcomePermanentFailure
	if r.state == receipt.StateCommitted {
		outcome = receipt.OutcomeSideEffectCommitted
	}
	m.ledger.End(m.ledger.Entry(r.permit.Key), outcome, m.next())
	r.place = m.record
}

// open returns the rows that wait for a permit, in intent order.
func (m *ledgerModel) open() []*row {
	out := slices.DeleteFunc(m.in(receipt.StateOpen), func(r *row) bool { return r.waiting })
	slices.SortFunc(out, func(a, b *row) int { return int(a.emitted) - int(b.emitted) })
	return out
}

// Checkpoint stores what changed; Restart goes on with a ledger that was read
// from what is stored.
func (m *ledgerModel) Checkpoint(t *rapid.T) {
	var last uint64
	for e, first := range m.ledger.TakeDirty() {
		_, stored := m.stored[e.Intent.Key]
		require.Equal(t, !stored, first)
		require.Greater(t, e.Emitted, last, "once each, in the order of intents")
		require.Same(t, e, m.ledger.Entry(e.Intent.Key), "and not one that was replaced")
		last = e.Emitted
		b := e.Append(nil)
		m.stored[e.Intent.Key] = b
	}
	require.Empty(t, maps.Collect(m.ledger.TakeDirty()))
	if standing := m.ledger.Standing(); standing != nil {
		require.Equal(t, liveOf(m.ledger), standing.Live)
		require.EqualValues(t, m.ledger.Bytes(), standing.Bytes)
	}
}

func (m *ledgerModel) Restart(t *rapid.T) {
	m.Checkpoint(t)
	restored := new(receipt.Ledger)
	require.NoError(t, restored.Restore(len(m.stored), maps.All(m.stored)))
	require.Empty(t, maps.Collect(restored.TakeDirty()))
	require.Equal(t, encodeAll(t, m.ledger), encodeAll(t, restored))
	m.ledger = restored
	m.ledger.KeepCold(coldOf(m.stored))
}

// encodeAll encodes all entries: as the library does, or shorter, and then they are read as
// they are.
func encodeAll(t require.TestingT, l *receipt.Ledger) [][]byte {
	var out [][]byte
	for _, e := range l.Select(nil) {
		e := *e
		b := e.Append(nil)
		out = append(out, b)
		e.Version = 1
		if short := b[0] == 0x90; short {
			again, err := receipt.DecodeEntry(e.Intent.Key, b)
			require.NoError(t, err)
			library, err := canon.Marshal(&e)
			require.NoError(t, err)
			read, err := canon.Marshal(again)
			require.NoError(t, err)
			require.Equal(t, library, read)
			continue
		}
		library, err := canon.Marshal(&e)
		require.NoError(t, err)
		require.Equal(t, library, b)
	}
	return out
}

// in returns the rows in a state, in the order in which they got there.
func (m *ledgerModel) in(s receipt.State) []*row {
	var out []*row
	for _, r := range m.rows {
		if r.state == s {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *row) int { return int(a.place) - int(b.place) })
	return out
}

func (m *ledgerModel) Check(t *rapid.T) {
	for _, s := range receipt.States() {
		require.Equal(t, len(m.in(s)), m.ledger.Count(s), s)
		require.Len(t, m.ledger.In(s), m.ledger.Count(s), s)
	}
	require.Equal(t, len(m.rows), m.ledger.Len())
	require.Len(t, m.ledger.Select(nil), len(m.rows))
	require.LessOrEqual(t, len(m.ledger.InFlight()), modelSlots)
	for i, r := range m.in(receipt.StateInFlight) {
		require.Equal(t, r.permit.Key, m.ledger.InFlight()[i].Intent.Key)
		require.Equal(t, r.permit.Params, m.ledger.InFlight()[i].Intent.Params)
	}
	for i, r := range m.open() {
		require.Equal(t, r.permit.Key, m.ledger.Open()[i].Intent.Key)
		require.NotNil(t, m.ledger.Open()[i].Intent.Params, "they are needed for the next attempt")
	}
	require.Len(t, m.ledger.Open(), len(m.open()))
	sorts := make(map[[2]string]bool)
	for _, e := range m.ledger.Open() {
		sorts[[2]string{e.Intent.Kind, e.Intent.Cap}] = true
	}
	require.Equal(t, len(sorts), m.ledger.OpenSorts())
	require.Len(t, m.ledger.Waiting(), len(m.in(receipt.StateOpen))-len(m.open()))
	for key, r := range m.rows {
		require.Equal(t, r.permit.Attempt, m.ledger.Entry(key).Attempt)
		require.Len(t, m.ledger.Entry(key).Lost, len(r.lost))
	}
}

func TestLedgerEqualsADumbModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &ledgerModel{
			ledger: new(receipt.Ledger), rows: map[receipt.Key]*row{},
			stored: map[receipt.Key][]byte{},
		}
		m.ledger.KeepCold(coldOf(m.stored))
		t.Repeat(map[string]func(*rapid.T){
			"": m.Check, "emit": m.Emit, "deny": m.Deny, "start": m.Start, "finish": m.Finish,
			"late": m.Late, "await approval": m.AwaitApproval, "approve": m.Approve, "tick": m.Tick, "doubt": m.Doubt,
			"reopen": m.Reopen, "due": m.Due, "end": m.End,
			"checkpoint": m.Checkpoint, "restart": m.Restart, "evict": m.Evict,
		})
	})
}

func TestCheckRefusesWhatDoesNotAnswerTheAttempt(t *testing.T) {
	in := modelIntent(1)
	var l receipt.Ledger
	l.Emit(in, 1)
	permit := receipt.Permit{Intent: in, Attempt: 1, Nonce: receipt.Nonce{1}}
	l.Start(0, permit.Nonce, 2)
	for name, c := range map[string]struct {
		change func(r *receipt.Receipt)
		want   error
	}{
		"unknown intent": {func(r *receipt.Receipt) { r.Key.Hash[0] ^= 1 }, receipt.ErrUnknownIntent},
		"attempt before": {func(r *receipt.Receipt) { r.Attempt = 0 }, receipt.ErrWrongAttempt},
		"attempt after":  {func(r *receipt.Receipt) { r.Attempt = 2 }, receipt.ErrWrongAttempt},
		"other nonce":    {func(r *receipt.Receipt) { r.Nonce[15] ^= 1 }, receipt.ErrWrongAttempt},
		"other params":   {func(r *receipt.Receipt) { r.ParamsHash[0] ^= 1 }, receipt.ErrWrongIntent},
		"other kind":     {func(r *receipt.Receipt) { r.Kind = "x" }, receipt.ErrWrongIntent},
		"other cap":      {func(r *receipt.Receipt) { r.Cap = "x" }, receipt.ErrWrongIntent},
	} {
		r := receipt.New("w", permit, receipt.StatusOK, nil)
		require.NoError(t, l.Check(&r))
		c.change(&r)
		require.ErrorIs(t, l.Check(&r), c.want, name)
	}
	r := receipt.New("w", permit, receipt.StatusOK, nil)
	l.Finish(&r, 3)
	require.ErrorIs(t, l.Check(&r), receipt.ErrDuplicate)
}

// stored is an entry as an image has it.
type stored struct {
	key  receipt.Key
	data []byte
}

func entriesOf(all ...stored) (int, iter.Seq2[receipt.Key, []byte]) {
	return len(all), func(yield func(receipt.Key, []byte) bool) {
		for _, x := range all {
			if !yield(x.key, x.data) {
				return
			}
		}
	}
}

func TestRestoreRefuses(t *testing.T) {
	var l receipt.Ledger
	l.Emit(modelIntent(1), 1)
	e := *l.Entry(modelIntent(1).Key)
	encode := func(change func(e *receipt.Entry)) stored {
		changed := e
		change(&changed)
		return stored{changed.Intent.Key, changed.Append(nil)}
	}
	good := encode(func(*receipt.Entry) {})
	begins := func(head ...byte) stored { return stored{good.key, append(head, good.data[3:]...)} }
	flying := func(n byte, slot uint64) stored {
		return encode(func(e *receipt.Entry) { e.State, e.Slot, e.Intent.Key.Hash[0] = receipt.StateInFlight, slot, n })
	}
	for name, data := range map[string][]stored{
		"not CBOR":        {{good.key, []byte("x")}},
		"unknown version": {begins(0x98, 30, 2)},
		"fewer fields":    {begins(0x98, 24, 1)},
		"unknown state":   {encode(func(e *receipt.Entry) { e.State = "lost" })},
		"another's":       {{modelIntent(2).Key, good.data}},
		"the same twice":  {good, good},
		"slot too high":   {flying(1, 1<<60)},
		"slot taken":      {flying(1, 3), flying(2, 3)},
	} {
		require.Error(t, l.Restore(entriesOf(data...)), name)
		require.Zero(t, l.Len(), "after an error the ledger is empty")
	}
	require.NoError(t, l.Restore(entriesOf(good)))
	require.Equal(t, 1, l.Count(receipt.StateOpen))
}

// TestCommittedEntriesAreSmall bounds what an answered intent costs in memory
// for the rest of a world's life.
func TestCommittedEntriesAreSmall(t *testing.T) {
	const entries, most = 100_000, 672
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var l receipt.Ledger
	for n := range uint64(entries) {
		in := modelIntent(n)
		in.Params = canon.AppendBytes(nil, binary.BigEndian.AppendUint64(make([]byte, 1024), n)) // let go of when answered
		l.Emit(in, 3*n+1)
		l.Start(0, receipt.Nonce{}, 3*n+2)
		l.Close(l.Finish(&receipt.Receipt{Key: in.Key, Status: receipt.StatusOK}, 3*n+3))
	}
	for range l.TakeDirty() { // the next one has none of them
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (after.HeapAlloc - before.HeapAlloc) / entries
	t.Logf("%d bytes an entry", each)
	require.Less(t, each, uint64(most))
	runtime.KeepAlive(&l)
}

// ended is the entry of an intent that has ended like nearly all of them do.
func ended() *receipt.Entry {
	var l receipt.Ledger
	in := modelIntent(1)
	l.Emit(in, 100_000)
	l.Start(0, receipt.Nonce{9}, 100_020)
	e := l.Finish(&receipt.Receipt{Key: in.Key, Status: receipt.StatusOK}, 100_300)
	l.Close(e)
	return e
}

// TestEndedEntriesAreShort holds what an image has of an intent that has ended to its bytes.
func TestEndedEntriesAreShort(t *testing.T) {
	e := ended()
	data := e.Append(nil)
	want := "\x90\x01" + "\x61k" + "\x61t" + "\x61c" + "\x69committed" + "\x75side_effect_committed" + "\x01" + "\x01" +
		"\x67agent/a" + "\x01\x00" + "\x1a\x00\x01\x86\xa0" + "\x00" + "\x14" + "\x19\x01\x2c" +
		"\x58\x28" + "\x01\x00\x00\x00\x00\x00\x00\x00" + string(e.Params[:])
	require.Equal(t, want, string(data))
	var restored receipt.Ledger
	require.NoError(t, restored.Restore(entriesOf(stored{e.Intent.Key, data})))
	again := restored.Entry(e.Intent.Key)
	require.Equal(t, e.Intent, again.Intent)
	require.Equal(t, data, again.Append(nil))
	for n := range data {
		require.Error(t, restored.Restore(entriesOf(stored{e.Intent.Key, data[:n]})), "%d bytes", n)
	}
	require.Error(t, restored.Restore(entriesOf(stored{e.Intent.Key, append(data, 0)})))
}

// TestWhatAShortEntryCannotSayIsLong: every field that one has no place for.
func TestWhatAShortEntryCannotSayIsLong(t *testing.T) {
	key := modelIntent(2).Key
	for name, change := range map[string]func(*receipt.Entry){
		"params":       func(e *receipt.Entry) { e.Intent.Params = receipt.Data("\x01") },
		"another step": func(e *receipt.Entry) { e.Intent.Step = "operator#7" },
		"HEX":          func(e *receipt.Entry) { e.Intent.Step = "agent/a@1.0~0A00000000000000" },
		"another cell": func(e *receipt.Entry) { e.Intent.Cell = "agent/b" },
		"in flight":    func(e *receipt.Entry) { e.State = receipt.StateInFlight },
		"nonce":        func(e *receipt.Entry) { e.Nonce[15] = 1 },
		"slot":         func(e *receipt.Entry) { e.Slot = 1 },
		"deadline":     func(e *receipt.Entry) { e.Deadline = 1 },
		"reserved":     func(e *receipt.Entry) { e.Reserved.Micros = 1 },
		"lost":         func(e *receipt.Entry) { e.Lost = []receipt.Lost{{Attempt: 1}} },
		"unused":       func(e *receipt.Entry) { e.Unused = 1 },
		"for":          func(e *receipt.Entry) { e.For = &key },
		"held":         func(e *receipt.Entry) { e.Held = receipt.Data("\x01") },
		"waiting":      func(e *receipt.Entry) { e.Waiting = true },
		"asked twice":  func(e *receipt.Entry) { e.Asked = []uint64{1, 2} },
		"never asked":  func(e *receipt.Entry) { e.Asked = nil },
		"asked later":  func(e *receipt.Entry) { e.Asked = []uint64{e.Emitted + 1} },
		"ended before": func(e *receipt.Entry) { e.Finished = e.Emitted - 1 },
		"begun before": func(e *receipt.Entry) { e.Started = e.Emitted },
		"abandoned":    func(e *receipt.Entry) { e.Abandoned = true },
		"repeats":      func(e *receipt.Entry) { e.Repeats = &key },
		"reused":       func(e *receipt.Entry) { e.Reused = true },
		"attested":     func(e *receipt.Entry) { e.Attested = true },
		"uncertain":    func(e *receipt.Entry) { e.Uncertain = true },
		"undone":       func(e *receipt.Entry) { e.Undone = 1 },
		"former":       func(e *receipt.Entry) { e.Former = 1 },
		"inputs": func(e *receipt.Entry) {
			e.Inputs = []receipt.Input{{Question: receipt.Data("\x01"), Answer: receipt.Data("\x01")}}
		},
		"polling": func(e *receipt.Entry) { e.Polling = new(receipt.Polling) },
		"apart":   func(e *receipt.Entry) { e.Apart = []uint64{1} },
		"seen":    func(e *receipt.Entry) { e.Seen = new(receipt.ApprovalBasis) },
	} {
		e := ended()
		change(e)
		data := e.Append(nil)
		require.Equal(t, []byte{0x98, 30, 1}, data[:3], name)
		again, err := receipt.DecodeEntry(e.Intent.Key, data)
		require.NoError(t, err, name)
		require.Equal(t, data, again.Append(nil), name)
	}
}

// TestEntryIsEncodedAsTheLibraryDoes: also where every field says something.
func TestEntryIsEncodedAsTheLibraryDoes(t *testing.T) {
	key := modelIntent(2).Key
	full := receipt.Entry{
		Version: 1, Intent: modelIntent(1), Params: receipt.Hash{1}, State: receipt.StateFailed, Attempt: 2, Nonce: receipt.Nonce{3}, Slot: 4,
		Emitted: 5, Started: 6, Finished: 7, Outcome: receipt.OutcomeCompensated, Deadline: receipt.NoDeadline,
		Reserved: receipt.Cost{Calls: 1, Tokens: 2, Bytes: 3, Micros: 4}, Lost: []receipt.Lost{{Attempt: 1, Nonce: receipt.Nonce{8}}}, Unused: 9,
		For: &key, Held: receipt.Data("\xa0"), Waiting: true, Asked: []uint64{1, 300}, Abandoned: true, Repeats: &key, Reused: true, Attested: true,
		Uncertain: true, Undone: 10, Former: 1,
		Inputs:  []receipt.Input{{Question: receipt.Data("\xa0"), Answer: receipt.Data("\x01")}, {Question: receipt.Data("\xa0")}},
		Polling: &receipt.Polling{ID: "t-1", Polls: 11, Until: -12}, Apart: []uint64{13},
		Seen: &receipt.ApprovalBasis{Effect: receipt.Hash{14}, Cap: receipt.Hash{15}, Rules: receipt.Hash{16}},
	}
	fields := reflect.ValueOf(full)
	for i := range fields.NumField() {
		require.False(t, fields.Type().Field(i).IsExported() && fields.Field(i).IsZero(), fields.Type().Field(i).Name)
	}
	for _, e := range []receipt.Entry{full, {Version: 1}} {
		want, err := canon.Marshal(&e)
		require.NoError(t, err)
		require.Equal(t, want, e.Append(nil))
	}
}
