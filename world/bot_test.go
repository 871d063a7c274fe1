package world_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// bot is a reducer that does what its events say, and remembers what it saw.
type botState struct {
	Seen []string `cbor:"seen" json:"seen"`
}

type act struct {
	Emit   string `cbor:"emit,omitempty"`
	Key    string `cbor:"key,omitempty"`
	Effect string `cbor:"effect,omitempty"`
	Param  string `cbor:"param,omitempty"`
	Timer  uint64 `cbor:"timer,omitempty"`
	Tag    string `cbor:"tag,omitempty"` // of the timer
	Cancel string `cbor:"cancel,omitempty"`
	Fail   string `cbor:"fail,omitempty"`
	Delete bool   `cbor:"delete,omitempty"`
	Random uint64 `cbor:"random,omitempty"`
	Do     []act  `cbor:"do,omitempty"` // of the event that is emitted
}

type order struct {
	To  string `cbor:"to,omitempty"`
	Say string `cbor:"say,omitempty"`
	Do  []act  `cbor:"do,omitempty"`
}

var errBot = errors.New("bot told to fail")

func bot(ctx *reducer.Context, s botState, e reducer.Event) (botState, error) {
	if e.Name == reducer.ReceiptEvent {
		r, err := reducer.Decode[reducer.Receipt](e.Data)
		saw := fmt.Sprintf("%d:receipt %s %s", ctx.Time(), r.Tag, r.Status)
		if r.Cancelled {
			saw += " cancelled"
		}
		s.Seen = append(s.Seen, saw)
		return s, err
	}
	o, err := reducer.Decode[order](e.Data)
	if err != nil {
		return s, err
	}
	s.Seen = append(s.Seen, fmt.Sprintf("%d:%s %s", ctx.Time(), e.Name, o.Say))
	for i, a := range o.Do {
		switch {
		case a.Fail != "":
			return s, fmt.Errorf("%w: %s", errBot, a.Fail)
		case a.Emit != "":
			ctx.EmitTo(a.Emit, order{To: a.Key, Say: ctx.Cell().Key, Do: a.Do}, a.Key)
		case a.Effect != "":
			ctx.Effect(a.Effect, map[string]string{"p": a.Param}, fmt.Sprint(a.Param, i))
		case a.Timer > 0:
			ctx.TimerTagged(manifest.Tick(a.Timer), "alarm", order{Say: fmt.Sprint("after ", a.Timer), Do: a.Do}, a.Tag)
		case a.Cancel != "":
			ctx.Cancel(a.Cancel)
		case a.Random > 0:
			s.Seen = append(s.Seen, fmt.Sprint("random ", ctx.Random(a.Random)))
		case a.Delete:
			ctx.Delete()
		}
	}
	return s, nil
}

func botRegistry() reducer.Registry {
	return reducer.Registry{"bot@1": reducer.Typed(1, bot)}
}

func botManifest() manifest.Manifest {
	return manifest.Manifest{
		World: "bots", Version: 1, Seed: 7,
		Reducers: map[string]manifest.Reducer{
			"bot":  {Engine: manifest.EngineGo, Name: "bot", Version: "1", Grants: []string{"tools"}},
			"skip": {Engine: manifest.EngineGo, Name: "bot", Version: "1", OnError: manifest.OnErrorSkip},
		},
		Events: map[string]manifest.Event{"go": {}, "ping": {}, "lost": {}, "skip.go": {}, "both": {}},
		Effects: map[string]manifest.Effect{
			"tool.a":   {Adapter: "test"},
			"tool.l":   {Adapter: "test"},
			"tool.u":   {Adapter: "test"},
			"tool.bad": {Adapter: "test"},
			"other.x":  {Adapter: "test"},
		},
		Caps: map[string]manifest.Cap{
			"tools": {Type: manifest.CapAny, Params: manifest.CapParams{Kinds: []string{"tool.*"}}},
		},
		Policies: []manifest.Policy{
			{Name: "all", When: "true", Decide: manifest.DecideAllow},
			{Name: "not bad", When: `intent.kind == "tool.bad"`, Decide: manifest.DecideDeny},
		},
		Routing: []manifest.Route{
			{Event: "go", Reducer: "bot", Key: "event.data.to"},
			{Event: "ping", Reducer: "bot", Key: "event.data.to"},
			{Event: "skip.*", Reducer: "skip", Key: "event.data.to"},
			{Event: "both", Reducer: "bot", Key: "event.data.to"},
			{Event: "both", Reducer: "skip", Key: `"all"`},
		},
	}
}

// bots returns a world of bots whose effects are answered with ok.
func bots(t testing.TB, change ...func(*manifest.Manifest)) *worldtest.World {
	return botsWith(t, worldtest.Options{}, change...)
}

func botsWith(t testing.TB, o worldtest.Options, change ...func(*manifest.Manifest)) *worldtest.World {
	t.Helper()
	m := botManifest()
	for _, c := range change {
		c(&m)
	}
	if o.Reducers == nil {
		o.Reducers = botRegistry()
	}
	if o.Answer == nil {
		o.Answer = func(receipt.Permit) worldtest.Reply { return worldtest.OK("done") }
	}
	return worldtest.New(t, m, nil, o)
}
