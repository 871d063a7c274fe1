package twice

import (
	"math/rand/v2"
	"time"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// refundKind is the kind of effect that makes up for the others.
const refundKind = "bank.refund"

var (
	kinds   = []string{"bank.a", "bank.b", "bank.c"}
	clients = []string{"ada", "ben"}
	wares   = []string{"x", "y"}
)

// order is the data of the event pay.
type order struct {
	To   string `cbor:"to"`
	Kind string `cbor:"kind"`
	What string `cbor:"what"`

	Within manifest.Tick `cbor:"within,omitempty"` // that it is wanted; 0: whenever it comes
}

// account is the state of a client: of each payment that it asked for, how it
// ended, or that it has not; which it does not want any more; and how many remarks it was
// told.
type account struct {
	Paid      map[string]string `cbor:"paid"`
	Withdrawn map[string]bool   `cbor:"withdrawn,omitempty"`
	Remarks   uint64            `cbor:"remarks"`
}

// What is told of a payment besides the status of its receipt.
const (
	asked   = "asked"
	untold  = "it was withdrawn, and its end came like any other"
	mistold = "it was not withdrawn, and its end was told apart"
)

// withdraw cancels a payment that has not ended.
func (s *account) withdraw(ctx *reducer.Context, o order) {
	if tag := o.tag(); s.Paid[tag] == asked && !s.Withdrawn[tag] {
		ctx.Cancel(tag)
		if s.Withdrawn == nil {
			s.Withdrawn = make(map[string]bool)
		}
		s.Withdrawn[tag] = true
	}
}

func (o *order) tag() string { return o.Kind + " " + o.What }

// client asks for a payment that it has not asked for yet: in one history no deal
// is made twice, whatever becomes of it.
func client(ctx *reducer.Context, s account, event reducer.Event) (account, error) {
	if s.Paid == nil {
		s.Paid = make(map[string]string)
	}
	switch event.Name {
	case "pay":
		o, err := reducer.Decode[order](event.Data)
		if err != nil {
			return s, err
		}
		tag := o.tag()
		if o.Within > 0 && (s.Paid[tag] == "" || s.Paid[tag] == asked && !s.Withdrawn[tag]) { // it is asked for, or has more time
			ctx.TimerTagged(o.Within, "overdue", o, tag)
		}
		if s.Paid[tag] != "" {
			return s, nil
		}
		s.Paid[tag] = asked
		ctx.Effect(o.Kind, map[string]any{"what": o.What}, tag)
	case "overdue", "withdraw":
		o, err := reducer.Decode[order](event.Data)
		if err != nil {
			return s, err
		}
		s.withdraw(ctx, o)
	case reducer.ReceiptEvent:
		r, err := reducer.Decode[reducer.Receipt](event.Data)
		if err != nil {
			return s, err
		}
		s.Paid[r.Tag] = r.Status
		switch {
		case s.Withdrawn[r.Tag] && !r.Cancelled:
			s.Paid[r.Tag] = untold
		case r.Cancelled && !s.Withdrawn[r.Tag]:
			s.Paid[r.Tag] = mistold
		}
		ctx.Cancel(r.Tag) // its deadline
	default: // a remark: what follows has another history
		s.Remarks++
	}
	return s, nil
}

// paramsOf returns the params of a payment, as JSON.
func paramsOf(what string) string { return `{"what":"` + what + `"}` }

func registry() reducer.Registry {
	return reducer.Registry{"client@1": reducer.Typed(1, client)}
}

// rules makes up the manifest of a life.
func rules(rng *rand.Rand) manifest.Manifest {
	m := manifest.Manifest{
		World: "twice", Version: 1, Seed: 1, Clock: manifest.Clock{Tick: int64(time.Second)},
		Reducers: map[string]manifest.Reducer{"client": {
			Engine: manifest.EngineGo, Name: "client", Version: "1", Grants: []string{"bank"}, OnError: manifest.OnErrorHalt,
		}},
		Events: map[string]manifest.Event{"pay": {}, "remark": {}, "withdraw": {}},
		Effects: map[string]manifest.Effect{refundKind: {
			Adapter: "bank", Timeout: int64(timeout),
		}},
		Caps: map[string]manifest.Cap{"bank": {Type: manifest.CapAny, Params: manifest.CapParams{Kinds: []string{"bank.*"}}}},
		Policies: []manifest.Policy{
			{Name: "all", When: "true", Decide: manifest.DecideAllow},
		},
		Routing: []manifest.Route{
			{Event: "pay", Reducer: "client", Key: "event.data.to"},
			{Event: "remark", Reducer: "client", Key: "event.data.to"},
			{Event: "withdraw", Reducer: "client", Key: "event.data.to"},
		},
		Limits: manifest.Limits{InFlight: uint64(pick(rng, 2, 1024, 1024))},
	}
	if rng.IntN(3) == 0 {
		m.Defaults.SnapshotEvery = uint64(100 + rng.IntN(60))
	}
	if rng.IntN(4) == 0 {
		m.Policies = append(m.Policies, manifest.Policy{
			Name: "ask", When: `intent.kind == "` + pick(rng, kinds...) + `"`, Decide: manifest.DecideRequireApproval,
		})
	}
	for _, kind := range kinds {
		m.Effects[kind] = effect(rng, kind)
	}
	return m.WithDefaults()
}

// timeout is that of every attempt.
const timeout = 10 * time.Second

// effect makes up what a kind of payment is declared as.
func effect(rng *rand.Rand, kind string) manifest.Effect {
	e := manifest.Effect{
		Adapter: "bank", Timeout: int64(timeout), Verify: &manifest.Verify{Adapter: "bank"},
		Retry:      manifest.Retry{Attempts: uint64(1 + rng.IntN(3)), Backoff: int64(time.Second)},
		Idempotent: rng.IntN(4) == 0,
		OnRepeat:   pick(rng, manifest.RepeatAsk, manifest.RepeatReuse, manifest.RepeatReuse, manifest.RepeatRun),
		OnInDoubt:  pick(rng, manifest.InDoubtAsk, manifest.InDoubtVerify, manifest.InDoubtVerify, manifest.InDoubtFail),
	}
	if e.Idempotent && rng.IntN(2) == 0 {
		e.OnInDoubt = manifest.InDoubtRetry
	}
	if rng.IntN(2) == 0 {
		e.Compensate = &manifest.Compensate{Kind: refundKind, Params: `{"of": "` + kind + `", "what": intent.params.what}`}
	}
	return e
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// span draws a duration below most.
func span(rng *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(most)))
}

func encoded(v any) receipt.Data {
	b, err := canon.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
