package local_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

const shopManifest = `world: shop
version: 1
reducers:
  till: {engine: starlark, source: till.star, grants: [bank]}
events:
  refund.asked:
effects:
  bank.pay: {adapter: stub, config: {script: bank.star}}
caps:
  bank: {type: any, params: {kinds: ["bank.*"]}}
policies:
  - {name: refunds are paid, when: 'intent.kind == "bank.pay"', decide: allow}
routing:
  - {event: refund.asked, reducer: till, key: event.data.who}
`

const shopTill = `def reduce(ctx, state, event):
    if event.name == "refund.asked":
        ctx.effect("bank.pay", {"amount": event.data["amount"]})
        return "asked"
    return event.data["status"]
`

const shopBank = `def answer(kind, params, n):
    return "paid %d" % params["amount"]
`

// What a world runs changes in four steps. Shadow runs the candidate on what
// really happened, and that is what an approval signs.
func ExampleWorld_Propose() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "shop-")
	check(err)
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	for name, text := range map[string]string{"world.yaml": shopManifest, "till.star": shopTill, "bank.star": shopBank} {
		check(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	check(local.Create(dir, local.CreateOptions{}, local.Options{}))
	w, err := local.Open(dir, local.Options{})
	check(err)
	for _, refund := range []map[string]any{{"who": "ada", "amount": 20}, {"who": "eve", "amount": 2000}} {
		_, err = w.Submit(ctx, "refund.asked", refund)
		check(err)
	}
	check(w.Run(ctx))

	var next manifest.Manifest
	w.View(func(now *world.Moment) { next = *now.Manifest() })
	next.Version++
	next.Policies = append(slices.Clone(next.Policies), manifest.Policy{
		Name: "none above 1000", When: `intent.kind == "bank.pay" && intent.params.amount > 1000`, Decide: manifest.DecideDeny,
	})
	_, n, err := w.Propose(ctx, world.Proposal{Candidate: &next, Base: w.Status().Manifest, Actor: "ann"})
	check(err)

	var report *governance.Report
	check(w.Update(func(w *world.World) error {
		_, report, err = w.Shadow(ctx, n, world.ShadowConfig{}, "ann")
		return err
	}))
	fmt.Printf("p%d, shadowed in %d events:\n", n, report.Events)
	for _, d := range report.Decisions {
		fmt.Printf("%s %s %s: %s, not %s, by %s\n", d.Cell, d.Kind, d.Params, d.Is, d.Was, d.Rules[0])
	}
	for _, c := range report.Cells {
		fmt.Printf("%s is %s, not %s\n", c.Cell, c.State[0].Is, c.State[0].Was)
	}
	_, _, err = w.Apply(ctx, n, "ann")
	fmt.Println("without approvals:", errors.Is(err, governance.ErrNotApproved))

	var terms manifest.Terms // what is signed: the change, and this report
	w.View(func(now *world.Moment) {
		all, inForce := now.Proposals()
		terms = all[n-1].Terms(inForce.World)
	})
	_, key, err := ed25519.GenerateKey(nil)
	check(err)
	check(w.Update(func(w *world.World) error {
		_, err := w.Approve(ctx, n, terms, manifest.Sign(key, terms), "ben", "as it should be")
		return err
	}))
	record, _, err := w.Apply(ctx, n, "ann")
	check(err)
	fmt.Println("in force:", record == w.Head().ID && w.Status().Manifest == terms.Candidate)
	check(w.Close())
	// Output:
	// p1, shadowed in 4 events:
	// till/eve bank.pay {"amount":2000}: deny, not allow, by none above 1000
	// till/eve is "denied", not "ok"
	// without approvals: true
	// in force: true
}
