package worldctl

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/worldkernel/worldkernel/show/view"
)

// door is where all output of this program leaves it, but for documents and for what it
// paints itself. What a terminal does not print, but acts on or hides, is spelled out:
// as <U+001B>, and in JSON as \u001b, which is the same value to who reads it. No verb
// can forget it, for it has no other way out.
type door struct {
	to   io.Writer
	json func() bool // what is written is JSON

	mu   sync.Mutex // of what is told of a world that runs, and of Ctrl-C, by goroutines of their own
	rest []byte     // of a character whose end has not come
}

// Write implements io.Writer.
func (d *door) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := append(d.rest, p...)
	end := len(all)
	for back := 1; back < utf8.UTFMax && back <= len(all); back++ {
		if tail := all[len(all)-back:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				end -= back
			}
			break
		}
	}
	var out bytes.Buffer
	d.spell(&out, all[:end])
	d.rest = bytes.Clone(all[end:])
	_, err := d.to.Write(out.Bytes())
	return len(p), err
}

// close writes what is left of a character that was cut off.
func (d *door) close() error {
	var out bytes.Buffer
	d.spell(&out, d.rest)
	d.rest = nil
	_, err := d.to.Write(out.Bytes())
	return err
}

func (d *door) spell(out *bytes.Buffer, text []byte) {
	inJSON := d.json()
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(out, "<0x%02X>", text[0])
		case r == '\n', r == '\t', view.Prints(r):
			out.Write(text[:size])
		case !inJSON:
			fmt.Fprintf(out, "<%U>", r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(out, `\u%04x`, r)
		}
		text = text[size:]
	}
}

// doors puts the doors in front of the streams of this run.
func (c *cli) doors() (shut func() error) {
	c.rawOut, c.rawErr = c.stdout, c.stderr
	out := &door{to: flushed{c.rawOut}, json: func() bool { return c.output != formTable && c.output != "" }}
	c.stdout = bufio.NewWriter(out)
	c.stderr = &door{to: c.rawErr, json: func() bool { return false }}
	return func() error {
		for _, step := range []func() error{c.stdout.Flush, out.close, c.rawOut.Flush} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	}
}

// document is where a file goes whose bytes matter: as they are, but to a terminal.
func (c *cli) document() io.Writer {
	if c.origin.Width > 0 || c.rawOut == nil {
		return c.stdout
	}
	return c.rawOut
}

// bold prints a table with its head in bold.
type bold struct {
	c *cli
	t table.Writer
}

// Write implements io.Writer. It is given a whole table.
func (b bold) Write(p []byte) (int, error) {
	lines, head := strings.SplitAfter(string(p), "\n"), 0
	if b.t.Style().Options.DrawBorder {
		head = -1
		if len(lines) > 2 && strings.HasPrefix(lines[2], "├") {
			head = 1
		}
	}
	for i, line := range lines {
		if i != head || line == "\n" {
			fmt.Fprint(b.c.stdout, line)
			continue
		}
		b.c.paintedOut(text.Bold.EscapeSeq(), strings.TrimSuffix(line, "\n"))
		if strings.HasSuffix(line, "\n") {
			fmt.Fprintln(b.c.stdout)
		}
	}
	return len(p), nil
}

// paintedOut writes a text behind a sequence of this program's own, which passes the door, if the output is a
// terminal's that wants colors. No other sequence for terminals is written to stdout.
func (c *cli) paintedOut(sequence, words string) {
	painted := c.origin.Width > 0 && !c.plain()
	paint := func(sequence string) {
		_ = c.stdout.Flush()
		_, _ = c.rawOut.WriteString(sequence)
	}
	if painted {
		paint(sequence)
	}
	fmt.Fprint(c.stdout, words)
	if painted {
		paint(text.Reset.EscapeSeq())
	}
}

// flush has what was answered so far stand above what is said on stderr from now on.
func (c *cli) flush() {
	_ = c.stdout.Flush()
	if c.rawOut != nil {
		_ = c.rawOut.Flush()
	}
}
