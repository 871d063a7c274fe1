package world

import (
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/worldkernel/worldkernel/journal"
)

// evaluations counts how often parts of a schema are evaluated under a guard: a small
// schema that refers to itself twice can be evaluated a million times on small data. The
// library knows no bound, and cannot be interrupted but by a panic.
type evaluations struct {
	guard *guard
	n     uint64
}

// endOfCheck is what ends a check that nobody waits for.
type endOfCheck struct{}

// addTo has the schemas that a compiler compiles counted.
func (e *evaluations) addTo(c *jsonschema.Compiler) {
	c.RegisterVocabulary(&jsonschema.Vocabulary{
		URL:     "worldkernel:evaluations",
		Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) { return e, nil },
	})
	c.AssertVocabs()
}

// Validate implements jsonschema.SchemaExt.
func (e *evaluations) Validate(*jsonschema.ValidatorContext, any) {
	if e.n++; e.n > e.guard.bounds.Gas {
		e.guard.exceed(BoundError{Name: "gas", What: "a check of data against a schema"})
	}
	if e.n%64 == 0 && e.guard.ended() != nil || e.n > e.guard.bounds.Gas {
		panic(endOfCheck{})
	}
}

// begin begins a check, unless nothing goes on.
func (e *evaluations) begin(data journal.Data) error {
	e.n = 0
	e.guard.item(len(data), "data", "for a schema", 0)
	return e.guard.ended()
}

// end catches what ended a check.
func (e *evaluations) end(field, rule *string) {
	switch r := recover().(type) {
	case nil:
	case endOfCheck:
		*field, *rule = "data", "not checked"
	default:
		panic(r)
	}
}
