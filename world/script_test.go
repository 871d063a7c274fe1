package world_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/source"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// TestScripts tells the kernel's stories. The world is that of
// worldtest/testdata/bots: a cell does what its events say. After a change that
// is meant, go test ./world -run TestScripts -rewrite writes the files anew;
// read the difference before you believe it.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		s := &stage{tags: make(map[receipt.Key]string)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			play, ok := s.commands()[d.Cmd]
			if !ok {
				d.Fatalf(t, "there is no command %s", d.Cmd)
			}
			out, err := play(t, d)
			if err != nil {
				return "error: " + strings.TrimSpace(out+err.Error())
			}
			return out
		})
	})
}

// stage is where a script plays.
type stage struct {
	w      *worldtest.World
	silent bool // the outside does not answer
	listed int  // records that journal has shown
	calls  int  // of the outside, since called was asked
	tags   map[receipt.Key]string
}

type command func(t *testing.T, d *datadriven.TestData) (string, error)

func (s *stage) commands() map[string]command {
	return map[string]command{
		"world":    s.create,
		"submit":   s.submit,
		"step":     s.step,
		"run":      s.run,
		"outside":  s.outside,
		"receive":  s.receive,
		"resume":   s.resume,
		"crash":    s.crash,
		"state":    s.state,
		"status":   s.status,
		"snapshot": s.snapshot,
		"rollback": s.rollback,
		"decide":   s.decide,
		"called":   s.called,
		"journal":  s.journal,
		"replay":   s.replay,
	}
}

var errSilent = errors.New("the outside is silent")

// create: world [in_flight=N] [events_per_tick=N] [mailbox=N] [on_repeat=WORD], of tool.a
// Every batch of its journal has one record or turn, so that it can stop anywhere.
func (s *stage) create(t *testing.T, d *datadriven.TestData) (string, error) {
	loaded, err := source.Load("worldtest/testdata/bots/world.yaml")
	require.NoError(t, err)
	m := *loaded.Manifest
	d.MaybeScanArgs(t, "in_flight", &m.Limits.InFlight)
	d.MaybeScanArgs(t, "events_per_tick", &m.Limits.EventsPerTick)
	d.MaybeScanArgs(t, "mailbox", &m.Limits.Mailbox)
	a := m.Effects["tool.a"]
	d.MaybeScanArgs(t, "on_repeat", &a.OnRepeat)
	m.Effects = maps.Clone(m.Effects)
	m.Effects["tool.a"] = a
	s.w = worldtest.New(t, m, loaded.Contents, worldtest.Options{BatchRecords: 1, Answer: s.answer})
	s.listed = 1 // world.created is the same everywhere
	return "", nil
}

func (s *stage) answer(p receipt.Permit) worldtest.Reply {
	switch {
	case s.silent:
		return worldtest.Reply{Err: errSilent}
	case s.count(p) && p.Tag == "error":
		return worldtest.Fail("told to")
	}
	return worldtest.OK("done")
}

func (s *stage) count(receipt.Permit) bool { s.calls++; return true }

// called: how often the outside was asked since
func (s *stage) called(*testing.T, *datadriven.TestData) (string, error) {
	n := s.calls
	s.calls = 0
	return fmt.Sprintf("%d times", n), nil
}

// snapshot: snapshot NAME
func (s *stage) snapshot(t *testing.T, d *datadriven.TestData) (string, error) {
	_, err := s.w.Snapshot(t.Context(), d.CmdArgs[0].Key, "", "ada")
	return "", err
}

// rollback: rollback NAME [ack] [fresh] [compensate]
func (s *stage) rollback(t *testing.T, d *datadriven.TestData) (string, error) {
	_, b, err := s.w.Rollback(t.Context(), journal.RolledBack{
		Snapshot: d.CmdArgs[0].Key, Actor: "ada", Reason: "a try",
		Ack: d.HasArg("ack"), Fresh: d.HasArg("fresh"), Compensate: d.HasArg("compensate"),
	})
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, x := range b.Abandoned {
		fmt.Fprintf(&out, "%s %q %s: %s\n", x.Kind, s.tags[x.Key], x.State, x.Disposition)
	}
	return out.String(), nil
}

// decide: decide TAG HOW, about the effect of that tag that awaits a person
func (s *stage) decide(t *testing.T, d *datadriven.TestData) (string, error) {
	for _, e := range s.w.Intents() {
		if e.Intent.Tag == d.CmdArgs[0].Key && e.State.AwaitsPerson() {
			return "", worldtest.ErrorOf(s.w.Resolve(t.Context(), journal.Resolved{
				Key: e.Intent.Key, How: journal.Resolution(d.CmdArgs[1].Key), Params: e.Params, Actor: "ada", Reason: "so",
			}))
		}
	}
	d.Fatalf(t, "no effect of that tag awaits a person")
	return "", nil
}

// submit: submit EVENT [at=TICK], each line a cell and its orders: CELL [ACT, …].
func (s *stage) submit(t *testing.T, d *datadriven.TestData) (string, error) {
	var at uint64
	d.MaybeScanArgs(t, "at", &at)
	for line := range strings.Lines(d.Input) {
		to, acts, _ := strings.Cut(strings.TrimSpace(line), " ")
		if acts == "" {
			acts = "[]"
		}
		data, err := canon.FromJSON(fmt.Appendf(nil, `{"to": %q, "do": %s}`, to, acts))
		require.NoError(t, err, line)
		_, err = s.w.World.Submit(t.Context(), world.Submission{Name: d.CmdArgs[0].Key, Data: data, When: world.When{At: manifest.Tick(at)}})
		if err != nil {
			return "", err
		}
	}
	return "", nil
}

// step: step [n=TICKS]
func (s *stage) step(t *testing.T, d *datadriven.TestData) (string, error) {
	n := 1
	d.MaybeScanArgs(t, "n", &n)
	for range n {
		if err := s.w.World.Step(t.Context()); err != nil {
			return "", err
		}
	}
	return "", nil
}

// run: run until idle, over again where the outside was silent and now answers
func (s *stage) run(t *testing.T, _ *datadriven.TestData) (string, error) {
	err := s.w.World.Run(t.Context())
	for !s.silent && errors.Is(err, errSilent) {
		err = s.w.World.Run(t.Context())
	}
	return "", err
}

// outside: outside silent|answers
func (s *stage) outside(_ *testing.T, d *datadriven.TestData) (string, error) {
	s.silent = d.HasArg("silent")
	return "", nil
}

// receive: receive TAG [nonce=wrong] [by=stranger], a receipt for the effect of
// that tag that did not come from the host.
func (s *stage) receive(t *testing.T, d *datadriven.TestData) (string, error) {
	keys := worldtest.Keyring(t, "test")
	if d.HasArg("by") {
		keys = worldtest.Keyring(t, "stranger")
	}
	for _, e := range s.w.Intents() {
		if e.Intent.Tag != d.CmdArgs[0].Key {
			continue
		}
		p := receipt.Permit{Intent: e.Intent, Attempt: e.Attempt, Nonce: e.Nonce}
		if d.HasArg("nonce") {
			p.Nonce[0]++
		}
		data, err := worldtest.Sign(keys, "test", p, worldtest.OK("by hand"))
		require.NoError(t, err)
		_, err = s.w.Receive(data)
		return "", err
	}
	d.Fatalf(t, "there is no such effect")
	return "", nil
}

// resume: resume CELL [skip] [by=ACTOR [reason=TEXT]]
func (s *stage) resume(t *testing.T, d *datadriven.TestData) (string, error) {
	cell, err := reducer.ParseCell(d.CmdArgs[0].Key)
	require.NoError(t, err)
	how := world.RetryEvent
	if d.HasArg("skip") {
		how = world.SkipEvent
	}
	var actor, reason string
	if d.HasArg("by") {
		d.ScanArgs(t, "by", &actor)
	}
	if d.HasArg("reason") {
		d.ScanArgs(t, "reason", &reason)
	}
	return "", worldtest.ErrorOf(s.w.Resume(t.Context(), cell, how, actor, reason))
}

// crash: crash [after=BATCHES]: the process dies, at once or, while it runs, when
// so many more batches are durable; and the world is opened again.
func (s *stage) crash(t *testing.T, d *datadriven.TestData) (string, error) {
	if d.HasArg("after") {
		var left int
		d.ScanArgs(t, "after", &left)
		s.w.Journal.FailWait = func(int) error {
			if left--; left < 0 {
				return worldtest.ErrInjected
			}
			return nil
		}
		require.ErrorIs(t, s.w.World.Run(context.Background()), worldtest.ErrInjected)
		s.w.Journal.FailWait = nil
	}
	s.w.Crash()
	return "", nil
}

// state: state CELL …
func (s *stage) state(t *testing.T, d *datadriven.TestData) (string, error) {
	var out strings.Builder
	for _, arg := range d.CmdArgs {
		cell, err := reducer.ParseCell(arg.Key)
		require.NoError(t, err)
		view, ok := s.w.Cell(cell)
		require.True(t, ok, "there is no cell %s", cell)
		fmt.Fprintf(&out, "%s@%d", cell, view.N)
		if view.Halted {
			out.WriteString(" halted")
		}
		for _, x := range view.Mail {
			fmt.Fprintf(&out, " (waits: %s #%d)", x.Name, x.Record)
		}
		out.WriteString("\n")
		var state struct {
			Seen []string `cbor:"seen"`
		}
		if len(view.State) > 0 {
			require.NoError(t, canon.Unmarshal(view.State, &state))
		}
		for _, line := range state.Seen {
			fmt.Fprintf(&out, "  %s\n", strings.TrimSpace(line))
		}
	}
	return out.String(), nil
}

// status: where the world stands
func (s *stage) status(_ *testing.T, _ *datadriven.TestData) (string, error) {
	st := s.w.Status()
	out := fmt.Sprintf("tick %d, head #%d", st.Time, st.Head.ID)
	for _, x := range []struct {
		n    int
		what string
	}{{st.EventsPending, "events pending"}, {st.Halted, "halted"}, {st.Timers, "timers"}} {
		if x.n > 0 {
			out += fmt.Sprintf(", %d %s", x.n, x.what)
		}
	}
	for _, state := range append(receipt.States(), receipt.StateCancelled) {
		if n := st.Intents[state]; n > 0 {
			out += fmt.Sprintf(", %d intents %s", n, state)
		}
	}
	if st.Idle {
		out += ", idle"
	}
	return out, nil
}

// replay: recompute everything from record 1
func (s *stage) replay(_ *testing.T, _ *datadriven.TestData) (string, error) {
	s.w.RequireReplay()
	return "the same", nil
}

// journal: the records since the last listing: id, tick, kind, cause, content
func (s *stage) journal(t *testing.T, _ *datadriven.TestData) (string, error) {
	var out strings.Builder
	for _, stored := range s.w.Journal.Records()[s.listed:] {
		s.listed++
		rec, err := journal.DecodeRecord(stored.Bytes)
		require.NoError(t, err)
		require.NoError(t, rec.Load(s.w.Journal))
		body, err := rec.Body()
		require.NoError(t, err)
		cause := ""
		if rec.CausedBy > 0 {
			cause = fmt.Sprintf("by #%d", rec.CausedBy)
		}
		line := fmt.Sprintf("#%-3d t%d %-20s %-7s %s", rec.ID, rec.Time, rec.Kind, cause, s.short(t, body))
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return out.String(), nil
}

// short says the payload of a record in a few words.
func (s *stage) short(t *testing.T, body journal.Body) string {
	switch b := body.(type) {
	case *journal.Submitted:
		text := b.Name + " -> " + strings.Join(b.To, ", ")
		if b.Due > 0 {
			text += fmt.Sprintf(" at t%d", b.Due)
		}
		return text
	case *journal.Stepped:
		return fmt.Sprintf("%s@%d %s", b.Cell, b.N, b.Outcome)
	case *journal.Failed:
		if b.Halted {
			return fmt.Sprintf("%s@%d halted: %s", b.Cell, b.N, b.Error)
		}
		return fmt.Sprintf("%s@%d skipped: %s", b.Cell, b.N, b.Error)
	case *journal.Deleted:
		return fmt.Sprintf("%s@%d", b.Cell, b.N)
	case *journal.Emitted:
		return b.Name + " -> " + strings.Join(b.To, ", ")
	case *journal.Dropped:
		return b.Name + ": " + b.Reason
	case *journal.TimerSet:
		return fmt.Sprintf("%s of %s at t%d", b.Name, b.Cell, b.Deadline)
	case *journal.TagCancelled:
		return fmt.Sprintf("%s of %s: timer #%d, receipts %v", b.Tag, b.Cell, b.Timer, b.Receipts)
	case *journal.TimerFired:
		return b.Name + " of " + b.Cell
	case *journal.Resumed:
		text := b.Cell
		if b.Skip {
			text += " without the event"
		}
		if b.Actor != "" {
			text += " by " + b.Actor + ": " + b.Reason
		}
		return text
	default:
		return s.shortEffect(t, body)
	}
}

// shortEffect says what happened to an effect, which goes by its tag.
func (s *stage) shortEffect(t *testing.T, body journal.Body) string {
	switch b := body.(type) {
	case *journal.IntentEmitted:
		s.tags[b.Key] = b.Tag
		return fmt.Sprintf("%s %q of %s: %s by %s", b.Kind, b.Tag, b.Cell, b.Decision, strings.Join(b.Rules, ", "))
	case *journal.IntentDenied:
		return fmt.Sprintf("%s %q of %s: %s %s", b.Kind, b.Tag, b.Cell, b.Code, strings.Join(b.Rules, ", "))
	case *journal.Started:
		return fmt.Sprintf("%q in slot %d", s.tags[b.Key], b.Owner)
	case *journal.Finished:
		r, err := receipt.Decode(b.Receipt)
		require.NoError(t, err)
		payload, err := canon.ToJSON(r.Payload)
		require.NoError(t, err)
		return fmt.Sprintf("%q %s %s", s.tags[r.Key], r.Status, payload)
	case *journal.IntentAwaitingApproval:
		s.tags[b.Key] = b.Tag
		return fmt.Sprintf("%s %q of %s: awaits approval by %s", b.Kind, b.Tag, b.Cell, strings.Join(b.Rules, ", "))
	case *journal.IntentEnded:
		return fmt.Sprintf("%q %s: %s", s.tags[b.Key], b.Status, b.Outcome)
	case *journal.IntentCancelled:
		return fmt.Sprintf("%q, after %d attempts", s.tags[b.Key], b.Attempt)
	case *journal.Resolved:
		return fmt.Sprintf("%q %s", s.tags[b.Key], b.How)
	case *journal.SnapshotCreated:
		return b.Name
	case *journal.RolledBack:
		return fmt.Sprintf("to %s at #%d, %d side effects", b.Snapshot, b.SnapshotLen, len(b.Abandoned))
	}
	return ""
}
