package governance

import (
	"net/url"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// adapter is what is known of the effects of an adapter that is built in: one row for each,
// beside the parser of its targets. The zero value knows nothing.
type adapter struct {
	parse parser // works out what an effect is about to touch; nil: only a capability of type any holds it

	// reads reports whether a call changes nothing outside; nil: that is not known.
	reads func(config, params canon.Raw) bool
	// uses reports whether effects can use a unit; nil: they can use any.
	uses func(u Unit) bool
	// costs returns the most that a call can cost of a unit, and whether that is known; nil: the
	// effect's max_cost alone says it.
	costs func(config, params canon.Raw, u Unit) (uint64, bool)
	// fixed returns the bound that an effect exceeds by its config alone; nil: none.
	fixed func(config canon.Raw, p *manifest.CapParams) *CapError
	// needs works out what an effect needs of the machine, from its config alone.
	needs func(config canon.Raw) (Needs, error)
}

// adapterOf returns the row of an adapter, and of the capabilities of the same name.
func adapterOf(name string) adapter {
	switch name {
	case manifest.CapHTTP:
		return httpAdapter()
	case manifest.CapFile:
		return fileAdapter()
	case manifest.CapExec:
		return execAdapter()
	case manifest.CapLLM:
		return llmAdapter()
	case manifest.CapMCP:
		return mcpAdapter()
	case manifest.AdapterRelay:
		return relayAdapter()
	case manifest.AdapterOutside:
		return outsideAdapter()
	default:
		return adapter{}
	}
}

// butTokens reports whether a unit is another than tokens: what an effect reaches may cost money.
func butTokens(u Unit) bool { return u != UnitTokens }

// Needs are an effect's needs on the machine of its host: files, programs, addresses, secrets.
type Needs struct {
	To      *url.URL          // where it goes; nil: nowhere, or each call says
	Roaming bool              // each call says where it goes
	Program []string          // with its arguments; empty: none
	Open    bool              // params decide about more arguments
	Env     map[string]string // of the program
	Root    string            // of files; empty: none
}

// NeedsOf reads from the config of an effect what the effect needs. It returns no needs for an
// adapter that is not built in.
func NeedsOf(e *manifest.Effect) (Needs, error) {
	if needs := adapterOf(e.Adapter).needs; needs != nil {
		return needs(e.Config)
	}
	return Needs{}, nil
}

// Reads reports whether an effect only reads, so that nothing outside is other than
// before: as its class says or, without one, as the method of the http effect or the
// operation of the file effect does. What declares a compensation leaves something
// behind. Where it is not sure the answer is no.
func Reads(e *manifest.Effect, params canon.Raw) bool {
	if e.Compensate != nil || e.Class != "" {
		return e.Compensate == nil && e.Class == manifest.ClassRead
	}
	reads := adapterOf(e.Adapter).reads
	return reads != nil && reads(e.Config, params)
}
