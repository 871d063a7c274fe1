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
	types := append([]string{CapAny}, Adapters()...)
	if v.oneOf(path+"/type", c.Type, types...); slices.Contains(types, c.Type) {
		v.capParams(path+"/params/", c)
	}
	v.budget(path+"/budget/", c.Budget)
}

func (v *validator) capParams(path string, c Cap) {
	for _, p := range paramsOf(&c.Params) {
		at := path + p.name
		switch {
		case len(p.values) == 0:
		case !slices.Contains(p.types, c.Type):
			v.fault(at, "a capability of type %s has no param %s, only one of type %s", c.Type, p.name, strings.Join(p.types, " or "))
		default:
			v.count(at, len(p.values))
			for i, value := range p.values {
				v.check(at+p.place(i), p.check(value))
			}
		}
	}
}

// capParam is one field of CapParams.
type capParam struct {
	name   string
	types  []string // of the capabilities that have it
	values []string // a single one that is there counts as a list of it
	list   bool
	check  func(value string) error       // why a value cannot be
	covers func(wide, narrow string) bool // what an item of a list covers needs none of its own; nil: nothing else
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
		return capParam{name, types, values, true, check, nil}
	}
	under := func(p capParam, covers func(wide, narrow string) bool) capParam {
		p.covers = covers
		return p
	}
	single := func(name, value string, there bool, check func(string) error, types ...string) capParam {
		if !there {
			return capParam{name: name}
		}
		return capParam{name, types, []string{value}, false, check, nil}
	}
	number := func(name string, n uint64, types ...string) capParam {
		return single(name, strconv.FormatUint(n, 10), n != 0, func(string) error { return nil }, types...)
	}
	return []capParam{
		under(list("kinds", p.Kinds, checkPattern, CapAny), Match),
		list("schemes", p.Schemes, oneOf("http", "https"), CapHTTP),
		list("hosts", p.Hosts, checkHost, CapHTTP), // a host's own name opens more than a pattern does: private addresses
		list("ports", numbers(p.Ports), checkPort, CapHTTP),
		list("methods", p.Methods, checkMethod, CapHTTP),
		under(list("paths", p.Paths, checkPrefix, CapHTTP), isBelow),
		list("providers", p.Providers, checkParam, CapLLM),
		under(list("models", p.Models, checkParam, CapLLM), Match),
		number("max_tokens", p.MaxTokens, CapLLM),
		list("servers", p.Servers, checkParam, CapMCP),
		under(list("tools", p.Tools, checkParam, CapLLM, CapMCP), Match),
		single("root", p.Root, p.Root != "", checkParam, CapFile),
		list("access", p.Access, oneOf("read", "write"), CapFile),
		list("programs", p.Programs, checkParam, CapExec),
		list("args", p.Args, checkArg, CapExec),
		number("max_bytes", p.MaxBytes, CapHTTP, CapFile),
	}
}

func checkPort(s string) error {
	if n, err := strconv.ParseUint(s, 10, 64); err != nil || n < 1 || n > maxPort {
		return fmt.Errorf("must be 1 to %d, not %s", maxPort, s)
	}
	return nil
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
