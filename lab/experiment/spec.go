// Package experiment runs one world many times, with other rules, params and seeds, and keeps what was
// measured: an experiment is a document, a run is one world in memory, and each run can be made again
// bit for bit. It is a part of worldctl, and not an API.
//
// [Load] reads the document and makes the plan: all of it is checked before the first run.
// [Run] carries it out. docs/experiments.md is for who writes them.
//
// A directory of results holds
//
//	experiment.json  which experiment it is: its hash and where its file was
//	log              a JSON line for each run that has ended, in the order of their ends
//	effects          what the outside was asked and has answered: see effects.go
//	runs.*, ticks.*  a row for each run, and one for each run and tick, in the order of runs
//	dictionary.json  what their columns are
//
// A line of the log that a kill has cut off is left out, and its run is made again.
package experiment

import (
	"fmt"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/show/measure"
)

// Version is the version of experiment documents.
const Version = 1

// Spec is an experiment that was read and found to be valid.
type Spec struct {
	Plan
	Rules   []Variant // by Plan.Variants
	Values  []Point   // by Plan.Points
	Stop    Stop
	Effects Effects
	Limits  Limits

	measures measures
	inputs   inputs
	from     *moment // where runs begin; nil: with a new world
	base     rules   // of the world, or in force at that moment
	dir      string  // of the world
}

// Variant is one set of rules.
type Variant struct {
	Name   string
	loaded rules
	params map[string]any // that it sets, besides its points
	file   string         // the world file that it is of; empty: a patch made it
}

// rules are a manifest and what it names.
type rules struct {
	manifest *manifest.Manifest
	contents map[manifest.Hash][]byte
}

// content returns what a manifest names.
func (r *rules) content(h manifest.Hash) ([]byte, error) {
	if data, ok := r.contents[h]; ok {
		return data, nil
	}
	return nil, fmt.Errorf("content %s: %w", h, journal.ErrNotFound)
}

// Point is one combination of values of the varied params.
type Point struct {
	Values []any // bool, *big.Int, float64 or string, by Spec.Params
}

// Stop says when a run ends: at the first of what it says.
type Stop struct {
	Ticks uint64 // so many after its beginning; 0: as many as Limits allow
	Idle  bool   // where nothing can happen any more; else what is measured after that stays as it is
	When  string // a CEL condition over measures; empty: none
}

// Ways in which effects are answered.
const (
	EffectsStub     = "stub"     // by the adapters stub and recorded of the manifest; another effect ends its run
	EffectsRecorded = "recorded" // as stub, and the others by what live runs have recorded
	EffectsLive     = "live"     // as recorded, and what is not recorded is performed where Live has its kind, and recorded
)

// Effects names the source of answers to effects.
type Effects struct {
	Mode   string
	Budget Budget        // of all runs together
	Live   manifest.Live // the kinds that may be performed, with EffectsLive
	Record string        // the name of the file of answers beside the document; empty: it is in the directory of results
}

// Budget bounds what live effects of all runs use up together: without Calls nothing is
// performed; of tokens and micros 0 is no bound.
type Budget struct {
	Calls  uint64 `json:"calls"`
	Tokens uint64 `json:"tokens"`
	Micros uint64 `json:"micros"`
}

// Limits bound an experiment. Zero fields have the default.
type Limits struct {
	Runs  uint64 // of the whole experiment
	Ticks uint64 // of one run
	Rows  uint64 // of one run: ticks at which it is measured
	Bytes uint64 // of the log of results
	Input uint64 // bytes of the events of a run in a file of JSON lines, or of what one call of a program of inputs returns

	Measures measure.Limits // of one evaluation
}

// Defaults of Limits.
const (
	DefaultRuns  = 100_000
	DefaultTicks = 1_000_000
	DefaultRows  = 100_000
	DefaultBytes = 4 << 30
	DefaultInput = 64 << 20
)

// MaxRuns is what limits.runs may be raised to: seeds and points of all runs lie in memory.
const MaxRuns = 1_000_000
