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
// standard input; those become arguments that config names, and no others.
type ExecTarget struct {
	Program      string
	Args         []string          // without the program
	Fixed        int               // so many of Args, from the first on, are config's alone
	Env          map[string]string // values may be references to secrets
	CompensateOn []int             // exit statuses that mean that something was left behind
	MaxBytes     uint64            // greatest size of standard output
	Text         bool              // standard output is text, not one JSON value
}

// execConfig is the config of an exec effect.
type execConfig struct {
	Program      string            `cbor:"program"`
	Args         []canon.Raw       `cbor:"args"`
	Env          map[string]string `cbor:"env"`
	CompensateOn []int             `cbor:"compensate_on"`
	MaxBytes     uint64            `cbor:"max_bytes"`
	Output       string            `cbor:"output"`
}

// ParseExec reads the config of an exec effect; params may be anything:
//
//	config {program, args?, env?, compensate_on?, max_bytes?, output?}
//
// An argument is a text, or {param, prefix?}: that param of params, a text, a
// number or a boolean. One without a prefix does not begin with "-": a program
// would take it for an option. Without params arguments of params are empty.
// The error is a *CapError.
func ParseExec(config, params canon.Raw) (*ExecTarget, error) {
	var c execConfig
	if err := decodeConfig(config, &c); err != nil {
		return nil, err
	}
	if len(params) > 0 {
		if err := canon.Valid(params); err != nil {
			return nil, capErrorf(CodeBadParams, "params: %v", err)
		}
	}
	t := &ExecTarget{Program: c.Program, Env: c.Env, CompensateOn: c.CompensateOn, Text: c.Output == "text"}
	if c.Output != "" && c.Output != "json" && !t.Text {
		return nil, capErrorf(CodeBadConfig, "output %q is neither json nor text", shortened(c.Output))
	}
	if t.Program == "" || hasNUL(t.Program) {
		return nil, capErrorf(CodeBadConfig, "program %q is not the name of a program", shortened(t.Program))
	}
	if err := t.arguments(c.Args, params); err != nil {
		return nil, err
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
	t.MaxBytes = cmp.Or(c.MaxBytes, DefaultExecBytes)
	return t, nil
}

// arguments works out Args and Fixed.
func (t *ExecTarget) arguments(args []canon.Raw, params canon.Raw) error {
	for i, raw := range args {
		if text := canon.NewReader(raw); text.Kind() == canon.KindText {
			arg := text.Text()
			switch {
			case hasNUL(arg):
				return capErrorf(CodeBadConfig, "args[%d] holds a NUL", i)
			case strings.HasPrefix(arg, "secret://"):
				return capErrorf(CodeBadConfig, "args[%d] is a secret, but all users of the machine see arguments: use env", i)
			}
			t.Args = append(t.Args, arg)
			if t.Fixed == i {
				t.Fixed++
			}
			continue
		}
		arg, err := argumentOf(i, raw, params)
		if err != nil {
			return err
		}
		t.Args = append(t.Args, arg)
	}
	return nil
}

// argumentOf returns the argument that {param, prefix?} makes of params.
func argumentOf(i int, raw, params canon.Raw) (string, error) {
	var of struct {
		Param  string `cbor:"param"`
		Prefix string `cbor:"prefix"`
	}
	if err := canon.UnmarshalTrusted(raw, &of); err != nil || of.Param == "" || hasNUL(of.Prefix) || strings.HasPrefix(of.Prefix, "secret://") {
		return "", capErrorf(CodeBadConfig, "args[%d] is neither a text nor {param: NAME, prefix: TEXT}", i)
	}
	if len(params) == 0 {
		return "", nil
	}
	value, err := canon.Lookup(params, of.Param)
	if err != nil {
		return "", capErrorf(CodeBadParams, "params have no %s, which is args[%d]", shortened(of.Param), i)
	}
	var text string
	switch r := canon.NewReader(value); r.Kind() {
	case canon.KindText:
		text = r.Text()
	case canon.KindInt, canon.KindFloat, canon.KindBool:
		asJSON, err := canon.ToJSON(value)
		if err != nil {
			return "", capErrorf(CodeBadParams, "params.%s: %v", shortened(of.Param), err)
		}
		text = string(asJSON)
	default:
		return "", capErrorf(CodeBadParams, "params.%s is args[%d], and no text, number or boolean", shortened(of.Param), i)
	}
	switch {
	case hasNUL(text):
		return "", capErrorf(CodeBadParams, "params.%s is args[%d], and holds a NUL", shortened(of.Param), i)
	case of.Prefix == "" && strings.HasPrefix(text, "-"):
		return "", capErrorf(CodeBadParams, "params.%s is args[%d], and begins with -, like an option", shortened(of.Param), i)
	}
	return of.Prefix + text, nil
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

func execAdapter() adapter {
	return adapter{
		parse: func(config, params canon.Raw) (target, error) { return ParseExec(config, params) },
		uses:  butTokens,
		fixed: func(config canon.Raw, p *manifest.CapParams) *CapError {
			t, err := ParseExec(config, nil)
			if err != nil {
				return nil
			}
			t.Args = t.Args[:t.Fixed]
			return t.Allowed(p)
		},
		needs: func(config canon.Raw) (Needs, error) {
			t, err := ParseExec(config, nil)
			if err != nil {
				return Needs{}, err
			}
			return Needs{Program: append([]string{t.Program}, t.Args[:t.Fixed]...), Env: t.Env, Open: t.Fixed < len(t.Args)}, nil
		},
	}
}
