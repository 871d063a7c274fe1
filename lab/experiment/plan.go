package experiment

import (
	"encoding/json"
	"math/big"
	"path/filepath"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Plan describes the runs of an experiment and the columns of their results. It is the content
// of experiment.json.
type Plan struct {
	Format     string     `json:"format"`
	Experiment string     `json:"experiment"`
	Hash       canon.Hash `json:"hash"`     // of all that decides about results: equal experiments have equal hashes
	File       string     `json:"file"`     // as it was given to Load; absolute in experiment.json
	Variants   []string   `json:"variants"` // at least one, in the order of the file
	Params     []Column   `json:"params"`   // the varied ones, REDUCER.NAME, in the order of the file
	Points     [][]any    `json:"points"`   // their combinations: at least one, without values where none is varied
	Seeds      []uint64   `json:"seeds"`    // at least one
	Columns    []Column   `json:"measures"`
	Begin      string     `json:"begin"`   // what runs begin with, in words
	Mode       string     `json:"effects"` // what answers effects
	Sum        canon.Hash `json:"sum"`     // in experiment.json: of all the rest but File, which may move
}

const planFormat = "worldkernel.experiment.v1"

// sum returns what Sum should be.
func (p Plan) sum() canon.Hash {
	p.File, p.Sum = "", canon.Hash{}
	text, err := json.Marshal(&p)
	if err != nil {
		return canon.Hash{}
	}
	return canon.Sum(text)
}

// RunID numbers a run of an experiment, from 1: runs of one seed follow each other, and
// among them those of one variant.
type RunID uint64

// Planned is one run of the plan.
type Planned struct {
	ID      RunID
	Variant int // of Plan.Variants
	Point   int // of Plan.Points
	Seed    uint64
}

// Runs returns how many runs the experiment has.
func (p *Plan) Runs() uint64 {
	return uint64(len(p.Seeds)) * uint64(len(p.Variants)) * uint64(len(p.Points))
}

// Planned returns a run of the plan, 1 ≤ id ≤ Runs().
func (p *Plan) Planned(id RunID) Planned {
	i := uint64(id) - 1
	points, variants := uint64(len(p.Points)), uint64(len(p.Variants))
	return Planned{ID: id, Point: int(i % points), Variant: int(i / points % variants), Seed: p.Seeds[i/points/variants]}
}

// UnmarshalJSON reads what a Plan is written as: the values of points are those of Params.
func (p *Plan) UnmarshalJSON(data []byte) error {
	type plain Plan // without this method
	var x struct {
		*plain
		Points [][]json.RawMessage `json:"points"`
	}
	x.plain = (*plain)(p)
	if err := json.Unmarshal(data, &x); err != nil {
		return err
	}
	p.Points = nil
	for _, raw := range x.Points {
		values, err := decodeValues(raw, p.Params)
		if err != nil {
			return err
		}
		p.Points = append(p.Points, values)
	}
	return nil
}

// column returns the column of a varied param.
func (a *axis) column() Column {
	types := make(map[Type]bool)
	for _, v := range append(a.values, a.from) {
		switch v := v.(type) {
		case *big.Int:
			if v.IsInt64() {
				types[Int] = true
			} else {
				types[Text] = true
			}
		case float64:
			types[Float] = true
		case bool:
			types[Bool] = true
		case string:
			types[Text] = true
		}
	}
	c := Column{Name: a.name, Type: Text, Doc: "the param of that reducer, as the experiment sets it"}
	switch {
	case len(types) == 1:
		for t := range types {
			c.Type = t
		}
	case len(types) == 2 && types[Int] && types[Float]:
		c.Type = Float
	}
	return c
}

// cell returns the value of a param as a column has it.
func cell(v any, of Type) any {
	switch v := v.(type) {
	case *big.Int:
		if f, _ := asFloat(v); of == Float {
			return f
		}
		if of == Int {
			return v.Int64()
		}
		return v.String()
	case float64:
		if of == Float {
			return v
		}
		text, _ := json.Marshal(v) // finite
		return string(text)
	case bool:
		if of == Bool {
			return v
		}
		text, _ := json.Marshal(v)
		return string(text)
	}
	return v
}

// seal fills in what the plan says of all that was read, and its hash.
func (l *loader) seal() error {
	s := l.spec
	s.Format = planFormat
	for _, v := range s.Rules {
		s.Variants = append(s.Variants, v.Name)
	}
	for _, p := range s.Values {
		row := make([]any, len(s.Params))
		for i := range row {
			row[i] = cell(p.Values[i], s.Params[i].Type)
		}
		s.Points = append(s.Points, row)
	}
	s.Columns = s.measures.columns()
	s.Begin, s.Mode = "a new world", s.Effects.Mode
	if s.from != nil {
		s.Begin = "the world " + s.from.dir + " at " + s.from.name
	}
	document, _ := l.Value(l.Root()).(map[string]any)
	for _, name := range []string{"experiment", "limits", "effects"} { // which change no result
		delete(document, name)
	}
	rules := make([]any, len(s.Rules))
	for i := range s.Rules {
		hash, err := s.Rules[i].loaded.manifest.Hash()
		if err != nil {
			return err
		}
		rules[i] = hash
	}
	mode := s.Effects.Mode
	if mode == EffectsRecorded { // whose answers are those of live ones
		mode = EffectsLive
	}
	sealed := map[string]any{
		"format": planFormat, "document": document, "rules": rules, "inputs": s.inputs.says, "effects": mode,
	}
	if len(s.measures.code) > 0 {
		sealed["programs"] = s.measures.code
	}
	if l.bounded && s.Limits.Ticks != DefaultTicks { // the hash is that of before for who leaves it so
		sealed["ticks"] = s.Limits.Ticks
	}
	if s.from != nil {
		sealed["from"] = s.from.at.Root
	}
	encoded, err := canon.Marshal(sealed)
	s.Hash = canon.Sum(encoded)
	return err
}

// absolute returns the plan as experiment.json has it: with the path of its file as others
// find it, and its sum.
func (p Plan) absolute() (Plan, error) {
	var err error
	p.File, err = filepath.Abs(p.File)
	p.Sum = p.sum()
	return p, err
}
