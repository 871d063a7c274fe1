package api

import (
	"cmp"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/verify"
)

// Verification is what a verification of a world found: everything that was found
// counts against one of the two proofs.
type Verification struct {
	ExecutionHash      journal.Hash `json:"execution_hash"`
	EventChainRootHash journal.Hash `json:"event_chain_root_hash"`
	Ledger             LedgerProof  `json:"tool_invocation_ledger_proof"`
	Replay             ReplayProof  `json:"replay_proof_result"`
}

// OK reports whether both proofs hold.
func (v *Verification) OK() bool { return v.Ledger.OK && v.Replay.OK }

// LedgerProof says whether every effect happened at most once, and every receipt is
// what was signed.
type LedgerProof struct {
	verify.LedgerProof
	Receipts verify.Receipts `json:"receipts"`
}

// ReplayProof says whether the inputs give the journal, and all else that was
// checked besides the ledger.
type ReplayProof struct {
	OK              bool                `json:"ok"`
	Error           string              `json:"error"` // the first fault; empty: there is none
	Needs           []string            `json:"needs"` // see verify.ReplayProof
	FirstDivergence *world.Divergence   `json:"first_divergence"`
	Gaps            []verify.Gap        `json:"gaps"`
	Records         uint64              `json:"records"`
	StateRoot       journal.Hash        `json:"state_root"`
	Snapshots       verify.Snapshots    `json:"snapshots"`
	Checkpoints     CheckpointCounts    `json:"checkpoints"`
	Governance      verify.Governance   `json:"governance"`
	Redacted        uint64              `json:"redacted"`
	Anchor          *verify.AnchorProof `json:"anchor"`
	Faults          []verify.Fault      `json:"faults"` // all that there are, the ledger's too
}

// CheckpointCounts counts signed checkpoints by whether they are of this history.
type CheckpointCounts struct {
	Checked uint64      `json:"checked"`
	Bad     uint64      `json:"bad"`
	Last    journal.Seq `json:"last"` // the record that the last good one reaches; 0: there is none
}

// verifiedAtOnce is how many records are verified in one turn.
const verifiedAtOnce = 256

// showVerification verifies the world, which goes on meanwhile. One verification at
// a time is enough for a world.
func showVerification(c *call) error {
	done, err := c.alone()
	if err != nil {
		return err
	}
	defer done()
	stop := timed(c.world.counted.replays)
	r, err := c.world.Local.Verify(c.Context(), local.Verification{Progress: func(done, _ uint64) {
		if done%verifiedAtOnce == 1 {
			_ = c.awaitTurn(c.Context()) // whose end ends the verification
		}
	}})
	if err != nil {
		return err
	}
	stop()
	for i := range r.Faults {
		if r.Faults[i].Place == storeFault {
			r.Faults[i].Message = withoutPaths(r.Faults[i].Message)
		}
	}
	cut := r.EventChainRootHash.IsZero() || r.Anchor != nil && uint64(r.Anchor.ID) > r.Records
	if cut && len(r.Faults) > 0 {
		return failed(http.StatusServiceUnavailable, "unreadable", "the journal cannot be read: "+placed(r.Faults[0]))
	}
	return c.ok(verificationOf(r))
}

// alone waits until nobody else has the world verified, or asks what would be otherwise in
// it.
func (c *call) alone() (done func(), err error) {
	select {
	case c.world.verifying <- struct{}{}:
		return func() { <-c.world.verifying }, nil
	case <-c.Context().Done():
		return nil, busy("verifying", "the world is being verified for others")
	}
}

// storeFault is the place of what is damaged below the journal: the text may name
// files of the machine.
const storeFault = "store"

// withoutPaths leaves out of a text the absolute paths in it, each up to the colon,
// the quote or the bracket that ends it: a path may hold spaces.
func withoutPaths(text string) string {
	var out []string
	inside := false
	for _, w := range strings.Fields(text) {
		if bare := strings.TrimLeft(w, `"'(`); !inside && filepath.IsAbs(bare) {
			inside = true
			out = append(out, "(a file)")
		}
		if !inside {
			out = append(out, w)
		}
		inside = inside && !strings.ContainsAny(w[len(w)-1:], `:"')`)
	}
	return strings.Join(out, " ")
}

func placed(f verify.Fault) string { return f.Place + ": " + f.Message }

func verificationOf(r *verify.Report) Verification {
	v := Verification{
		ExecutionHash: r.ExecutionHash, EventChainRootHash: r.EventChainRootHash,
		Ledger: LedgerProof{r.Ledger, r.Receipts},
		Replay: ReplayProof{
			Error: r.Replay.Error, Needs: append([]string{}, r.Replay.Needs...),
			FirstDivergence: r.Replay.FirstDivergence, Gaps: r.Replay.Gaps, Records: r.Records, StateRoot: r.StateRoot,
			Snapshots:   r.Snapshots,
			Checkpoints: CheckpointCounts{Checked: r.Checkpoints.Checked, Bad: r.Checkpoints.Bad, Last: r.Checkpoints.Last},
			Governance:  r.Governance, Redacted: r.Redacted, Anchor: r.Anchor, Faults: r.Faults,
		},
	}
	v.Ledger.OK = r.Ledger.OK && r.Receipts.Bad == 0
	// A fault that the counts do not show, such as a broken chain, is one of the
	// history: only where the ledger is at fault may it be all that there is.
	v.Replay.OK = r.Replay.OK && r.Snapshots.Bad == 0 && r.Governance.Bad == 0 && r.Checkpoints.Bad == 0 &&
		(r.Anchor == nil || r.Anchor.OK) && (r.OK || !v.Ledger.OK)
	if !v.Replay.OK && len(r.Faults) > 0 {
		v.Replay.Error = cmp.Or(v.Replay.Error, placed(r.Faults[0]))
	}
	return v
}
