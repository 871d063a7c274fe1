package trust

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Parse parses the content of a trust file. The error names the line.
func Parse(data []byte) (*Trust, error) {
	t := &Trust{file: true, secrets: make(map[string][]string)}
	lines := bufio.NewScanner(bytes.NewReader(data))
	number := 0
	for lines.Scan() {
		number++
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if err := t.line(words[0], words[1:]); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", number+1, err)
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
	return add(rest)
}

func (t *Trust) addHosts(rest []string) error {
	for _, host := range rest {
		name := strings.TrimPrefix(host, "*.")
		if strings.Contains(name, ":") && !strings.HasPrefix(name, "[") {
			name = "[" + name + "]"
		}
		if target, err := targetOf("https://" + name + "/"); host != "*" && (err != nil || target.URL.Path != "/" || target.Port != 443) {
			return fmt.Errorf("%q is not the name or address of a host: want api.example.com, *.example.com or *", host)
		}
	}
	t.hosts = append(t.hosts, rest...)
	return nil
}

func (t *Trust) addProgram(rest []string) error {
	t.programs = append(t.programs, rest)
	return t.apart()
}

func (t *Trust) addRoots(rest []string) error {
	for _, root := range rest {
		if slices.Contains(strings.Split(root, "/"), "..") {
			return fmt.Errorf("%q has a ..: name the directory itself", root)
		}
		t.roots = append(t.roots, path.Clean(root))
	}
	return t.apart()
}

// apart refuses programs that effects could write: they would be programs of
// whoever wrote the manifest. What paths lead to is for CheckPrograms.
func (t *Trust) apart() error {
	for _, program := range t.programs {
		for _, name := range program {
			for _, root := range t.roots {
				if strings.Contains(name, "/") && within(root, path.Clean(name)) {
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
			target, err := targetOf(destination)
			if err != nil || target.URL.Path != "/" || target.URL.RawQuery != "" {
				return fmt.Errorf("%q is not the origin of a server: want https://HOST or https://HOST:PORT", destination)
			}
			destination = target.URL.Scheme + "://" + target.URL.Host
		}
		t.secrets[name] = append(t.secrets[name], destination)
	}
	return nil
}
