package disk

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

const (
	dir     = "w"
	worldID = "world"
)

// rules is the manifest of all worlds here: a cell asks for an effect at every order.
func rules() manifest.Manifest {
	return manifest.Manifest{
		World: "disks", Version: 1, Seed: 1, Clock: manifest.Clock{Tick: int64(time.Second)},
		Reducers: map[string]manifest.Reducer{"client": {
			Engine: manifest.EngineGo, Name: "client", Version: "1", Grants: []string{"bank"}, OnError: manifest.OnErrorHalt,
		}},
		Events:   map[string]manifest.Event{"order": {}},
		Effects:  map[string]manifest.Effect{"bank.pay": {Adapter: "bank"}},
		Caps:     map[string]manifest.Cap{"bank": {Type: manifest.CapAny, Params: manifest.CapParams{Kinds: []string{"bank.*"}}}},
		Policies: []manifest.Policy{{Name: "all", When: "true", Decide: manifest.DecideAllow}},
		Routing:  []manifest.Route{{Event: "order", Reducer: "client", Key: "event.data.to"}},
	}.WithDefaults()
}

type order struct {
	To  string `cbor:"to"`
	N   uint64 `cbor:"n"`
	Pad string `cbor:"pad"`
}

func registry() reducer.Registry {
	return reducer.Registry{"client@1": reducer.Typed(1, func(ctx *reducer.Context, told []string, event reducer.Event) ([]string, error) {
		if event.Name == reducer.ReceiptEvent {
			r, err := reducer.Decode[reducer.Receipt](event.Data)
			return append(told, r.Status), err
		}
		o, err := reducer.Decode[order](event.Data)
		if err == nil {
			ctx.Effect("bank.pay", map[string]any{"n": o.N}, "")
		}
		return told, err
	})}
}

func keyring() *receipt.Keyring {
	secret := sha256.Sum256([]byte(worldID))
	keys, err := receipt.NewKeyring(worldID, []receipt.Epoch{{Number: 1, Secret: secret[:]}})
	if err != nil {
		panic(err)
	}
	return keys
}

// attempt is one permit.
type attempt struct {
	key    receipt.Key
	number uint64
	nonce  receipt.Nonce
}

// host performs effects at once, and remembers what it was asked for. It has no effect
// store: what a process had in hand is lost with it.
type host struct {
	keys      *receipt.Keyring
	performed func(attempt)
	answers   []receipt.Answer
}

func (*host) Live(*receipt.Intent) bool { return true }
func (*host) Wake()                     {}
func (*host) Queued() receipt.Queued    { return nil }

func (h *host) Start(tasks []receipt.Task) {
	for _, t := range tasks {
		a := receipt.Answer{Key: t.Key, Attempt: t.Attempt, Work: t.Work}
		switch t.Work {
		case receipt.Perform:
			h.performed(attempt{t.Key, t.Attempt, t.Nonce})
			data, err := worldtest.Sign(h.keys, worldID, t.Permit, worldtest.OK(nil))
			a.Receipt, a.Err = data, err
		case receipt.Recover:
			a.Lost = "no result of it was stored"
		default:
			continue
		}
		h.answers = append(h.answers, a)
	}
}

func (h *host) Answers() ([]receipt.Answer, error) {
	all := h.answers
	h.answers = nil
	return all, nil
}

func (h *host) Wait(ctx context.Context) error {
	if len(h.answers) == 0 {
		return worldtest.ErrNoAnswer
	}
	return ctx.Err()
}

func options(disk *failing) store.Options {
	opts := store.Options{
		FS: disk.FS, AnchorKey: []byte("key"),
		EachCell: func(kind string, payload []byte, visit func(cell []byte)) {
			_ = journal.EachCell(journal.Kind(kind), payload, visit) // a payload that it cannot read concerns no cell
		},
		IntentOf: func(kind string, payload []byte) (journal.Hash, []byte, bool) {
			return journal.IntentOf(journal.Kind(kind), payload)
		},
	}
	return opts
}

// config is that of a world over a store.
func config(s *store.Store, performed func(attempt)) world.Config {
	keys := keyring()
	return world.Config{
		Journal: s, History: s, Keys: keys, Registry: registry(), BatchRecords: 5, CheckpointRecords: 12,
		NewHost: func(string, *manifest.Manifest) (world.Host, error) {
			return &host{keys: keys, performed: performed}, nil
		},
	}
}

func encoded(v any) []byte {
	b, err := canon.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
