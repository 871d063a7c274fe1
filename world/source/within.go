package source

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// within returns the place in the world file of a place in a scalar; where it is not written
// there as it is, such as by an escape, where the scalar begins.
func (d *decoder) within(n *yaml.Node, line, column int) (int, int) {
	at := cursor{line: n.Line, column: n.Column, quote: n.Style}
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		at.line, at.column = n.Line+1, 1
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		at.column++
	}
	if at.line > len(d.lines) {
		return n.Line, n.Column
	}
	at.text, _ = d.rest(at.line, at.column)
	for before := range strings.SplitAfterSeq(n.Value, "\n") {
		if line--; line > 0 {
			if !at.pass(d.lines, before) {
				return n.Line, n.Column
			}
			continue
		}
		end := 0
		for range min(max(column, 1)-1, utf8.RuneCountInString(strings.TrimSuffix(before, "\n"))) {
			_, size := utf8.DecodeRuneInString(before[end:])
			end += size
		}
		next, _ := utf8.DecodeRuneInString(before[end:])
		if !at.pass(d.lines, before[:end]) || !unicode.IsSpace(next) && end < len(before) && !at.reach(d.lines, next) {
			return n.Line, n.Column
		}
		return at.line, at.column
	}
	return n.Line, n.Column
}

// cursor is a place in the lines of a scalar.
type cursor struct {
	line, column int // in characters, from 1
	text         string
	quote        yaml.Style
}

// pass goes behind a part of the value of a scalar. It reports false where what is there is
// another one.
func (c *cursor) pass(lines []string, value string) bool {
	for _, r := range value {
		if unicode.IsSpace(r) { // line breaks and indents are folded
			if strings.HasPrefix(c.text, string(r)) {
				c.skip(string(r))
			}
			continue
		}
		if !c.reach(lines, r) {
			return false
		}
		c.skip(c.written(r))
	}
	return true
}

// reach goes to the next character that is no space, and reports whether it is this one.
func (c *cursor) reach(lines []string, r rune) bool {
	for {
		next, size := utf8.DecodeRuneInString(c.text)
		switch {
		case c.text == "" && c.line < len(lines):
			c.line, c.column, c.text = c.line+1, 1, lines[c.line]
		case size > 0 && unicode.IsSpace(next):
			c.skip(c.text[:size])
		case c.text == "\\" && c.quote&yaml.DoubleQuotedStyle != 0: // the line goes on below
			c.skip(c.text)
		default:
			return strings.HasPrefix(c.text, c.written(r))
		}
		if c.text == "" && c.line >= len(lines) {
			return false
		}
	}
}

// written is a character as it stands in the scalar.
func (c *cursor) written(r rune) string {
	switch {
	case c.quote&yaml.SingleQuotedStyle != 0 && r == '\'':
		return "''"
	case c.quote&yaml.DoubleQuotedStyle != 0 && (r == '"' || r == '\\'):
		return "\\" + string(r)
	}
	return string(r)
}

func (c *cursor) skip(text string) {
	c.text = c.text[len(text):]
	c.column += utf8.RuneCountInString(text)
}
