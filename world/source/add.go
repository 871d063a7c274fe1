package source

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// TakenError says that a world file has something else under names that were to be added.
type TakenError struct{ Names []string }

// Error returns the names.
func (e *TakenError) Error() string {
	return strings.Join(e.Names, ", ") + ": there already, and not the same"
}

// Add adds to the text of a world file what more has: a mapping from names of sections, such as
// effects and policies, to mappings or lists, in block style, as yaml.Marshal writes it. What is there already
// stays out, and all else of the text stays as it is, to the byte. It returns the text
// and the names of what was added, as in caps.shop. path is the file's in faults. The error is a *TakenError or an *Error.
func Add(path string, data, more []byte) (text []byte, added []string, err error) {
	d, from := newDecoder(nil, path, data), newDecoder(nil, "what is added", more)
	root, add := d.parse(data), from.parse(more)
	if root == nil || add == nil {
		d.faults = append(d.faults, from.faults...)
		return nil, nil, d.err()
	}
	if root.Kind != yaml.MappingNode || root.Style&yaml.FlowStyle != 0 {
		d.refuse(root, "nothing can be added: want a mapping in block style, not in braces")
		return nil, nil, d.err()
	}
	if d.lint(root, nil, insideConfig); d.err() != nil { // a key that is there twice, say
		return nil, nil, d.err()
	}
	e := edit{decoder: d, from: from, root: root, at: make(map[int]string), taken: new(TakenError)}
	e.lines, e.ends = linesOf(data)
	if e.eol = "\n"; bytes.Contains(data, []byte("\r\n")) {
		e.eol = "\r\n"
	}
	from.entries(add, e.section)
	if len(e.taken.Names) > 0 {
		return nil, nil, e.taken
	}
	if err := d.err(); err != nil {
		return nil, nil, err
	}
	text = e.text()
	if len(e.added) > 0 && !e.holds(text, more) {
		d.refuse(root, "nothing can be added to what is written like this: write effects, caps and policies in block style, by hand")
		return nil, nil, d.err()
	}
	return text, e.added, nil
}

var lineEnd = regexp.MustCompile(`\r\n|[\n\r\x{85}\x{2028}\x{2029}]`)

// linesOf returns the lines of a text, and what ends each.
func linesOf(text []byte) (lines, ends []string) {
	last := 0
	for _, at := range lineEnd.FindAllIndex(text, -1) {
		lines, ends = append(lines, string(text[last:at[0]])), append(ends, string(text[at[0]:at[1]]))
		last = at[1]
	}
	return append(lines, string(text[last:])), append(ends, "")
}

// edit is the text of a world file, and what comes into it.
type edit struct {
	*decoder
	from  *decoder // of what is added
	root  *yaml.Node
	lines []string // with those of YAML, which has more ends of lines than other texts
	ends  []string
	eol   string
	at    map[int]string // what is added behind so many lines, to sections that are there
	last  string         // sections that are not
	added []string
	taken *TakenError
}

// section adds what is new to a section.
func (e *edit) section(key, value *yaml.Node) {
	place, has := child(e.root, key.Value)
	if has != nil && !isNull(has) && has.Kind != value.Kind {
		e.refuse(has, "want %s, not %s", describe(value), describe(has))
		return
	}
	old := make(map[string]*yaml.Node)
	if has != nil {
		e.parts(has, func(name string, part, _ *yaml.Node) { old[name] = part })
	}
	indent, block := e.root.Column+1, ""
	if has != nil && len(has.Content) > 0 {
		indent = has.Column - 1
	}
	e.from.parts(value, func(name string, part, whole *yaml.Node) {
		full := key.Value + "." + name
		switch is, taken := old[name]; {
		case !taken:
			e.added = append(e.added, full)
			block += e.indented(whole, indent)
		case !bytes.Equal(e.canonical(is), e.from.canonical(part)):
			e.taken.Names = append(e.taken.Names, full)
		}
	})
	switch {
	case block == "":
	case has != nil && len(has.Content) > 0 && has.Style&yaml.FlowStyle != 0:
		e.refuse(place, "nothing can be added to %s: write it in block style, without braces and brackets", key.Value)
	case has == nil:
		e.last += strings.Repeat(" ", e.root.Column-1) + key.Value + ":" + e.eol + block
	default:
		if len(has.Content) == 0 {
			e.empty(place, has)
		}
		e.at[e.endOfSection(slices.Index(e.root.Content, has)+1, place.Line, indent)] += block
	}
}

// parts calls f for what a mapping or a list has, with its name and with a section of it alone.
func (d *decoder) parts(section *yaml.Node, f func(name string, part, whole *yaml.Node)) {
	whole := *section
	if section.Kind == yaml.SequenceNode {
		for i, item := range section.Content {
			name := fmt.Sprint(i)
			if _, text := child(item, "name"); text != nil {
				name = text.Value
			}
			whole.Content = []*yaml.Node{item}
			f(name, item, &whole)
		}
		return
	}
	d.entries(section, func(key, value *yaml.Node) {
		whole.Content = []*yaml.Node{key, value}
		f(key.Value, value, &whole)
	})
}

// canonical returns what a node means; nil: nothing that can be compared.
func (d *decoder) canonical(n *yaml.Node) []byte {
	data, err := canon.Marshal(d.value(n))
	if err != nil {
		return nil
	}
	return data
}

// indented returns the text of a node, so many spaces further right.
func (e *edit) indented(n *yaml.Node, indent int) string {
	text, err := yaml.Dump(n, yaml.WithIndent(2))
	if err != nil {
		e.refuse(e.root, "%s", err)
		return ""
	}
	lines, ends := linesOf(text)
	var out strings.Builder
	for i, line := range lines {
		if line != "" {
			out.WriteString(strings.Repeat(" ", indent) + line)
		}
		out.WriteString(strings.Replace(ends[i], "\n", e.eol, 1))
	}
	return out.String()
}

// endOfSection returns the number of lines before what is added to a section: those up to the next one, but for
// blank ones and comments that belong to that. next is where in the root the next one is, first
// the section's own line, and indent what its parts have.
func (e *edit) endOfSection(next, first, indent int) int {
	end := len(e.lines)
	if next < len(e.root.Content) {
		end = e.root.Content[next].Line - 1
	} else {
		for end > 0 && (e.lines[end-1] == "" || strings.HasPrefix(e.lines[end-1], "...")) {
			end--
		}
	}
	for first > 0 && end > first {
		text := strings.TrimLeft(e.lines[end-1], " ")
		if text != "" && (text[0] != '#' || len(e.lines[end-1])-len(text) >= max(indent, e.root.Column)) {
			break
		}
		end--
	}
	return end
}

var emptyValue = regexp.MustCompile(`^(?:\{ *\}|\[ *\]|~|null|Null|NULL)`)

// empty takes away what says that a section is empty.
func (e *edit) empty(key, value *yaml.Node) {
	line, column := e.lines[key.Line-1], value.Column-1
	if value.Line == key.Line && column <= len(line) {
		e.lines[key.Line-1] = strings.TrimRight(line[:column], " ") + emptyValue.ReplaceAllString(line[column:], "")
	}
}

// text returns the text with what is added.
func (e *edit) text() []byte {
	e.at[e.endOfSection(len(e.root.Content), 0, 0)] += e.last
	var out bytes.Buffer
	for i, line := range e.lines {
		out.WriteString(e.at[i])
		out.WriteString(line + e.ends[i])
		if i < len(e.lines)-1 {
			continue
		}
		if more := e.at[len(e.lines)]; more != "" {
			if line != "" {
				out.WriteString(e.eol)
			}
			out.WriteString(more)
		}
	}
	return out.Bytes()
}

// holds reports whether a text means what the file meant, and what is added beside.
func (e *edit) holds(text, more []byte) bool {
	d := newDecoder(nil, e.path, text)
	root := d.parse(text)
	if root == nil {
		return false
	}
	d.lint(root, nil, insideConfig)
	old, _ := e.value(e.root).(map[string]any)
	e.from.entries(e.from.parse(more), func(key, value *yaml.Node) {
		_, has := child(e.root, key.Value)
		e.from.parts(value, func(name string, part, _ *yaml.Node) {
			if !slices.Contains(e.added, key.Value+"."+name) {
				return
			}
			if value.Kind == yaml.SequenceNode {
				list, _ := old[key.Value].([]any)
				old[key.Value] = append(list, e.from.value(part))
				return
			}
			if has == nil || old[key.Value] == nil {
				old[key.Value], has = map[string]any{}, value
			}
			old[key.Value].(map[string]any)[name] = e.from.value(part)
		})
	})
	want, err := canon.Marshal(old)
	return err == nil && bytes.Equal(want, d.canonical(root))
}
