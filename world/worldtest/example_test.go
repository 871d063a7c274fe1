package worldtest_test

import (
	"fmt"
	"testing"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// A test of a world scripts what the outside answers, sends events and looks
// at cells. Here the bank refuses whoever orders for the second time.
func Example() {
	t := new(testing.T) // a test function gets its own
	w := worldtest.Load(t, "testdata/shop", worldtest.Options{
		Answer: func(p receipt.Permit) worldtest.Reply {
			if p.Occurrence > 0 {
				return worldtest.Fail("no money left")
			}
			return worldtest.OK("charged")
		},
	})
	w.Submit("order.placed", map[string]any{"customer": "ada", "cents": 1200})
	w.Submit("order.placed", map[string]any{"customer": "ada", "cents": 1200})
	w.Submit("order.placed", map[string]any{"customer": "ben", "cents": 20000}) // more than the policy allows
	w.Run()
	w.RequireReplay()
	fmt.Println(w.State("customer/ada"))
	fmt.Println(w.State("customer/ben"))
	// Output:
	// {"paid":1,"refused":1}
	// {"paid":0,"refused":1}
}
