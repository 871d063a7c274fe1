package view

import (
	"context"
	"errors"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
)

// Shadow is a report with its consequences.
type Shadow struct {
	Proposal *string      `json:"proposal"` // null: nobody has proposed it
	Record   *journal.Seq `json:"record"`   // that holds the report; null: none does
	*governance.Report
	Diverged   bool            `json:"diverged"`
	CostDelta  CostDelta       `json:"cost_delta"`
	ReportHash governance.Hash `json:"report_hash"`
	Migration  *Migration      `json:"migration"`
	Same       bool            `json:"no_op"` // nothing would have been otherwise, and an apply migrates nothing
}

// Migration is what an apply would make now of the states of cells, and of the intents that
// are not begun, which no report about what was can tell.
type Migration struct {
	Cells uint64           `json:"cells"` // whose states new code takes over
	First []world.Takeover `json:"first"` // of them, by name; at most governance.MaxListed
	Error string           `json:"error"` // why the apply would be refused
	Open  world.Opened     `json:"open"`
	Moved uint64           `json:"moved"` // timers, and events that are due later: the clock changes, and each keeps its tick
}

// Migration returns what an apply of a manifest would make of the states of cells now.
// contents are those that it names and the world may not hold.
func (j Journal) Migration(ctx context.Context, next *manifest.Manifest, contents map[manifest.Hash][]byte) *Migration {
	return migrationOf(j.Local.PreviewApply(ctx, next, contents))
}

func migrationOf(p *world.Preview, err error) *Migration {
	m := &Migration{First: []world.Takeover{}, Open: listed(world.Opened{})}
	if err != nil {
		m.Error = err.Error()
		return m
	}
	m.Cells, m.First, m.Open, m.Moved = p.Cells, append(m.First, p.First...), listed(p.Open), p.Moved
	return m
}

// MigrationOf is Migration for a manifest that the world holds. The error is
// journal.ErrNotFound where it has none of that hash.
func (j Journal) MigrationOf(ctx context.Context, candidate manifest.Hash) (*Migration, error) {
	next, err := j.Manifest(candidate)
	if err != nil {
		return nil, err
	}
	return j.Migration(ctx, next, nil), nil
}

// any reports whether an apply would do something to cells or intents, or be refused because
// of one.
func (m *Migration) any() bool {
	return m != nil && (m.Cells > 0 || m.Error != "" || m.stops() || m.Moved > 0)
}

// stops reports whether an apply would stop intents.
func (m *Migration) stops() bool { return m.Open.Denied+m.Open.Asked > 0 }

// CostDelta is what a candidate would have cost more.
type CostDelta struct {
	Calls  int64 `json:"calls"`
	Tokens int64 `json:"tokens"`
	Bytes  int64 `json:"bytes"`
	Micros int64 `json:"micros"`
}

// ShadowFrom returns how a shadow begins with the moment that a person named: with the last
// snapshot up to it, or the first record where there is none. Without a name it begins with
// the last that so many records follow; see world.ShadowConfig. The error is a *MomentError;
// a name that reads as no moment the shadow refuses.
func (j Journal) ShadowFrom(name string, last journal.Seq) (cfg world.ShadowConfig, err error) {
	if name == "" {
		return world.ShadowConfig{Last: last}, nil
	}
	id, err := j.At(name)
	if none, ok := errors.AsType[*MomentError](err); ok && none.Rule == "" {
		return world.ShadowConfig{From: name}, nil
	}
	return world.ShadowConfig{At: id}, err
}

// ShadowOf returns a report for display, with its proposal and record (0 and 0: not proposed), and
// the cells that an apply would migrate now. Its lists are those of its bytes, which tell empty
// ones from none as little as JSON should.
func ShadowOf(proposal uint64, record journal.Seq, r *governance.Report, m *Migration) (*Shadow, error) {
	encoded, err := r.Encode()
	if err != nil {
		return nil, err
	}
	a := &Shadow{Migration: m}
	if a.Report, err = governance.DecodeReport(encoded); err != nil {
		return nil, err
	}
	if a.ReportHash, err = a.Hash(); err != nil {
		return nil, err
	}
	if proposal != 0 {
		a.Proposal, a.Record = new(ProposalName(proposal)), &record
	}
	was, is := a.CostWas, a.CostIs
	a.CostDelta = CostDelta{
		Calls: int64(is.Calls - was.Calls), Tokens: int64(is.Tokens - was.Tokens),
		Bytes: int64(is.Bytes - was.Bytes), Micros: int64(is.Micros - was.Micros),
	}
	a.Diverged, a.Same = a.Divergence != nil, a.NoOp() && !m.any()
	return a, nil
}
