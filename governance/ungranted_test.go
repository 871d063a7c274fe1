package governance_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/manifest"
)

// TestManyEffectsAndCapabilitiesAreNoProduct: looking for what nobody is granted takes memory in proportion
// to a manifest, and ends.
func TestManyEffectsAndCapabilitiesAreNoProduct(t *testing.T) {
	of := func(n int) *manifest.Manifest {
		m := &manifest.Manifest{Effects: map[string]manifest.Effect{}, Caps: map[string]manifest.Cap{}, Reducers: map[string]manifest.Reducer{}}
		var grants []string
		for i := range n {
			name := fmt.Sprintf("n%04d", i)
			m.Effects[name] = manifest.Effect{Adapter: "mine"}
			m.Caps[name] = manifest.Cap{Type: manifest.CapAny, Params: manifest.CapParams{Kinds: []string{name}}, Budget: manifest.Budget{Bytes: 1}}
			grants = append(grants, name)
		}
		m.Reducers["r"] = manifest.Reducer{Grants: grants, Budget: manifest.Budget{Tokens: 1}}
		return m
	}
	require.Empty(t, governance.Ungranted(of(1000)), "each is")
	require.Equal(t, 2000, len(governance.Unmeasured(of(1000))), "none says what it takes, of bytes and of tokens") //nolint:testifylint // Len prints all
	spent := func(n int) uint64 {
		m := of(n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		governance.Ungranted(m)
		governance.Unmeasured(m)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	spent(100) // what is made once
	require.Less(t, spent(1000), 8*spent(250))
}

// A capability that leaves out what the config of an effect fixes gives nobody a right to it,
// whatever the type; what params may still make fit is no gap.
func TestWhatConfigFixesHasToBeGranted(t *testing.T) {
	const (
		get  = `{"url": "https://api.example.com/v1/x", "method": "GET"}`
		some = `{"url": "https://api.example.com/v1"}`
		run  = `{"program": "./pay.sh", "args": ["-n", {"param": "x"}]}`
		file = `{"root": "data", "op": "write"}`
	)
	web := manifest.CapParams{Schemes: []string{"https"}, Hosts: []string{"*.example.com"}, Ports: []uint64{443}, Methods: []string{"POST", "GET"}, Paths: []string{"/v1/x"}}
	with := func(change func(p *manifest.CapParams)) manifest.CapParams {
		p := web
		change(&p)
		return p
	}
	for name, x := range map[string]struct {
		adapter, config string
		params          manifest.CapParams
		want            string // of the gap; empty: none
	}{
		"fits":            {"http", get, web, ""},
		"host":            {"http", get, with(func(p *manifest.CapParams) { p.Hosts = []string{"api.exmaple.com"} }), `host "api.example.com" is not in`},
		"scheme":          {"http", get, with(func(p *manifest.CapParams) { p.Schemes = []string{"http"} }), `scheme "https"`},
		"port":            {"http", get, with(func(p *manifest.CapParams) { p.Ports = []uint64{80} }), `port 443`},
		"method":          {"http", get, with(func(p *manifest.CapParams) { p.Methods = []string{"POST"} }), `method "GET"`},
		"path":            {"http", get, with(func(p *manifest.CapParams) { p.Paths = []string{"/v2"} }), `path "/v1/x"`},
		"path of params":  {"http", some, web, ""},
		"path beside":     {"http", some, with(func(p *manifest.CapParams) { p.Paths = []string{"/v10"} }), `path "/v1"`},
		"url of params":   {"http", `{}`, with(func(p *manifest.CapParams) { p.Hosts = []string{"other"} }), ""},
		"method of body":  {"http", some, with(func(p *manifest.CapParams) { p.Methods = []string{"POST"} }), ""},
		"program":         {"exec", run, manifest.CapParams{Programs: []string{"pay.sh"}, Args: []string{"*"}}, `program "./pay.sh"`},
		"argument":        {"exec", run, manifest.CapParams{Programs: []string{"./pay.sh"}, Args: []string{"-m"}}, `argument "-n"`},
		"argument may be": {"exec", run, manifest.CapParams{Programs: []string{"./pay.sh"}, Args: []string{"-n", "5"}}, ""},
		"root":            {"file", file, manifest.CapParams{Root: "dtaa", Access: []string{"write"}}, `root "data"`},
		"access":          {"file", file, manifest.CapParams{Root: "data", Access: []string{"read"}}, `op "write"`},
		"access may be":   {"file", `{"root": "data"}`, manifest.CapParams{Root: ".", Access: []string{"write"}}, ""},
	} {
		gaps := governance.Ungranted(&manifest.Manifest{
			Reducers: map[string]manifest.Reducer{"c": {Grants: []string{"p"}}},
			Effects:  map[string]manifest.Effect{"e": {Adapter: x.adapter, Config: fromJSON(t, x.config)}},
			Caps:     map[string]manifest.Cap{"p": {Type: x.adapter, Params: x.params}},
		})
		if x.want == "" {
			require.Empty(t, gaps, name)
			continue
		}
		require.Len(t, gaps, 1, name)
		require.Contains(t, gaps[0].Msg, x.want, name)
	}
}
