package local

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/source"
)

// Load reads a world file with all that it names, as Create would. The error is
// that of Validate.
func Load(file string, opts Options) (*source.Loaded, error) { return load(file, opts) }

// Unanswered returns the permits of the effects in flight that no receipt of
// another world answers, in their order.
func (lw *World) Unanswered(other *World) ([]receipt.Permit, error) {
	lw.mu.Lock()
	asked := lw.w.InFlight()
	lw.mu.Unlock()
	for answer, err := range other.recorded() {
		if err != nil {
			return nil, fmt.Errorf("recorded effects: %w", err)
		}
		asked = slices.DeleteFunc(asked, func(p receipt.Permit) bool {
			return p.Occurrence == answer.Occurrence && p.Cell == answer.Cell && p.Kind == answer.Kind &&
				bytes.Equal(p.Params, answer.Params)
		})
	}
	return asked, nil
}
