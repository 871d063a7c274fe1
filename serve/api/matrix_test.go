package api

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/security.md")

const (
	matrixFile  = "../../docs/security.md"
	matrixBegin = "<!-- matrix: go test ./serve/api -run Matrix -update -->\n"
	matrixEnd   = "<!-- end of the matrix -->\n"
)

// causes says what each route that changes something can cause, by its path below that of a world.
func causes() map[string]string {
	const rules, intents = "rules: nothing before it is applied", "what the rules in force allow of it"
	return map[string]string{
		"POST /api/sessions": "a session, with a code that worldctl ui has made", "DELETE /api/sessions": "the end of the session that is shown",
		"/events": "whatever cells do about an event, within the rules in force: effects, too",

		"/cell/resume": "a parked cell steps again", "/cell/skip": "a parked cell leaves an event out",
		"/intents/approve": "parked effects are performed: " + intents, "/intents/deny": "parked effects are not performed",
		"/intents/stop": "effects that are not begun are not performed", "/intents/{key}/stop": "an effect that is not begun is not performed",
		"/intents/retry": "failed effects, and those in doubt, are performed again", "/intents/resolve": "what cells believe of effects in doubt",
		"/intents/{key}/approve": "a parked effect is performed: " + intents, "/intents/{key}/deny": "a parked effect is not performed",
		"/intents/{key}/confirm": "a verifier is asked", "/intents/{key}/edit": "an effect with other params is performed: " + intents,
		"/intents/{key}/retry": "a failed effect, or one in doubt, is performed again", "/intents/{key}/resolve": "what a cell believes of an effect in doubt",
		"/intents/{key}/answer":  "what a cell believes that a person said",
		"/proposals/{n}/approve": "rules can be applied: with a key that they name; without approvers with any",
		"/proposals/{n}/reject":  "rules are not applied",
		"/effects/acquire":       "an attempt is this worker's, with its params", "/effects/renew": "an attempt stays this worker's",
		"/effects/lose": "an attempt of this worker is in doubt", "/effects/commit": "what cells believe of this worker's attempts",
		"/receipts": "a receipt that the world has signed is taken", "/step": "the world goes on: effects, too",
		"/snapshots": "a snapshot", "/snapshots/pin": "a snapshot stays", "/snapshots/prune": "a snapshot goes",
		"/rollback": "the world goes on from an earlier moment, under its rules: effects, too", "/checkpoints": "a signature over all records",
		"/fork": "a directory below that of serve --forks, which is not run", "/what-if": "work; nothing is performed",
		"/proposals": rules, "/proposals/{n}/shadow": "work; nothing is performed", "/proposals/{n}/withdraw": "rules are not applied",
		"/proposals/{n}/apply": "approved rules are in force: any effect that the server's trust covers, and no other",
	}
}

// matrix is a line for each route and scope, as the table of routes has them.
func matrix(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| scope | route | can cause |\n|---|---|---|\n")
	known, used := causes(), map[string]bool{}
	reads := map[Scope]int{}
	var rows []string
	for _, rt := range routes() {
		scopes := []Scope{rt.scope}
		if rt.or != "" {
			scopes = append(scopes, rt.or)
		}
		key := strings.TrimPrefix(rt.path, ofWorld)
		if rt.path == "/api/sessions" {
			key = rt.method + " " + rt.path
		}
		cause, ok := known[key]
		if rt.method == http.MethodGet {
			for _, s := range scopes {
				reads[s]++
			}
			continue
		}
		require.True(t, ok, "say in causes what %s %s can cause", rt.method, rt.path)
		used[key] = true
		for _, s := range scopes {
			rows = append(rows, fmt.Sprintf("| %s | `%s %s` | %s |\n", scopeName(s), rt.method, rt.path, cause))
		}
	}
	require.Len(t, used, len(known), "causes says something of a route that there is not")
	for _, s := range append([]Scope{scopeOpen, scopeAny}, Scopes()...) {
		if reads[s] > 0 {
			fmt.Fprintf(&b, "| %s | %d × `GET` | nothing: it looks |\n", scopeName(s), reads[s])
		}
		for _, row := range rows {
			if strings.HasPrefix(row, "| "+scopeName(s)+" |") {
				b.WriteString(row)
			}
		}
	}
	return b.String()
}

func scopeName(s Scope) string {
	switch s {
	case scopeOpen:
		return "none"
	case scopeAny:
		return "any"
	}
	return "`" + string(s) + "`"
}

// TestMatrixOfScopesIsInTheDocument: docs/security.md shows what each scope of a token can cause by each route.
func TestMatrixOfScopesIsInTheDocument(t *testing.T) {
	text, err := os.ReadFile(matrixFile)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), matrixBegin)
	require.True(t, ok)
	shown, after, ok := strings.Cut(rest, matrixEnd)
	require.True(t, ok)
	want := "\n" + matrix(t) + "\n"
	if *update {
		require.NoError(t, os.WriteFile(matrixFile, []byte(before+matrixBegin+want+matrixEnd+after), 0o644)) //nolint:gosec // a document
		return
	}
	require.Equal(t, want, shown, "go test ./serve/api -run Matrix -update")
}
