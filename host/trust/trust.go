// Package trust says what a process performs for worlds whose manifests others write: which effects, with which
// secrets, programs, files and network. A file says it, the same for workers and for servers.
package trust

import (
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// codeNotTrusted is of a request that is not trusted.
const codeNotTrusted governance.Code = "not_trusted"

// Trust is what a process does for worlds, whatever their manifests say. The zero value is that of
// one without a file: it takes effects that need no secret, no program and no file. It is not
// changed once it is in use.
//
// Its file has a line for each thing that is trusted, and what no line names is not;
// a # begins a comment:
//
//	kind     PATTERN...             kinds of effects that are taken: a name, prefix.* or *
//	adapter  NAME...                that perform them
//	host     NAME...                where http, llm and mcp may go: a name, an address, *.name or *
//	program  PROGRAM [ARGUMENT]...  that exec and mcp may run, with just these arguments; a last * is any
//	env      NAME...                variables that a program may be given
//	root     DIRECTORY...           that file effects may be in
//	secret   NAME DESTINATION...    a secret, and who may be sent it: https://HOST[:PORT], a program
//	                                as the effect names it, or adapter:NAME for one of one's own
type Trust struct {
	all      bool // that a manifest says
	file     bool // there is one
	kinds    []string
	adapters []string
	hosts    []string
	programs [][]string
	words    int // of programs
	env      []string
	roots    []string
	secrets  map[string][]string // destinations by name
	found    map[canon.Hash]bool // effects that are trusted as they are; nil: none is
	names    map[string]bool     // secrets that these name
}

// All returns the trust in worlds of one's own: all that their manifests say is done, with
// every secret that they name.
func All() *Trust { return &Trust{all: true} }

// And returns a trust that takes the effects of a manifest as well, just as they are there: under
// other kinds, and with other params, too.
func (t *Trust) And(m *manifest.Manifest) *Trust {
	with := *t
	with.found, with.names = maps.Clone(t.found), maps.Clone(t.names)
	if with.found == nil {
		with.found, with.names = map[canon.Hash]bool{}, map[string]bool{}
	}
	for _, e := range m.Effects { // order cannot show: a set is made
		for _, part := range Parts(&e) {
			with.found[identity(part)] = true
			if n, err := needsOf(part); err == nil {
				for _, name := range n.secrets {
					with.names[name] = true
				}
			}
		}
	}
	return &with
}

// Found reports whether an effect is trusted as it is, by And.
func (t *Trust) Found(e *manifest.Effect) bool { return t.found[identity(e)] }

// Parts returns what of an effect is trusted by itself: the effect, and what verifies it, if anything does, as
// one of its adapter.
func Parts(e *manifest.Effect) []*manifest.Effect {
	parts := []*manifest.Effect{e}
	if v := e.Verify; v != nil {
		parts = append(parts, &manifest.Effect{Adapter: v.Adapter, Config: v.Config, Files: v.Files})
	}
	return parts
}

// identity stands for what an adapter is told.
func identity(e *manifest.Effect) canon.Hash {
	of := fmt.Sprintf("%q %q", e.Adapter, []byte(e.Config))
	for _, key := range slices.Sorted(maps.Keys(e.Files)) {
		of += fmt.Sprintf(" %q %s", key, e.Files[key])
	}
	return canon.Sum([]byte(of))
}

// Bind has a host perform what is trusted, and nothing else: attempts of other live effects wait, as those do
// that workers elsewhere perform.
func (t *Trust) Bind(cfg *host.Config) {
	if t.all {
		return
	}
	cfg.Withhold, cfg.Secrets = t.Refuses, t.Lookup(cfg.Secrets)
	if t.found == nil { // else all that is performed with a secret, a program or a file is as it was found
		t.Guard(cfg)
	}
}

// Guard has a host ask at each request, and before each program.
func (t *Trust) Guard(cfg *host.Config) {
	if !t.all {
		cfg.Egress, cfg.Program = t.egress, t.runs(cfg.Dir)
	}
}

// needs is what an effect needs of the worker's machine.
type needs struct {
	to      *url.URL // where it goes; nil: nowhere, or each call says
	roaming bool     // each call says
	program []string // with its arguments; empty: none
	open    bool     // others follow them, which params decide
	env     []string
	root    string   // of files; empty: none
	secrets []string // names
	self    string   // who gets secrets that go nowhere else
}

// Refuses says why an effect is not taken; nil: it is.
func (t *Trust) Refuses(kind string, e *manifest.Effect) error {
	if t.all || e.Adapter == "recorded" || e.Adapter == "stub" { // the program's own, if it is performed here at all
		return nil
	}
	n, err := needsOf(e)
	switch {
	case t.Found(e):
		return nil
	case err != nil:
		return err
	case !t.file:
		return n.none()
	}
	switch {
	case !slices.ContainsFunc(t.kinds, func(pattern string) bool { return manifest.Match(pattern, kind) }):
		return fmt.Errorf("no line kind covers %s", kind)
	case !slices.Contains(t.adapters, e.Adapter):
		return fmt.Errorf("no line adapter names %s", e.Adapter)
	case len(n.program) > 0 && !slices.ContainsFunc(t.programs, func(is []string) bool { return sameProgram(is, n.program, n.open) }):
		return fmt.Errorf("no line program names %s%s", strings.Join(n.program, " "), n.further())
	case n.root != "" && !slices.ContainsFunc(t.roots, func(root string) bool { return within(root, n.root) }):
		return fmt.Errorf("no line root covers %s", n.root)
	case n.roaming && !slices.Contains(t.hosts, "*"):
		return fmt.Errorf("each call says where it goes, and no line host has *")
	}
	for _, name := range n.env {
		if !slices.Contains(t.env, name) {
			return fmt.Errorf("no line env names %s", name)
		}
	}
	if n.to != nil {
		return t.refusesRequest(n.to, n.secrets)
	}
	if n.roaming {
		return nil // refusesRequest is asked by each call
	}
	return t.refusesSecrets(n.self, n.secrets)
}

// none says which need of an effect wants a line in a file.
func (n *needs) none() error {
	const without = ", and there is no trust file"
	switch {
	case len(n.secrets) > 0:
		return fmt.Errorf("it needs the secret %s%s", n.secrets[0], without)
	case len(n.program) > 0:
		return fmt.Errorf("it needs the program %s%s", n.program[0], without)
	case n.root != "":
		return fmt.Errorf("it needs files in %s%s", n.root, without)
	}
	return nil
}

// refusesRequest says why a request may not go to an address with these secrets; nil:
// it may.
func (t *Trust) refusesRequest(to *url.URL, secrets []string) error {
	if t.file && !t.reaches(to) {
		return fmt.Errorf("no line host covers %s", to.Hostname())
	}
	return t.refusesSecrets(to.Scheme+"://"+to.Host, secrets)
}

func (t *Trust) refusesSecrets(destination string, secrets []string) error {
	for _, name := range secrets {
		if !slices.Contains(t.secrets[name], destination) {
			return fmt.Errorf("no line secret has %s for %s", name, destination)
		}
	}
	return nil
}

// egress is for host.Config.
func (t *Trust) egress(to *url.URL, secrets []string) error {
	if err := t.refusesRequest(to, secrets); err != nil {
		return &governance.CapError{Code: codeNotTrusted, Reason: err.Error()}
	}
	return nil
}

// reaches reports whether a line has the host of an address in canonical form.
func (t *Trust) reaches(to *url.URL) bool {
	if slices.Contains(t.hosts, "*") {
		return true
	}
	target, err := governance.ParseAddress(to.String())
	return err == nil && target.Allowed(&manifest.CapParams{
		Schemes: []string{to.Scheme}, Hosts: t.hosts, Ports: []uint64{target.Port}, Methods: []string{target.Method}, Paths: []string{"/"},
	}) == nil
}

// Lookup narrows a source of secrets to the names in the file.
func (t *Trust) Lookup(secret func(name string) (string, error)) func(name string) (string, error) {
	if t.all {
		return secret
	}
	return func(name string) (string, error) {
		if _, ok := t.secrets[name]; !ok && !t.names[name] {
			return "", fmt.Errorf("no line secret of the trust file has %s", name)
		}
		return secret(name)
	}
}

// needsOf works out what an effect needs from its config, as its adapter reads it.
func needsOf(e *manifest.Effect) (*needs, error) {
	n := &needs{self: "adapter:" + e.Adapter}
	collectSecrets(e.Config, n)
	is, err := governance.NeedsOf(e)
	n.to, n.roaming, n.program, n.open, n.root = is.To, is.Roaming, is.Program, is.Open, is.Root
	if len(n.program) > 0 {
		n.self, n.env = n.program[0], slices.Sorted(maps.Keys(is.Env))
	}
	return n, err
}

// further is what follows the program in what is said of it.
func (n *needs) further() string {
	if n.open {
		return " *"
	}
	return ""
}

// collectSecrets notes each secret://NAME in a config, wherever it is.
func collectSecrets(config canon.Raw, n *needs) {
	v, err := canon.Decode(config)
	if err != nil {
		return // there is none, or nobody can read it
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			for _, part := range strings.Split(v, "secret://")[1:] {
				name := strings.TrimRight(part, " ")
				if i := strings.IndexAny(name, " \t,;\"'"); i >= 0 {
					name = name[:i]
				}
				n.secrets = append(n.secrets, name)
			}
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(v[key])
			}
		}
	}
	walk(v)
}

// sameProgram reports whether a line names a program and its arguments, of which
// an open command has more than are known.
func sameProgram(line, command []string, open bool) bool {
	if n := len(line) - 1; n > 0 && line[n] == "*" {
		return len(command) >= n && slices.Equal(line[:n], command[:n])
	}
	return !open && slices.Equal(line, command)
}

// within reports whether a path is root or below it.
func within(root, name string) bool {
	return root == name || root == "." && !path.IsAbs(name) || strings.HasPrefix(name, strings.TrimSuffix(root, "/")+"/")
}
