package governance

import "testing"

// BenchmarkDecide judges one effect by three rules, as on the path of every
// intent.
func BenchmarkDecide(b *testing.B) {
	for _, c := range []struct {
		name  string
		rules [3]string
	}{
		{"kind", [3]string{`intent.kind.startsWith("tool.")`, `intent.kind == "model.chat"`, `cell.reducer == "agent"`}},
		{"params", [3]string{`intent.kind.startsWith("tool.")`, `intent.params.amount < 500`, `intent.params.customer == "mia"`}},
	} {
		b.Run(c.name, func(b *testing.B) {
			g := gateOf(b, allow("a", c.rules[0]), allow("b", c.rules[1]), allow("c", c.rules[2]))
			req := request(b, "tool.lookup", `{"amount": 12, "customer": "mia", "items": [1, 2, 3], "note": "as agreed"}`)
			b.ReportAllocs()
			for b.Loop() {
				if d := g.Decide(req); d.Verdict != Allow {
					b.Fatal(d.Reason)
				}
			}
		})
	}
}
