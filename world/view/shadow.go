package view

import (
	"errors"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
)

// Shadow is a report with what follows from it.
type Shadow struct {
	Proposal *string      `json:"proposal"` // null: nobody has proposed it
	Record   *journal.Seq `json:"record"`   // that holds the report; null: none does
	*governance.Report
	Diverged   bool            `json:"diverged"`
	CostDelta  CostDelta       `json:"cost_delta"`
	ReportHash governance.Hash `json:"report_hash"`
	Same       bool            `json:"no_op"`
}

// CostDelta is what a candidate would have cost more.
type CostDelta struct {
	Calls  int64 `json:"calls"`
	Tokens int64 `json:"tokens"`
	Bytes  int64 `json:"bytes"`
	Micros int64 `json:"micros"`
}

// ShadowFrom returns how a shadow begins with the moment that a person named: with that
// snapshot, or with the last before another moment, or the first record where there is
// none. Without a name it begins with the last that so many records follow; see
// world.ShadowConfig. The error is a *MomentError; a name that reads as no moment the shadow refuses.
func (j Journal) ShadowFrom(name string, last journal.Seq) (cfg world.ShadowConfig, err error) {
	if name == "" {
		return world.ShadowConfig{Last: last}, nil
	}
	id, err := j.At(name)
	var none *MomentError
	if errors.As(err, &none) && none.Rule == "" {
		return world.ShadowConfig{From: name}, nil
	}
	if s, err := j.Snapshot(name); err == nil && journal.Seq(s.Record) == id {
		cfg.From = s.Name
	} else {
		cfg.Last = max(1, j.End()-id)
	}
	return cfg, err
}

// ShadowOf returns a report as it is shown, about a proposal and with the record that
// holds it; 0 and 0: nobody has proposed it. Its lists are those of its bytes, which tell empty ones from none as little as
// JSON should.
func ShadowOf(proposal uint64, record journal.Seq, r *governance.Report) (*Shadow, error) {
	encoded, err := r.Encode()
	if err != nil {
		return nil, err
	}
	a := new(Shadow)
	if a.Report, err = governance.DecodeReport(encoded); err != nil {
		return nil, err
	}
	if a.ReportHash, err = a.Hash(); err != nil {
		return nil, err
	}
	if proposal != 0 {
		name := ProposalName(proposal)
		a.Proposal, a.Record = &name, &record
	}
	was, is := a.CostWas, a.CostIs
	a.CostDelta = CostDelta{
		Calls: int64(is.Calls - was.Calls), Tokens: int64(is.Tokens - was.Tokens),
		Bytes: int64(is.Bytes - was.Bytes), Micros: int64(is.Micros - was.Micros),
	}
	a.Diverged, a.Same = a.Divergence != nil, a.NoOp()
	return a, nil
}
