package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxParamBytes = 4096 // bytes of one entry of a capability's params
	maxPort       = 65_535
)

func (v *validator) cap(path, name string, c Cap) {
	v.check(path, checkIdentifier(name))
	types := []string{CapAny, CapHTTP, CapLLM, CapMCP, CapFile, CapExec}
	if v.oneOf(path+"/type", c.Type, types...); slices.Contains(types, c.Type) {
		v.capParams(path+"/params/", c)
	}
	v.budget(path+"/budget/", c.Budget)
}

func (v *validator) capParams(path string, c Cap) {
	for _, p := range paramsOf(&c.Params) {
		at := path + p.name
		switch {
		case p.values == 0:
		case !slices.Contains(p.types, c.Type):
			v.fault(at, "a capability of type %s has no param %s, only one of type %s", c.Type, p.name, strings.Join(p.types, " or "))
		default:
			v.count(at, p.values)
			for i := range p.values {
				if p.check != nil {
					v.check(at+p.place(i), p.check(i))
				}
			}
		}
	}
}

// capParam is one field of CapParams.
type capParam struct {
	name   string
	types  []string // of the capabilities that have it
	values int      // how many are there; a single one counts as 1
	list   bool
	check  func(i int) error // why a value cannot be; nil: any can
}

// place is where a value stands below its param.
func (p *capParam) place(i int) string {
	if !p.list {
		return ""
	}
	return "/" + strconv.Itoa(i)
}

// paramsOf returns the fields of p in their order.
func paramsOf(p *CapParams) []capParam {
	list := func(name string, values []string, check func(string) error, types ...string) capParam {
		return capParam{name, types, len(values), true, func(i int) error { return check(values[i]) }}
	}
	number := func(name string, value uint64, types ...string) capParam {
		return capParam{name: name, types: types, values: int(min(value, 1))}
	}
	port := func(i int) error {
		if n := p.Ports[i]; n < 1 || n > maxPort {
			return fmt.Errorf("must be 1 to %d, not %d", maxPort, n)
		}
		return nil
	}
	return []capParam{
		list("kinds", p.Kinds, checkPattern, CapAny),
		list("schemes", p.Schemes, oneOf("http", "https"), CapHTTP),
		list("hosts", p.Hosts, checkHost, CapHTTP),
		{"ports", []string{CapHTTP}, len(p.Ports), true, port},
		list("methods", p.Methods, checkMethod, CapHTTP),
		list("paths", p.Paths, checkPrefix, CapHTTP),
		list("providers", p.Providers, checkParam, CapLLM),
		list("models", p.Models, checkParam, CapLLM),
		number("max_tokens", p.MaxTokens, CapLLM),
		list("servers", p.Servers, checkParam, CapMCP),
		list("tools", p.Tools, checkParam, CapLLM, CapMCP),
		{"root", []string{CapFile}, min(len(p.Root), 1), false, func(int) error { return checkParam(p.Root) }},
		list("access", p.Access, oneOf("read", "write"), CapFile),
		list("programs", p.Programs, checkParam, CapExec),
		list("args", p.Args, checkArg, CapExec),
		number("max_bytes", p.MaxBytes, CapHTTP, CapFile),
	}
}

func oneOf(known ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(known, s) {
			return fmt.Errorf("want %s, not %q", strings.Join(known, " or "), s)
		}
		return nil
	}
}

// checkParam reports why s cannot be compared with what an effect asks for.
func checkParam(s string) error {
	if s == "" || strings.ContainsFunc(s, unicode.IsControl) {
		return fmt.Errorf("%q is empty or holds a control character", s)
	}
	return checkArg(s)
}

// checkArg is checkParam for arguments, which may be any text.
func checkArg(s string) error {
	if len(s) > maxParamBytes || !utf8.ValidString(s) {
		return fmt.Errorf("%.16q… has more than %d bytes or is not UTF-8", s, maxParamBytes)
	}
	return nil
}

// checkHost catches what is written as a URL; which names and addresses there
// are is for the capability to say.
func checkHost(s string) error {
	if strings.ContainsAny(s, "/@?# ") {
		return fmt.Errorf("%q is not a host: want a name or an address alone", s)
	}
	return checkParam(s)
}

func checkMethod(s string) error {
	if strings.ContainsFunc(s, func(r rune) bool { return r < 'A' || r > 'Z' }) {
		return fmt.Errorf("%q is not a method in capital letters, such as GET", s)
	}
	return checkParam(s)
}

func checkPrefix(s string) error {
	if !strings.HasPrefix(s, "/") {
		return fmt.Errorf("%q is not a path that begins with /", s)
	}
	return checkParam(s)
}
