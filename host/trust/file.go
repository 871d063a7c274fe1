package trust

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/worldkernel/worldkernel/governance"
)

// Parse parses the content of a trust file. The error names the line. A byte order mark at the beginning is no
// part of it.
func Parse(data []byte) (*Trust, error) {
	t := &Trust{file: true, secrets: make(map[string][]string)}
	number := 0
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\ufeff"))) {
		number++
		text, _, _ := strings.Cut(string(line), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if err := t.line(words[0], words[1:]); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	return t, nil
}

// line takes one line.
func (t *Trust) line(word string, rest []string) error {
	add, known := map[string]func([]string) error{
		"kind":    func(rest []string) error { t.kinds = append(t.kinds, rest...); return nil },
		"adapter": func(rest []string) error { t.adapters = append(t.adapters, rest...); return nil },
		"env":     func(rest []string) error { t.env = append(t.env, rest...); return nil },
		"program": t.addProgram, "host": t.addHosts, "root": t.addRoots, "secret": t.addSecret,
	}[word]
	switch {
	case !known:
		return fmt.Errorf("%q is not kind, adapter, host, program, env, root or secret", word)
	case len(rest) == 0:
		return fmt.Errorf("%s names nothing", word)
	}
	for _, name := range rest {
		if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
			return fmt.Errorf("%q is no text", name)
		}
	}
	return add(rest)
}

func (t *Trust) addHosts(rest []string) error {
	for _, host := range rest {
		name := strings.TrimPrefix(host, "*.")
		if strings.Contains(name, ":") && !strings.HasPrefix(name, "[") {
			name = "[" + name + "]"
		}
		if target, err := governance.ParseAddress("https://" + name + "/"); host != "*" && (err != nil || target.URL.Path != "/" || target.Port != 443) {
			return fmt.Errorf("%q is not the name or address of a host: want api.example.com, *.example.com or *", host)
		}
	}
	t.hosts = append(t.hosts, rest...)
	return nil
}

// Each program and argument is held against each root, on the disk: this bounds how long that takes.
const maxPrograms, maxRoots = 1000, 100

func (t *Trust) addProgram(rest []string) error {
	if t.words += len(rest); t.words > maxPrograms {
		return fmt.Errorf("more than %d programs and arguments", maxPrograms)
	}
	t.programs = append(t.programs, rest)
	return apart([][]string{rest}, t.roots)
}

func (t *Trust) addRoots(rest []string) error {
	had := len(t.roots)
	for _, root := range rest {
		if slices.Contains(strings.Split(root, "/"), "..") {
			return fmt.Errorf("%q has a ..: name the directory itself", root)
		}
		t.roots = append(t.roots, path.Clean(root))
	}
	if len(t.roots) > maxRoots {
		return fmt.Errorf("more than %d roots", maxRoots)
	}
	return apart(t.programs, t.roots[had:])
}

// apart refuses programs that effects could write: they would be programs of
// whoever wrote the manifest. What paths lead to is for CheckPrograms.
func apart(programs [][]string, roots []string) error {
	if len(roots) == 0 {
		return nil
	}
	for _, program := range programs {
		for _, name := range program {
			clean := path.Clean(name)
			for _, root := range roots {
				if strings.Contains(name, "/") && within(root, clean) {
					return errWritable(name, root)
				}
			}
		}
	}
	return nil
}

func (t *Trust) addSecret(rest []string) error {
	name, to := rest[0], rest[1:]
	if strings.HasPrefix(name, "secret://") {
		return errors.New("a secret is named without secret://")
	}
	if len(to) == 0 {
		return fmt.Errorf("secret %s has no destination: want https://HOST, a program, or adapter:NAME", name)
	}
	for _, destination := range to {
		if strings.Contains(destination, "://") {
			target, err := governance.ParseAddress(destination)
			if err != nil || target.URL.Path != "/" || target.URL.RawQuery != "" {
				return fmt.Errorf("%q is not the origin of a server: want https://HOST or https://HOST:PORT", destination)
			}
			destination = target.URL.Scheme + "://" + target.URL.Host
		}
		t.secrets[name] = append(t.secrets[name], destination)
	}
	return nil
}
