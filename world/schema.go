package world

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/schema"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
)

// checkedSchema is a JSON Schema that data must satisfy.
type checkedSchema struct {
	compiled *schema.Schema
	guard    *guard
}

// compileSchema compiles a schema's source; file is for messages.
func compileSchema(file string, source []byte, g *guard) (*checkedSchema, error) {
	if g.schema(len(source), "schema "+file); g.ended() != nil {
		return nil, g.ended()
	}
	s, err := schema.Compile(source)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", file, err)
	}
	return &checkedSchema{compiled: s, guard: g}, nil
}

// check reports the first field of data that breaks the schema, and the rule.
func (s *checkedSchema) check(data journal.Data) (field, rule string, ok bool) {
	if s.guard.item(len(data), "data", "for a schema", 0); s.guard.ended() != nil {
		return "data", "not checked", false
	}
	text, err := canon.ToJSON(data)
	if err != nil {
		return "data", err.Error(), false
	}
	most := schema.Steps(len(data))
	held := s.guard != nil && s.guard.bounds.Gas < most
	if held {
		most = s.guard.bounds.Gas
	}
	fault, err := s.compiled.Check(text, most, s.guard.ended)
	switch {
	case err != nil:
		return "data", err.Error(), false
	case fault == nil:
		return "", "", true
	case fault.Exhausted && held:
		s.guard.exceed(BoundError{Name: "gas", What: "a check of data against a schema"})
	}
	return strings.Join(append([]string{"data"}, fault.Place...), "."), fault.Rule, false
}

// compileParams compiles the schema of an effect's params. It returns its source, too.
func (r *rules) compileParams(effect string, def *manifest.Effect, blobs journal.Blobs) (*checkedSchema, []byte, error) {
	if def.Params.IsZero() {
		return nil, nil, nil
	}
	source, err := blobs.Blob(def.Params)
	if err != nil {
		return nil, nil, fmt.Errorf("world: effect %s: schema %s: %w", effect, def.Params, err)
	}
	s, err := compileSchema(cmp.Or(def.ParamsFile, "of "+effect), source, r.guard)
	if err != nil {
		return nil, nil, fmt.Errorf("world: effect %s: %w", effect, err)
	}
	return s, source, nil
}
