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

// causes says what each route that changes something can cause, by its path below that of a world. Routes that share
// a cause share a row.
func causes() map[string]string {
	const intents = ": what the rules in force allow of it"
	known := map[string]string{}
	for _, c := range [][]string{
		{"a session, with a code that worldctl ui has made", "POST /api/sessions"},
		{"the end of the session that is shown", "DELETE /api/sessions"},
		{"one effect that awaits approval is performed or not, with a link that has a signature of it" + intents, "POST /decide/{id}/{ticket}"},
		{"whatever cells do about an event, within the rules in force: effects, too", "/events"},
		{"a halted cell goes on, with the event that failed or without it", "/cell/resume", "/cell/skip"},
		{"effects that await approval are performed" + intents, "/intents/approve", "/intents/{key}/approve"},
		{
			"effects that await approval, or effects that are not begun, are not performed",
			"/intents/deny", "/intents/{key}/deny", "/intents/stop", "/intents/{key}/stop",
		},
		{"failed effects, and those in doubt, are performed again", "/intents/retry", "/intents/{key}/retry"},
		{"what cells believe of effects in doubt", "/intents/resolve", "/intents/{key}/resolve"},
		{"a verifier is asked", "/intents/{key}/confirm"},
		{"an effect with other params is performed" + intents, "/intents/{key}/edit"},
		{"what a cell believes that a person said", "/intents/{key}/answer"},
		{"rules can be applied: with a key that they name; without approvers with any", "/proposals/{n}/approve"},
		{"rules are not applied", "/proposals/{n}/reject", "/proposals/{n}/withdraw"},
		{"the world goes on: effects, too", "/step"},
		{"a snapshot is made, stays, or goes", "/snapshots", "/snapshots/pin", "/snapshots/prune"},
		{"the world goes on from an earlier moment, under its rules: effects, too", "/rollback"},
		{"a signature over all records", "/checkpoints"},
		{"a directory below that of serve --forks, which is not run", "/fork"},
		{"work; nothing is performed", "/what-if", "/proposals/{n}/shadow"},
		{"rules: nothing before it is applied", "/proposals"},
		{"approved rules are in force: any effect that the server's trust covers, and no other", "/proposals/{n}/apply"},
		{"an attempt is this worker's, with its params, or stays this worker's", "/effects/acquire", "/effects/renew"},
		{"an attempt of this worker is in doubt", "/effects/lose"},
		{"what cells believe of this worker's attempts", "/effects/commit"},
		{"a receipt that the world has signed is taken", "/receipts"},
	} {
		for _, path := range c[1:] {
			known[path] = c[0]
		}
	}
	return known
}

// matrix is a line for each cause and scope, with the routes as the table of routes has them.
func matrix(t *testing.T) string {
	known, used := causes(), map[string]bool{}
	reads := map[Scope]int{}
	caused, routesOf := map[Scope][]string{}, map[string][]string{}
	for _, rt := range routes() {
		key := strings.TrimPrefix(rt.path, ofWorld)
		if !rt.ofWorld() {
			key = rt.method + " " + rt.path
		}
		scopes := []Scope{rt.scope}
		if rt.or != "" {
			scopes = append(scopes, rt.or)
		}
		if rt.method != http.MethodGet {
			require.Contains(t, known, key, "say in causes what %s %s can cause", rt.method, rt.path)
			require.True(t, strings.Contains(key, " ") || rt.method == http.MethodPost, "the document says POST: %s %s", rt.method, rt.path)
			used[key] = true
		}
		for _, s := range scopes {
			if rt.method == http.MethodGet {
				reads[s]++
				continue
			}
			row := string(s) + " " + known[key]
			if routesOf[row] == nil {
				caused[s] = append(caused[s], known[key])
			}
			routesOf[row] = append(routesOf[row], "`"+key+"`")
		}
	}
	require.Len(t, used, len(known), "causes says something of a route that there is not")
	var b strings.Builder
	b.WriteString("| scope | route | can cause |\n|---|---|---|\n")
	scopes := append([]Scope{scopeOpen, scopeAny}, Scopes()...)
	var looks []string
	for _, s := range scopes {
		if reads[s] > 0 {
			looks = append(looks, fmt.Sprintf("%s %d", scopeName(s), reads[s]))
		}
	}
	fmt.Fprintf(&b, "| each | `GET`: %s | nothing: it looks |\n", strings.Join(looks, ", "))
	for _, s := range scopes {
		for _, cause := range caused[s] {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", scopeName(s), strings.Join(routesOf[string(s)+" "+cause], ", "), cause)
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
