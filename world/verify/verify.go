// Package verify proves a world from its stored bytes alone: it recomputes the
// chain, the ledger, the receipts and the replay, and reports every fault that
// it finds. It writes nothing and asks nobody.
package verify

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
)

// Config is what verification works with besides the journal.
type Config struct {
	Keys     *receipt.Keyring  // checks receipts; nil or without keys: they count as unverifiable
	Registry *reducer.Registry // Go reducers, for the replay
	Anchor   world.Head        // what was acknowledged; zero: there is no anchor
	Damage   iter.Seq[error]   // faults of the store below the journal; nil: none
	Progress func(done uint64) // called with the number of records done; may be nil
}

// Report is what verification found. Its JSON is `worldctl verify -o json`.
type Report struct {
	OK                 bool         `json:"ok"`
	Trusted            bool         `json:"trusted"` // by a signature of someone the caller names
	WorldID            string       `json:"world_id"`
	Records            uint64       `json:"records"`
	ExecutionHash      world.Hash   `json:"execution_hash"`
	EventChainRootHash world.Hash   `json:"event_chain_root_hash"`
	StateRoot          world.Hash   `json:"state_root"`
	Ledger             LedgerProof  `json:"tool_invocation_ledger_proof"`
	Replay             ReplayProof  `json:"replay_proof_result"`
	Receipts           Receipts     `json:"receipts"`
	Anchor             *AnchorProof `json:"anchor,omitempty"`
	Faults             []Fault      `json:"faults"`
}

// LedgerProof says whether every started attempt has at most one end (a receipt,
// or that it was given up), every end a start, and every start a decision of the
// gate.
type LedgerProof struct {
	OK                     bool          `json:"ok"`
	PendingIdempotencyKeys []receipt.Key `json:"pending_idempotency_keys"` // started, in flight or in doubt: not a fault
	DuplicateKeys          []receipt.Key `json:"duplicate_keys"`
	OrphanKeys             []receipt.Key `json:"orphan_keys"`

	Attempts     uint64 `json:"attempts"`      // started, of all intents together
	InDoubt      uint64 `json:"in_doubt"`      // intents that owe a decision
	Parked       uint64 `json:"parked"`        // intents that wait for a person to approve or confirm them
	ConfirmedNot uint64 `json:"confirmed_not"` // results that were used though the outside shows something else
	NoVerifier   uint64 `json:"no_verifier"`   // receipts of kinds that nobody can confirm
}

// ReplayProof says whether the inputs give the journal.
type ReplayProof struct {
	OK              bool              `json:"ok"`
	Error           string            `json:"error"` // "" where there is none
	FirstDivergence *world.Divergence `json:"first_divergence"`
}

// Receipts counts receipts by what could be said of them.
type Receipts struct {
	Checked      uint64 `json:"checked"`
	Bad          uint64 `json:"bad"`
	Unverifiable uint64 `json:"unverifiable"` // without the keys
	Inherited    uint64 `json:"inherited"`    // made for a parent world
}

// AnchorProof says whether what was acknowledged is in the journal.
type AnchorProof struct {
	OK bool      `json:"ok"`
	ID world.Seq `json:"id"`
}

// Fault is one thing that is wrong.
type Fault struct {
	Place   string `json:"place"` // e.g. "record #12"
	Message string `json:"message"`
}

// Verify checks all that can be checked. The error says that it could not be
// done; what is wrong with the world is in the report.
func Verify(h world.History, cfg Config) (*Report, error) {
	v := &verifier{
		h: h, cfg: cfg, execution: world.NewExecution(),
		intents: make(map[receipt.Key]*invocation),
		report: &Report{Faults: []Fault{}, Ledger: LedgerProof{
			PendingIdempotencyKeys: []receipt.Key{}, DuplicateKeys: []receipt.Key{}, OrphanKeys: []receipt.Key{},
		}},
	}
	if cfg.Damage != nil {
		for err := range cfg.Damage {
			v.fault("store", "%v", err)
		}
	}
	v.scan()
	v.closeLedger()
	v.replay()
	r := v.report
	r.OK = len(r.Faults) == 0
	return r, nil
}

type verifier struct {
	h         world.History
	cfg       Config
	report    *Report
	execution *world.Execution
	intents   map[receipt.Key]*invocation
	order     []receipt.Key // of intents, as the journal first names them
	effects   map[string]manifest.Effect
}

func (v *verifier) fault(place, format string, args ...any) {
	v.report.Faults = append(v.report.Faults, Fault{Place: place, Message: fmt.Sprintf(format, args...)})
}

// scan walks the journal once: chain, anchor, receipts, intents, execution.
func (v *verifier) scan() {
	chain := new(canon.Chain)
	anchored := v.cfg.Anchor.ID == 0
	var last world.Seq
	broken := false
	for s, err := range v.h.Scan(0) {
		if err != nil {
			v.fault(fmt.Sprintf("record #%d", last+1), "%v", err)
			break
		}
		place := fmt.Sprintf("record #%d", s.ID)
		if s.ID != last+1 {
			v.fault(place, "it follows record #%d: records are missing, repeated or out of order", last)
		}
		last = s.ID
		if s.Err != nil {
			v.fault(place, "%v", s.Err)
			continue
		}
		rec := s.Record
		root := chain.Add(uint64(rec.ID), string(rec.Kind), s.Bytes)
		if [world.LinkBytes]byte(root[:world.LinkBytes]) != s.Link && !broken {
			broken = true // and so are all links after it
			v.fault(place, "the chain root that was stored with it is another: this record or an earlier one was changed")
		}
		if rec.ID == v.cfg.Anchor.ID {
			anchored = root == v.cfg.Anchor.Root
		}
		v.record(place, &rec)
	}
	v.report.Records = uint64(last)
	v.report.EventChainRootHash = chain.Root()
	v.report.ExecutionHash = v.execution.Hash()
	if v.cfg.Anchor.ID != 0 {
		v.report.Anchor = &AnchorProof{OK: anchored, ID: v.cfg.Anchor.ID}
		if !anchored {
			v.fault("anchor", "record #%d with root %s was acknowledged, and the journal does not have it", v.cfg.Anchor.ID, v.cfg.Anchor.Root)
		}
	}
}

// record checks one record by itself.
func (v *verifier) record(place string, rec *world.Record) {
	if err := rec.Load(v.h); err != nil {
		v.fault(place, "%v", err)
		return
	}
	body, err := rec.Body()
	if err != nil {
		v.fault(place, "%v", err)
		return
	}
	if err := v.execution.Add(rec); err != nil {
		v.fault(place, "%v", err)
	}
	switch b := body.(type) {
	case *world.Created:
		v.report.WorldID = b.World
		v.contents(place, b.Manifest)
	case *world.Finished:
		if r := v.receipt(place, b.Receipt); r != nil {
			v.finished(place, r)
			if v.effects[r.Kind].Verify == nil {
				v.report.Ledger.NoVerifier++
			}
		}
	case *world.Late:
		if r := v.receipt(place, b.Receipt); r != nil {
			v.late(place, r)
		}
	default:
		v.ledger(place, body)
	}
}

// contents checks that everything is there that a manifest names.
func (v *verifier) contents(place string, hash manifest.Hash) {
	encoded := v.blob(place, "manifest", hash)
	if encoded == nil {
		return
	}
	m, err := manifest.Decode(encoded)
	if err != nil {
		v.fault(place, "%v", err)
		return
	}
	v.effects = m.Effects
	for _, h := range m.Contents() {
		v.blob(place, "content", h)
	}
}

// blob returns a blob, nil where it is not there or not what its name says.
func (v *verifier) blob(place, what string, hash manifest.Hash) []byte {
	b, err := v.h.Blob(hash)
	if err == nil && canon.Sum(b) != hash {
		err = errors.New("the bytes have another hash")
	}
	if err != nil {
		v.fault(place, "%s %s: %v", what, hash, err)
		return nil
	}
	return b
}

// receipt checks a receipt's signature and returns it, nil where it is none.
func (v *verifier) receipt(place string, data []byte) *receipt.Receipt {
	r, err := receipt.Decode(data)
	if err != nil {
		v.report.Receipts.Bad++
		v.fault(place, "receipt: %v", err)
		return nil
	}
	if v.cfg.Keys == nil || !v.cfg.Keys.CanSign() {
		v.report.Receipts.Unverifiable++
		return r
	}
	switch err := v.cfg.Keys.Verify(r); {
	case err == nil, errors.Is(err, receipt.ErrRevokedKey): // it was valid when it was journaled
		v.report.Receipts.Checked++
	default: // an unknown key too: a keyring keeps the old ones
		v.report.Receipts.Bad++
		v.fault(place, "receipt of intent %s: %v", r.Key, err)
	}
	return r
}

// replay recomputes the world. Receipts were checked by scan, so it takes them
// at their word: a bad one is one fault, not two.
func (v *verifier) replay() {
	cfg := world.ReplayConfig{Registry: v.cfg.Registry}
	if v.cfg.Progress != nil {
		cfg.Visit = func(s world.Scanned) error {
			v.cfg.Progress(uint64(s.ID))
			return nil
		}
	}
	done, err := world.Replay(v.h, cfg)
	if err == nil {
		v.report.StateRoot = done.StateRoot
		v.report.Replay.OK = true
		return
	}
	v.report.Replay.Error = err.Error()
	place := "replay"
	if d := new(world.Divergence); errors.As(err, &d) {
		v.report.Replay.FirstDivergence = d
		place = fmt.Sprintf("record #%d", d.Record)
	}
	if !slices.ContainsFunc(v.report.Faults, func(f Fault) bool { return f.Message == err.Error() }) {
		v.fault(place, "%v", err)
	}
}
