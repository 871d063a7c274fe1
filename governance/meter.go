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
	left   uint64
	number uint64 // of the evaluation, among those of its activation
}

// overspent is the panic that ends an evaluation which has no more steps; program.eval takes it.
type overspent struct{}

// spend takes n steps. Where there are not as many it ends the evaluation.
func (m *meter) spend(n uint64) {
	if n > m.left {
		panic(overspent{})
	}
	m.left -= n
}

// spendBytes takes what it costs to look at n bytes.
func (m *meter) spendBytes(n int) { m.spend(uint64(n) / bytesPerStep) }

// spendSort takes what it costs to sort n items.
func (m *meter) spendSort(n int) { m.spend(uint64(n) * uint64(bits.Len(uint(n)))) }

func noOverload() ref.Val { return types.NewErr("no such overload") }
