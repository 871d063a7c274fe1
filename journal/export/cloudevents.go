package export

import (
	"bufio"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// What begins the source and the type of every CloudEvent. It is no
// reverse-DNS name, which the specification asks for with a SHOULD: there is no
// domain to take one from.
const (
	sourcePrefix = "worldkernel:"
	typePrefix   = "worldkernel."
)

// cloudEvents writes CloudEvents, as docs/exports.md says.
type cloudEvents struct {
	past
	inForce
}

// CloudEvents writes a record a line, in the JSON format of CloudEvents 1.0.
func CloudEvents(h journal.History, l Ledger) Writer { return (&cloudEvents{past: past{h, l}}).write }

// cloudEvent is a record in the JSON event format of CloudEvents 1.0. Numbers are
// text: the specification's Integer has 32 bits.
type cloudEvent struct {
	SpecVersion string       `json:"specversion"`
	ID          string       `json:"id"`
	Source      string       `json:"source"`
	Type        string       `json:"type"`
	Subject     string       `json:"subject,omitempty"`
	Time        string       `json:"time"`
	Tick        string       `json:"tick"`
	CausedBy    string       `json:"causedby,omitempty"`
	ContentType string       `json:"datacontenttype"`
	Data        journal.Body `json:"data"` // null: redacted
}

func (c *cloudEvents) write(out *bufio.Writer, rec *journal.Record, _ []byte) error {
	if err := c.follow(rec, c); err != nil {
		return err
	}
	e := cloudEvent{
		SpecVersion: "1.0", ID: number(rec.ID), Source: sourcePrefix + c.world, Type: typePrefix + string(rec.Kind),
		Time: time.Unix(0, c.manifest.Clock.At(rec.Time)).UTC().Format(time.RFC3339Nano), Tick: number(rec.Time),
		ContentType: "application/json",
	}
	if rec.CausedBy != 0 {
		e.CausedBy = number(rec.CausedBy)
	}
	if rec.Payload != nil {
		var err error
		if e.Data, err = rec.Body(); err != nil {
			return err
		}
		if e.Subject, err = c.subjectOf(rec); err != nil {
			return err
		}
	}
	return json.NewEncoder(out).Encode(e)
}

// number returns an id or a tick as text.
func number[N ~uint64](n N) string { return strconv.FormatUint(uint64(n), 10) }

// subjectOf returns the cell that a record is about, "" where that is none or
// several. A record that names an intent is about the intent's cell.
func (p past) subjectOf(rec *journal.Record) (string, error) {
	if key, cell, ok := journal.IntentOf(rec.Kind, rec.Payload); ok {
		if len(cell) > 0 {
			return attributeText(string(cell)), nil
		}
		e, _ := p.Intent(receipt.Key{Hash: key})
		return attributeText(e.Intent.Cell), nil
	}
	var cells []string
	err := journal.EachCell(rec.Kind, rec.Payload, func(cell []byte) { cells = append(cells, string(cell)) })
	if err != nil || len(cells) != 1 {
		return "", err
	}
	return attributeText(cells[0]), nil
}

// attributeText returns s, or "" where it holds a character that the attributes
// of CloudEvents do not allow: control characters and what Unicode calls
// noncharacters.
func attributeText(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Noncharacter_Code_Point, r) }) {
		return ""
	}
	return s
}
