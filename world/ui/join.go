package ui

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// What a module has from others, and what others have from it: the forms that the page's
// modules have, ours and those that others published.
var (
	imports     = regexp.MustCompile(`\bimport\s*(\w+)?\s*,?\s*(?:\{([^}]*)\})?\s*from\s*["']([^"']+)["'];?`)
	passedOn    = regexp.MustCompile(`\bexport\s*\{([^}]*)\}\s*from\s*["']([^"']+)["'];?`)
	listed      = regexp.MustCompile(`\bexport\s*\{([^}]*)\};?`)
	declared    = regexp.MustCompile(`(?m)^export ((?:async )?function\b ?\*? ?|class |const )(\w+)`)
	asDefault   = regexp.MustCompile(`\bexport default\s`)
	notJoinable = regexp.MustCompile(`(?m)\bexport\s*[{*]|^export |^import |</script|<!--`)
)

// join returns one module that does what a module of the page does together with all that
// it has from others: a browser loads no modules from a disk. Each becomes a function that is
// called at once, in which its names are its own.
func (all page) join(entry string) ([]byte, error) {
	j := joiner{all: all, done: make(map[string]bool)}
	j.out.WriteString("const modules = {};\n")
	err := j.add(entry)
	return j.out.Bytes(), err
}

// joiner writes modules one after the other: what one has from another comes before it.
type joiner struct {
	all  page
	out  bytes.Buffer
	way  []string // the modules that are being added
	done map[string]bool
}

func (j *joiner) add(name string) error {
	p := j.all[name]
	switch {
	case p == nil:
		return fmt.Errorf("ui: %s has what is not part of the page: %s", strings.Join(j.way, ", "), name)
	case slices.Contains(j.way, name):
		return fmt.Errorf("ui: modules have something from each other: %s, %s", strings.Join(j.way, ", "), name)
	case j.done[name]:
		return nil
	}
	j.way = append(j.way, name)
	text := string(p.plain)
	for _, re := range []*regexp.Regexp{imports, passedOn} {
		for _, m := range re.FindAllStringSubmatch(text, -1) {
			if err := j.add(path.Join(path.Dir(name), m[len(m)-1])); err != nil {
				return err
			}
		}
	}
	body := bodyOf(name, text)
	if at := notJoinable.FindString(body); at != "" {
		return fmt.Errorf("ui: %s cannot be joined: %q", name, at)
	}
	fmt.Fprintf(&j.out, "await (async () => { // %s\n%s})();\n", name, body)
	j.way, j.done[name] = j.way[:len(j.way)-1], true
	return nil
}

// bodyOf returns a module as the body of a function that has the others from modules, and
// puts there what they have from it.
func bodyOf(name, text string) string {
	from := func(of string) string { return fmt.Sprintf("modules[%q]", path.Join(path.Dir(name), of)) }
	gives := fmt.Sprintf("modules[%q]", name)
	var ends strings.Builder // when all is there
	text = imports.ReplaceAllStringFunc(text, func(found string) string {
		m := imports.FindStringSubmatch(found)
		var takes []string
		if m[1] != "" {
			takes = append(takes, "default: "+m[1])
		}
		for _, x := range pairs(m[2]) {
			takes = append(takes, x[0]+": "+x[1])
		}
		return "const { " + strings.Join(takes, ", ") + " } = " + from(m[3]) + ";"
	})
	text = passedOn.ReplaceAllStringFunc(text, func(found string) string {
		m := passedOn.FindStringSubmatch(found)
		for _, x := range pairs(m[1]) {
			fmt.Fprintf(&ends, "%s.%s = %s.%s;\n", gives, x[1], from(m[2]), x[0])
		}
		return ""
	})
	text = listed.ReplaceAllStringFunc(text, func(found string) string {
		for _, x := range pairs(listed.FindStringSubmatch(found)[1]) {
			fmt.Fprintf(&ends, "%s.%s = %s;\n", gives, x[1], x[0])
		}
		return ""
	})
	text = declared.ReplaceAllStringFunc(text, func(found string) string {
		m := declared.FindStringSubmatch(found)
		fmt.Fprintf(&ends, "%s.%s = %s;\n", gives, m[2], m[2])
		return m[1] + m[2]
	})
	text = asDefault.ReplaceAllString(text, gives+".default = ")
	return gives + " = {};\n" + text + "\n;" + ends.String()
}

// pairs reads a list of names, each of which may be given another: "a, b as c".
func pairs(list string) (out [][2]string) {
	for item := range strings.SplitSeq(list, ",") {
		was, is, renamed := strings.Cut(strings.TrimSpace(item), " as ")
		if was == "" {
			continue
		}
		if !renamed {
			is = was
		}
		out = append(out, [2]string{was, is})
	}
	return out
}
