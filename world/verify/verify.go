// Package verify proves a world from its stored bytes alone: it recomputes the chain, the ledger, the
// timers, the receipts, the approvals, the signed checkpoints and the replay, and reports the faults
// that it finds, 10,000 one by one. It writes nothing and asks nobody. Its memory grows with live
// state, kept snapshots and the timers that they have seen, rollbacks, intents and proposals, not with
// the journal. Of cells that rest and intents that have ended the larger part lies on the disk, beyond
// a bound: see Config.Spilling and aside.go. It is a part of worldctl, and not an API.
//
// A Proof shows a third party one record, one cell or two heads of a world, and
// CheckProof needs nothing else to believe it.
package verify

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"fmt"
	"iter"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
)

// Config is what verification works with besides the journal. The zero value is for
// a whole journal that nobody signed.
type Config struct {
	Keys     *receipt.Keyring  // checks receipts; nil or without keys: they count as unverifiable
	Registry reducer.Registry  // Go reducers, for the replay
	Anchor   journal.Head      // what was acknowledged; zero: there is no anchor
	Images   []journal.Head    // of which images of the world are kept, ascending: they must be in the journal
	Damage   iter.Seq[error]   // faults of the store below the journal, but for its records; nil: none
	Records  iter.Seq[error]   // all faults of its records: asked for where there is one, for a Scan ends at the first; nil: none
	Bounds   world.Bounds      // of the world's rules, which may be a stranger's; zero: none
	Spilling world.Spilling    // of the replay, and for a quarter of what is known of intents; zero: all is in memory
	Progress func(done uint64) // called with the number of records done, by one goroutine at a time; may be nil

	Begin    Begin
	Withheld []journal.Hash // payloads that were left out of the journal, as whoever made it says

	Checkpoints iter.Seq2[[]byte, error] // signed ones that came with the journal, ascending by size; nil: none
	Kept        [][]byte                 // signed ones that somebody kept elsewhere: each must be of this history
	Signers     []ed25519.PublicKey      // keys that came with the journal; whose they are nobody says
	Trust       []ed25519.PublicKey      // keys of those whom the caller believes
	Sealed      bool                     // the journal has to end with a checkpoint of its last record
}

// Begin is the first head of a journal, or of a part of a journal. The zero value is the beginning
// of a world.
type Begin struct {
	First journal.Seq       // its first record; 0: 1
	Root  journal.Hash      // the chain root before it. No checkpoint covers it
	Nodes []checkpoint.Hash // of checkpoint.Tree.Nodes, of the records before it
	World string            // the world's id, at the journal's end; "": not compared
}

// Report is the result of a verification. Its JSON is `worldctl verify -o json`.
type Report struct {
	OK                 bool         `json:"ok"`                    // all was checked, and there is no fault
	Trusted            bool         `json:"trusted"`               // someone whom the caller believes has signed the last record and all before it
	WorldID            string       `json:"world_id"`              // of a fork: its own
	Records            uint64       `json:"records"`               // the number of the last one
	From               journal.Seq  `json:"from,omitempty"`        // the first record, where it is not 1
	ExecutionHash      journal.Hash `json:"execution_hash"`        // zero where a payload that it is of is gone, or From is set
	EventChainRootHash journal.Hash `json:"event_chain_root_hash"` // zero where a record is no record any more
	StateRoot          journal.Hash `json:"state_root,omitzero"`   // zero, and left out, where the replay does not reach the last record
	Ledger             LedgerProof  `json:"tool_invocation_ledger_proof"`
	Replay             ReplayProof  `json:"replay_proof_result"`
	Receipts           Receipts     `json:"receipts"`
	Snapshots          Snapshots    `json:"snapshots"`
	Governance         Governance   `json:"governance"`
	Redacted           uint64       `json:"redacted"`           // payloads that were destroyed, as the journal says: no fault
	Withheld           uint64       `json:"withheld,omitempty"` // payloads that were left out, as whoever made the journal says: no fault
	Checkpoints        Checkpoints  `json:"checkpoints"`
	Anchor             *AnchorProof `json:"anchor,omitempty"`
	Faults             []Fault      `json:"faults"`
}

// Checkpoints counts signed checkpoints by whether they are of this history. Good
// ones have its root at their size, the world's id, and the signature of a key that
// is known.
type Checkpoints struct {
	Checked uint64      `json:"checked"`
	Bad     uint64      `json:"bad"`
	Last    journal.Seq `json:"last"`    // the record that the last good one reaches; 0: there is none
	Trusted journal.Seq `json:"trusted"` // the same, of those that someone signed whom the caller believes
	Signers []string    `json:"signers"` // of the last good one, as checkpoint.FormatKey writes them

	Unverifiable uint64 `json:"unverifiable,omitempty"` // no key was known: only root and world were compared
}

// LedgerProof says whether every started attempt has at most one end (a receipt,
// or that it was given up), every end a start, and every start a decision of the
// gate. Of a part of a journal it says nothing, and is not OK.
type LedgerProof struct {
	OK                     bool          `json:"ok"`
	PendingIdempotencyKeys []receipt.Key `json:"pending_idempotency_keys"` // started, in flight or in doubt: not a fault
	DuplicateKeys          []receipt.Key `json:"duplicate_keys"`
	OrphanKeys             []receipt.Key `json:"orphan_keys"` // also: asked for again as what they are not

	Attempts     uint64 `json:"attempts"`      // started, of all intents together
	InDoubt      uint64 `json:"in_doubt"`      // intents that owe a decision
	Awaiting     uint64 `json:"awaiting"`      // intents that wait for a person to approve, answer or confirm them
	ConfirmedNot uint64 `json:"confirmed_not"` // results that were used though the outside shows something else
	NoVerifier   uint64 `json:"no_verifier"`   // receipts of kinds that nobody can confirm
}

// ReplayProof says whether the inputs give the journal, but for its gaps. A part of
// a journal is not replayed, which is no fault.
type ReplayProof struct {
	OK              bool              `json:"ok"`
	Error           string            `json:"error"` // "" where there is none
	FirstDivergence *world.Divergence `json:"first_divergence"`
	Gaps            []Gap             `json:"gaps"`
	Needs           []string          `json:"needs,omitempty"` // Go reducers that this program lacks, so that it was not replayed: no fault, and not OK
}

// Gap is a range of records that could not be recomputed, because an input was
// redacted or withheld: up to the next snapshot whose image is kept, or to the end.
type Gap struct {
	From journal.Seq `json:"from"`
	To   journal.Seq `json:"to"`
}

// Snapshots counts snapshots by whether the state root that their records name
// was computed again. Those in a gap are not among them.
type Snapshots struct {
	Checked uint64 `json:"checked"`
	Bad     uint64 `json:"bad"`
}

// Receipts counts receipts by what could be said of them.
type Receipts struct {
	Checked      uint64 `json:"checked"`
	Bad          uint64 `json:"bad"`
	Unverifiable uint64 `json:"unverifiable"` // without the keys
	Inherited    uint64 `json:"inherited"`    // made for a parent world: only their hashes were checked
}

// AnchorProof says whether what was acknowledged is in the journal.
type AnchorProof struct {
	OK bool        `json:"ok"`
	ID journal.Seq `json:"id"`
}

// Fault is a single finding.
type Fault struct {
	Place   string `json:"place"` // e.g. "record #12"
	Message string `json:"message"`
}

// maxFaults is how many faults a report lists; a journal that is none has as many as
// it has bytes.
const maxFaults = 10_000

// Verify checks all that can be checked. The error says that it could not be
// done, that a key is none (checkpoint.ErrBadKey), as a *world.BoundError that cfg.Bounds
// do not allow it, or as a *world.SpillError that what does not fit in memory could not be kept; what is wrong with the world is in the report. When ctx ends, so does
// Verify, with its cause.
func Verify(ctx context.Context, h journal.History, cfg Config) (*Report, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	cfg.Damage, cfg.Records = until(ctx, cfg.Damage), until(ctx, cfg.Records)
	aside := newAside(&cfg.Spilling)
	v := &verifier{
		ctx: ctx, stop: stop, h: timed{h, ctx}, whole: h, execution: journal.NewExecution(),
		intents: make(map[receipt.Key]*invocation), aside: aside, timers: newTimers(),
		missing: make(map[journal.Hash]bool), withheld: make(map[journal.Hash]bool),
		cfg: cfg, root: cfg.Begin.Root, feed: newFeed(cfg.Begin.Root), tree: new(checkpoint.Tree),
		report: &Report{
			Checkpoints: Checkpoints{Signers: []string{}},
			Faults:      []Fault{}, Replay: ReplayProof{Gaps: []Gap{}},
			Ledger: LedgerProof{PendingIdempotencyKeys: []receipt.Key{}, DuplicateKeys: []receipt.Key{}, OrphanKeys: []receipt.Key{}},
		},
	}
	for _, hash := range cfg.Withheld {
		v.withheld[hash] = true
	}
	if err := v.openHeads(); err != nil {
		return nil, err
	}
	defer v.heads.stop()
	below := v.lookForDamage()
	v.startPart()
	var replayed <-chan played
	if v.part() {
		close(v.feed.ended)
	} else {
		replayed = v.begun()
	}
	go v.feed.readHistory(v.h)
	v.scan()
	v.closeHeads()
	v.closePart()
	v.closeWorld()
	v.closeMissing()
	v.closeReceipts()
	v.closeLedger()
	v.spilled(v.aside.close())
	v.putFirst(<-below)
	v.closeRecords()
	if replayed == nil {
		v.report.Replay.Error = fmt.Sprintf("not checked: the journal begins with record #%d", cfg.Begin.First)
	} else {
		v.replay(<-replayed)
	}
	if ended := cmp.Or(v.beyond, context.Cause(ctx)); ended != nil {
		return nil, ended
	}
	v.closeNamed()
	r := v.report
	if v.omitted > 0 {
		r.Faults = append(r.Faults, Fault{Place: "journal", Message: fmt.Sprintf("%d more faults are not listed", v.omitted)})
	}
	r.OK = len(r.Faults) == 0 && len(r.Replay.Needs) == 0
	return r, nil
}

type verifier struct {
	ctx       context.Context
	stop      context.CancelCauseFunc // ends it: it cannot be done
	h         journal.History
	whole     journal.History // the same as it was given: it may be read piece by piece; see world.Spilling
	cfg       Config
	report    *Report
	root      journal.Hash // the chain root with the present record
	before    journal.Hash // the same before it
	broken    bool         // a link was not its root's
	lost      bool         // the chain cannot be computed any more
	tree      *checkpoint.Tree
	heads     heads
	feed      *feed
	execution *journal.Execution
	effects   map[string]manifest.Effect // of the manifest in force
	rules     inForce
	proposals []*proposal // in their order
	unread    journal.Seq // the last report that is gone, about nobody knows which proposal; 0: none

	now       journal.Seq                 // the record that is looked at
	cause     journal.Seq                 // of it
	intents   map[receipt.Key]*invocation // that are in memory
	known     uint64                      // how many intents there are
	aside     aside
	owed      *receipt.Key // an intent that the next record has to end
	timers    timers
	turnings  []turning
	fork      journal.Seq // the last world.forked; 0: none
	gone      uint64      // payloads that are gone and may have been about any intent
	unnamed   uint64      // decisions whose payloads are gone, about nobody knows which intents
	unsigned  string      // place of the first receipt of the present world that the keys are not for
	missing   map[journal.Hash]bool
	withheld  map[journal.Hash]bool // what the caller says of it
	missed    []miss                // in the order of the journal
	misnamed  []misnamed            // chain roots that records name and that are others, in the order of the journal
	omitted   uint64                // faults that are not in the report
	beyond    error                 // a *world.BoundError or *world.SpillError: it could not be done
	unwritten bool                  // the execution hash lacks what a payload said that is gone
}

// damage is what is wrong below the journal: so many of the faults as a report lists, and
// how many more.
type damage struct {
	found []error
	more  uint64
}

// lookForDamage looks below the journal while that is read. What comes of it is received when it has
// been: it is reported before the faults of the journal.
func (v *verifier) lookForDamage() <-chan damage {
	done := make(chan damage, 1)
	go func() {
		var d damage
		if v.cfg.Damage != nil {
			for err := range v.cfg.Damage {
				if len(d.found) < maxFaults {
					d.found = append(d.found, err)
				} else {
					d.more++
				}
			}
		}
		done <- d
	}()
	return done
}

// putFirst reports damage below the journal before what has been found so far.
func (v *verifier) putFirst(d damage) {
	after := v.report.Faults
	v.report.Faults = []Fault{}
	v.omitted += d.more
	for _, err := range d.found {
		v.fault("store", "%v", err)
	}
	for _, f := range after {
		v.fault(f.Place, "%s", f.Message)
	}
}

func (v *verifier) fault(place, format string, args ...any) {
	if len(v.report.Faults) >= maxFaults {
		v.omitted++
		return
	}
	v.report.Faults = append(v.report.Faults, Fault{Place: place, Message: fmt.Sprintf(format, args...)})
}
