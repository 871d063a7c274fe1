package governance

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// DefaultExecBytes is how many bytes of its standard output a program may
// write where the effect's config does not say.
const DefaultExecBytes = 1 << 20

// Codes of exec effects.
const (
	CodeProgramNotAllowed Code = "program_not_allowed" // the capability does not name the program
	CodeArgNotAllowed     Code = "arg_not_allowed"     // an argument matches none of the capability's patterns
)

// ExecTarget is the program that an exec effect would run. Params are its
// standard input and never become arguments.
type ExecTarget struct {
	Program      string            `cbor:"program"`       // as config names it
	Args         []string          `cbor:"args"`          // without the program
	Env          map[string]string `cbor:"env"`           // values may be references to secrets
	CompensateOn []int             `cbor:"compensate_on"` // exit statuses that mean that something was left behind
	MaxBytes     uint64            `cbor:"max_bytes"`     // greatest size of standard output
}

// ParseExec reads the config of an exec effect; params may be anything:
//
//	config {program, args?, env?, compensate_on?, max_bytes?}
//
// The error is a *CapError.
func ParseExec(config, params canon.Raw) (*ExecTarget, error) {
	t := new(ExecTarget)
	if err := decodeConfig(config, t); err != nil {
		return nil, err
	}
	if len(params) > 0 {
		if err := canon.Valid(params); err != nil {
			return nil, capErrorf(CodeBadParams, "params: %v", err)
		}
	}
	if t.Program == "" || hasNUL(t.Program) {
		return nil, capErrorf(CodeBadConfig, "program %q is not the name of a program", shortened(t.Program))
	}
	for i, arg := range t.Args {
		switch {
		case hasNUL(arg):
			return nil, capErrorf(CodeBadConfig, "args[%d] holds a NUL", i)
		case strings.HasPrefix(arg, "secret://"):
			return nil, capErrorf(CodeBadConfig, "args[%d] is a secret, but all users of the machine see arguments: use env", i)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || hasNUL(t.Env[name]) || strings.HasPrefix(name, "WORLDKERNEL_") {
			return nil, capErrorf(CodeBadConfig, "env.%s cannot be set", shortened(name))
		}
	}
	for _, status := range t.CompensateOn {
		if status < 1 || status > 255 {
			return nil, capErrorf(CodeBadConfig, "compensate_on: %d is not the exit status of a failure", status)
		}
	}
	t.MaxBytes = cmp.Or(t.MaxBytes, DefaultExecBytes)
	return t, nil
}

// Allowed says whether a capability of type exec covers t: nil, or the bound
// that t exceeds.
func (t *ExecTarget) Allowed(p *manifest.CapParams) *CapError {
	if !slices.Contains(p.Programs, t.Program) {
		return capErrorf(CodeProgramNotAllowed, "program %q is not among %s", t.Program, quoted(p.Programs))
	}
	for _, arg := range t.Args {
		if !slices.ContainsFunc(p.Args, func(pattern string) bool { return matchArg(pattern, arg) }) {
			return capErrorf(CodeArgNotAllowed, "argument %q of %s matches none of the capability's patterns", shortened(arg), t.Program)
		}
	}
	return nil
}

func hasNUL(s string) bool { return strings.ContainsRune(s, 0) }

// matchArg reports whether all of arg matches a pattern, in which "*" stands
// for any text and nothing else is special.
func matchArg(pattern, arg string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	arg, found := strings.CutPrefix(arg, first)
	if !wild {
		return found && arg == ""
	}
	if !found {
		return false
	}
	parts := strings.Split(rest, "*")
	last := parts[len(parts)-1]
	for _, part := range parts[:len(parts)-1] {
		_, after, found := strings.Cut(arg, part)
		if !found {
			return false
		}
		arg = after
	}
	return strings.HasSuffix(arg, last)
}
