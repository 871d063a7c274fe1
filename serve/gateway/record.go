package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
)

// asked is an intent of the session.
type asked struct {
	tag string
	key receipt.Key
}

// lineage returns that of the request whose intent has a tag; see conversation.tag.
func lineage(tag string) string {
	_, key, _ := strings.Cut(tag, " ")
	return key
}

// settle waits until no call of the session is under way, and the cell has handled what was submitted before: a call that is no
// intent yet would be asked for a second time. One that has not begun waits for its caller.
func (g *Gateway) settle(ctx context.Context) error {
	for begun := time.Now(); !g.cfg.Offline; {
		head, under := g.cfg.World.Head().ID, false
		g.cfg.World.View(func(m *world.Moment) {
			c, _ := m.Cell(g.cell)
			under = len(c.Mail) > 0 && !c.Halted && time.Since(begun) < lateTime // else nobody drives the world
			for _, e := range m.Intents() {
				under = under || e.State == receipt.StateInFlight && e.Intent.Cell == g.cell.String() && !g.cfg.Desk.Wants(e.Intent.Tag) && !g.cfg.Tools.Wants(e.Intent.Tag)
			}
		})
		if !under {
			return nil
		}
		if err := g.lookFor(ctx, head); err != nil {
			return err
		}
	}
	return nil
}

// lookFor waits for a record after one, a while at most: whether a permit waits for its caller is in no record.
func (g *Gateway) lookFor(ctx context.Context, head journal.Seq) error {
	soon, cancel := context.WithTimeout(ctx, lookAgain)
	defer cancel()
	if err := g.cfg.World.Await(soon, head); err != nil && soon.Err() == nil {
		return err
	}
	return ctx.Err()
}

// handled waits until the cell has handled all that was submitted, where somebody drives the world.
func (g *Gateway) handled(ctx context.Context) error {
	for begun := time.Now(); time.Since(begun) < lateTime; {
		head, mail := g.cfg.World.Head().ID, 0
		g.cfg.World.View(func(m *world.Moment) {
			c, _ := m.Cell(g.cell)
			mail = len(c.Mail)
			for _, e := range m.Intents() {
				if e.State == receipt.StateInFlight && e.Intent.Cell == g.cell.String() && e.Intent.Kind == recorder.OwnTool {
					mail++ // what nobody will tell the result of is about to be in doubt
				}
			}
		})
		if mail == 0 {
			return nil
		}
		if err := g.lookFor(ctx, head); err != nil {
			return err
		}
	}
	return nil
}

// ErrHalted says that the cell of a session has failed, and handles nothing until a person lets it go on.
var ErrHalted = errors.New("gateway: the session's cell is halted")

// recall finds what earlier incarnations of the session have asked.
func (g *Gateway) recall() error {
	var failed error
	denied := make(map[string][]asked)
	g.cfg.World.View(func(m *world.Moment) {
		if c, ok := m.Cell(g.cell); ok {
			s, err := reducer.Decode[recorder.Session](c.State)
			g.incarnation, g.instead, failed = s.Incarnation, s.Instead, err
			if c.Halted {
				failed = fmt.Errorf("%w: %s", ErrHalted, g.cell)
			}
		}
		for _, e := range m.Intents() {
			if e.Intent.Cell == g.cell.String() && e.Intent.Kind == recorder.Call {
				g.ever[lineage(e.Intent.Tag)] = true
			}
		}
	})
	for _, e := range g.intentsOf(recorder.Call, 0) {
		key := lineage(e.Intent.Tag)
		switch {
		case g.given(&e):
			g.past[key] = append(g.past[key], asked{e.Intent.Tag, e.Intent.Key})
			g.left++
		case !over(&e):
			g.waits[key] = append(g.waits[key], asked{e.Intent.Tag, e.Intent.Key})
		case e.State == receipt.StateDenied:
			denied[key] = append(denied[key], asked{e.Intent.Tag, e.Intent.Key})
		}
	}
	for key, of := range denied { // order cannot show: each by itself
		if g.cfg.Offline && len(g.past[key]) == 0 { // the record has only the denial
			g.past[key] = of
			g.left += len(of)
		}
	}
	g.incarnation++
	return failed
}

// given reports whether the agent gets what a call came to again. It does not get failures, after which it asks again, but for
// answers that were cut off: Claude Code goes on from what it had of one.
func (g *Gateway) given(e *receipt.Entry) bool {
	if e.State == receipt.StateFailed && !e.Uncertain {
		answer, _, err := g.answerOf(e)
		return err == nil && answer != nil && answer.Cut
	}
	return e.State == receipt.StateCommitted
}

// readIntents notes the intents of durable records after one, and how those stand that have not ended. It returns the last of the records.
// Params are not read: a permit names its intent.
func (g *Gateway) readIntents(after journal.Seq) (journal.Seq, error) {
	var named, waits []receipt.Key
	now, cancel := context.WithCancel(context.Background())
	cancel()
	for s, err := range g.cfg.World.Scan(after) {
		if err != nil {
			return after, err
		}
		if g.cfg.World.Await(now, s.ID-1) != nil {
			break // it is not durable yet
		}
		after = s.ID
		switch s.Record.Kind {
		case journal.KindDenied, journal.KindAwaitingApproval:
			if err := s.Record.Load(g.cfg.World); err != nil && !errors.Is(err, journal.ErrRedacted) {
				return after, err
			}
		case journal.KindIntent, journal.KindStarted:
		default:
			continue
		}
		if key, _, ok := journal.IntentOf(s.Record.Kind, s.Record.Payload); ok {
			named = append(named, receipt.Key{Hash: key})
			if s.Record.Kind == journal.KindAwaitingApproval && g.cfg.Waits != nil {
				waits = append(waits, receipt.Key{Hash: key})
			}
		}
	}
	g.look(named, after)
	for _, key := range waits {
		g.tellWaits(g.entry(key))
	}
	return after, nil
}

// tellWaits tells of a call that a person has to approve, if it is one of the session.
func (g *Gateway) tellWaits(e receipt.Entry) {
	if e.State == receipt.StateAwaitingApproval && e.Intent.Cell == g.cell.String() && !e.Abandoned {
		g.cfg.Waits(e.Intent.Key, g.link(&e))
	}
}

// look notes how intents stand that have not ended, as far as a record: so all that wait for one need not ask the world.
func (g *Gateway) look(named []receipt.Key, read journal.Seq) {
	g.mu.Lock()
	before := slices.Collect(maps.Values(g.stand)) // order cannot show: each by itself
	g.mu.Unlock()
	now := make([]receipt.Entry, 0, len(before)+len(named))
	g.cfg.World.View(func(m *world.Moment) {
		for i := range before {
			e, _ := m.Intent(before[i].Intent.Key)
			now = append(now, e)
		}
		for _, key := range named {
			if e, ok := m.Intent(key); ok && e.Intent.Cell == g.cell.String() {
				now = append(now, e)
			}
		}
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range now {
		e := &now[i]
		e.Intent.Params = nil
		if i >= len(before) {
			g.intents[e.Intent.Tag] = asked{e.Intent.Tag, e.Intent.Key}
		}
		switch {
		case !over(e):
			g.stand[e.Intent.Tag] = *e
		case e.Finished <= uint64(read):
			delete(g.stand, e.Intent.Tag)
		}
	}
}

// unended counts the calls of the session that a person has to decide about, and those that are under way.
func (g *Gateway) unended() (waiting, underWay int) {
	g.cfg.World.View(func(m *world.Moment) {
		for _, e := range m.Intents() {
			switch {
			case e.Intent.Cell != g.cell.String() || over(&e):
			case e.State.AwaitsPerson():
				waiting++
			default:
				underWay++
			}
		}
	})
	return waiting, underWay
}

// entry returns how an intent stands.
func (g *Gateway) entry(key receipt.Key) (e receipt.Entry) {
	g.cfg.World.View(func(m *world.Moment) { e, _ = m.Intent(key) })
	return e
}

// answerOf returns what the provider has answered to an intent that has ended. Where nothing of
// that is on record it is nil, and the reason says why.
func (g *Gateway) answerOf(e *receipt.Entry) (a *recorder.Answer, reason why, err error) {
	payload, reason, err := g.payloadOf(e)
	if err != nil || payload == nil {
		return nil, reason, err
	}
	a = new(recorder.Answer)
	if err := canon.UnmarshalTrusted(payload, a); err == nil && a.Status != 0 {
		return a, why{}, nil
	}
	return nil, reason, nil
}

// why says for what reason an intent has no answer.
type why struct {
	Code   governance.Code `cbor:"code"`
	Reason string          `cbor:"reason"`
	Error  string          `cbor:"error"`
}

func (w *why) String() string { return w.Reason + w.Error }

// payloadOf returns what is on record of an intent that has ended, and the reason that it gives where
// it is no answer; nil: it was redacted.
func (g *Gateway) payloadOf(e *receipt.Entry) (payload canon.Raw, reason why, err error) {
	j := view.Journal{Local: g.cfg.World}
	at, err := j.Entry(journal.Seq(cmp.Or(e.Finished, e.Emitted)))
	if err != nil {
		return nil, reason, err
	}
	found, err := j.Answer(at)
	if err != nil || found == nil {
		return nil, why{Error: "what came of it was redacted"}, err
	}
	if canon.UnmarshalTrusted(found.Payload, &reason) != nil {
		reason = why{Error: "the answer is of another kind"}
	}
	return found.Payload, reason, nil
}

// paramsOf decodes the params of an intent.
func (g *Gateway) paramsOf(e *receipt.Entry, v any) error {
	at, err := view.Journal{Local: g.cfg.World}.Entry(journal.Seq(e.Emitted))
	if err != nil {
		return err
	}
	switch b := at.Body.(type) {
	case *journal.IntentEmitted:
		return canon.UnmarshalTrusted(b.Params, v)
	case *journal.IntentAwaitingApproval:
		return canon.UnmarshalTrusted(b.Params, v)
	case *journal.IntentDenied:
		return canon.UnmarshalTrusted(b.Params, v)
	}
	return fmt.Errorf("record %d is no intent", e.Emitted)
}
