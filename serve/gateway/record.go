package gateway

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host/callers"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/world"
)

// settle waits until no call of the session is under way, and the cell has handled what was submitted before: a call that is no
// intent yet would be asked for a second time. One that has not begun waits for its caller.
func (g *Gateway) settle(ctx context.Context) error {
	begun := time.Now()
	return g.until(ctx, func(m *world.Moment, mail bool) bool {
		return (!mail || time.Since(begun) >= lateTime) && !slices.ContainsFunc(m.Intents(), func(e receipt.Entry) bool {
			return g.runs(&e) && !g.cfg.Desk.Wants(g.caller(e.Intent.Tag)) && !g.cfg.Tools.Wants(g.caller(e.Intent.Tag))
		})
	})
}

// handled waits until the cell has handled all that was submitted, where somebody drives the world: what nobody will tell the result of
// is about to be in doubt.
func (g *Gateway) handled(ctx context.Context) error {
	begun := time.Now()
	return g.until(ctx, func(m *world.Moment, mail bool) bool {
		return time.Since(begun) >= lateTime || !mail && !slices.ContainsFunc(m.Intents(), func(e receipt.Entry) bool {
			return g.runs(&e) && e.Intent.Kind == recorder.OwnTool
		})
	})
}

// caller names the intent of the session's cell with a tag. Other sessions of the world have equal tags.
func (g *Gateway) caller(tag string) callers.ID { return callers.ID{Cell: g.cell.String(), Tag: tag} }

// runs reports whether an intent is a call of the session that is under way.
func (g *Gateway) runs(e *receipt.Entry) bool {
	return e.State == receipt.StateInFlight && e.Intent.Cell == g.cell.String()
}

// until waits until the world is as is says, which is told whether the cell has something to handle. Offline the world does not change.
func (g *Gateway) until(ctx context.Context, is func(m *world.Moment, mail bool) bool) error {
	for !g.cfg.Offline {
		head, done := g.cfg.World.Head().ID, false
		g.cfg.World.View(func(m *world.Moment) {
			c, _ := m.Cell(g.cell)
			done = is(m, len(c.Mail) > 0 && !c.Halted)
		})
		if done {
			return nil
		}
		soon, cancel := context.WithTimeout(ctx, lookAgain) // whether a permit waits for its caller is in no record
		err := g.cfg.World.Await(soon, head)
		late := soon.Err() != nil
		cancel()
		if ctx.Err() != nil || err != nil && !late {
			return errors.Join(ctx.Err(), err)
		}
	}
	return nil
}

// ErrHalted says that the cell of a session has failed, and handles nothing until a person lets it go on.
var ErrHalted = errors.New("gateway: the session's cell is halted")

// readIntents waits for a durable record after one. It notes the intents of all that there are, and how those stand that have not ended.
// It returns the last of the records. Params are not read: a permit names its intent.
func (g *Gateway) readIntents(ctx context.Context, after journal.Seq) (journal.Seq, error) {
	var named, waits []receipt.Key
	for s, err := range g.cfg.World.AwaitRecords(ctx, after) {
		if err != nil {
			return after, err
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
		e := g.entry(key)
		g.tellWaits(&e)
	}
	return after, nil
}

// tellWaits tells of a call that a person has to approve, if it is one of the session.
func (g *Gateway) tellWaits(e *receipt.Entry) {
	if e.State == receipt.StateAwaitingApproval && e.Intent.Cell == g.cell.String() && !e.Abandoned {
		g.cfg.Waits(e.Intent.Key, g.link(e))
	}
}

// look notes how intents stand as far as a record, or as far as was read: those that are waited for, and those that are named. So
// who waits for one need not ask the world.
func (g *Gateway) look(named []receipt.Key, read journal.Seq) {
	g.looking.Lock()
	defer g.looking.Unlock()
	g.mu.Lock()
	keys := make([]receipt.Key, 0, len(g.awaited)+len(named))
	for _, a := range g.awaited { // order cannot show: each by itself
		keys = append(keys, g.keyOf(a))
	}
	g.mu.Unlock()
	keys = append(keys, named...)
	now := make([]receipt.Entry, len(keys))
	g.cfg.World.View(func(m *world.Moment) {
		for i, key := range keys {
			now[i], _ = m.Intent(key)
		}
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.read = max(g.read, read)
	for _, e := range now[len(now)-len(named):] {
		if e.Intent.Cell == g.cell.String() {
			g.intents[e.Intent.Tag] = e.Intent.Key
		}
	}
	for i := range now {
		g.note(&now[i])
	}
}

// note notes how an intent stands. It is called with mu held.
func (g *Gateway) note(e *receipt.Entry) {
	a := g.awaited[e.Intent.Tag]
	if a == nil || e.Intent.Key != g.intents[e.Intent.Tag] || e.Finished > uint64(g.read) { // another was or may be asked for in its place
		return
	}
	changed := a.stands.State != e.State
	a.stands, a.stands.Intent.Params = *e, nil
	if over(e) {
		delete(g.awaited, e.Intent.Tag)
	}
	if changed {
		ring(&a.news)
	}
}

// unended counts the calls of the session that a person has to decide about, and those that are under way.
func (g *Gateway) unended() (waiting, underWay int) {
	for _, e := range g.record.Ledger() {
		switch {
		case e.Intent.Cell != g.cell.String() || over(&e):
		case e.State.AwaitsPerson():
			waiting++
		default:
			underWay++
		}
	}
	return waiting, underWay
}

// entry returns how an intent stands.
func (g *Gateway) entry(key receipt.Key) (e receipt.Entry) {
	e, _ = g.record.LedgerEntry(key)
	return e
}

// answerOf returns what came of an intent that has ended; nil: nothing of that is on record, for a reason.
func answerOf[A any, P interface {
	*A
	Given() bool
}](g *Gateway, e *receipt.Entry) (answer P, reason why, err error) {
	at, err := g.record.Entry(journal.Seq(cmp.Or(e.Finished, e.Emitted)))
	if err != nil {
		return nil, reason, err
	}
	found, err := g.record.Answer(at)
	if err != nil || found == nil {
		return nil, why{Error: redacted}, err
	}
	if answer = new(A); canon.UnmarshalTrusted(found.Payload, answer) == nil && answer.Given() {
		return answer, reason, nil
	}
	if canon.UnmarshalTrusted(found.Payload, &reason) != nil {
		reason = why{Error: "the answer is of another kind"}
	}
	return nil, reason, nil
}

// redacted is why an answer is not on record any more.
const redacted = "what came of it was redacted"

// why says for what reason an intent has no answer.
type why struct {
	Code   governance.Code `cbor:"code"`
	Reason string          `cbor:"reason"`
	Error  string          `cbor:"error"`
}

func (w *why) String() string { return w.Reason + w.Error }

// paramsOf returns the params of an intent; empty: they cannot be read.
func paramsOf[P any](g *Gateway, key receipt.Key) (params P) {
	_ = canon.UnmarshalTrusted(g.record.Params(key), &params)
	return params
}
