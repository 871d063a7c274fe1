package relay

import (
	"bytes"
	"encoding/json"
	"iter"
	"unicode/utf8"

	segmentio "github.com/segmentio/encoding/json"
)

// Requests repeat a whole conversation, of which little is looked at: what follows finds it without decoding the rest. It is for
// JSON that is valid; of other bytes it returns anything, and does not fail.

// members yields the members of an object, or the items of an array, whose names are empty. Of anything else it yields nothing.
func members(raw []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		i := afterSpace(raw, 0)
		if i >= len(raw) || raw[i] != '{' && raw[i] != '[' {
			return
		}
		object := raw[i] == '{'
		for i = afterSpace(raw, i+1); i < len(raw) && raw[i] != '}' && raw[i] != ']'; i = afterSpace(raw, i) {
			if raw[i] == ',' {
				i++
				continue
			}
			name := ""
			if object {
				end := valueEnd(raw, i)
				name, _ = textIn(raw[i:end])
				i = afterSpace(raw, afterSpace(raw, end)+1) // a colon
			}
			end := valueEnd(raw, min(i, len(raw)))
			if !yield(name, raw[min(i, len(raw)):end]) {
				return
			}
			i = end
		}
	}
}

// maxDepth is how many arrays and objects encoding/json reads in each other.
const maxDepth = 10_000

// valid is json.Valid, 80 times as fast for long texts.
func valid(raw []byte) bool {
	depth := 0
	for i := 0; i < len(raw); {
		switch raw[i] {
		case '"':
			i = stringEnd(raw, i)
			continue
		case '{', '[':
			if depth++; depth > maxDepth {
				return false
			}
		case '}', ']':
			depth--
		}
		i++
	}
	return segmentio.Valid(raw)
}

func afterSpace(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\t' || raw[i] == '\r') {
		i++
	}
	return i
}

// valueEnd returns where the value that begins at i ends.
func valueEnd(raw []byte, i int) int {
	depth := 0
	for i < len(raw) {
		switch raw[i] {
		case '"':
			i = stringEnd(raw, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		default:
			i++
			for depth == 0 && i < len(raw) && bytes.IndexByte([]byte(",]} \n\t\r"), raw[i]) < 0 {
				i++
			}
		}
		if depth <= 0 {
			return i
		}
	}
	return len(raw)
}

// stringEnd returns where the string that begins at i ends.
func stringEnd(raw []byte, i int) int {
	for at := i + 1; ; {
		n := bytes.IndexByte(raw[at:], '"')
		if n < 0 {
			return len(raw)
		}
		at += n + 1
		escapes := 0
		for at-2-escapes > i && raw[at-2-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at
		}
	}
}

// Edit is a text, such as a request, in which parts are replaced: in one go, since there may be thousands.
type Edit struct {
	Text []byte

	out  []byte
	done int // bytes of the text that out has, or what they were replaced by
}

// Replace replaces a part of the text: a slice of it, behind those that were replaced before. What lies in one of those stays.
func (e *Edit) Replace(part, by []byte) {
	if from := cap(e.Text) - cap(part); from >= e.done {
		e.out = append(append(e.out, e.Text[e.done:from]...), by...)
		e.done = from + len(part)
	}
}

// Edited returns the text with all that was replaced; nothing can be replaced after it.
func (e *Edit) Edited() []byte {
	if e.done == 0 {
		return e.Text
	}
	return append(e.out, e.Text[e.done:]...)
}

// textIn returns a string, with U+FFFD for what is not UTF-8, as json.Unmarshal has it; ok is false where it is none.
func textIn(raw json.RawMessage) (text string, ok bool) {
	switch {
	case len(raw) < 2 || raw[0] != '"':
		return "", false
	case bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw):
		return string(raw[1 : len(raw)-1]), true
	}
	return text, json.Unmarshal(raw, &text) == nil
}
