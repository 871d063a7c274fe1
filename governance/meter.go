package governance

import (
	"math/bits"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// StepLimit bounds one evaluation of one expression: about so many parts of it may be
// evaluated, or sixteen times as many bytes be looked at. In the worst case that was
// found a step takes 60 ns, and all of them half of the 50 ms that an evaluation may.
const StepLimit = 400_000

// bytesPerStep is how many bytes of a value one step looks at, copies or compares.
const bytesPerStep = 16

// meter counts the steps of one evaluation. Who does work spends before it does it.
type meter struct {
	left  uint64
	spent bool // all of it, and there was more to do
}

// spend takes n steps and reports whether there were as many.
func (m *meter) spend(n uint64) bool {
	if n > m.left {
		m.left, m.spent = 0, true
		return false
	}
	m.left -= n
	return !m.spent
}

// spendBytes takes what it costs to look at n bytes.
func (m *meter) spendBytes(n int) bool { return m.spend(uint64(n) / bytesPerStep) }

// spendSort takes what it costs to sort n items.
func (m *meter) spendSort(n int) bool { return m.spend(uint64(n) * uint64(bits.Len(uint(n)))) }

// overspent is the value of what was not evaluated any more. No operator makes
// anything else of it: the meter knows.
func overspent() ref.Val { return types.NewErr("it takes more than %d steps", StepLimit) }

func noOverload() ref.Val { return types.NewErr("no such overload") }
