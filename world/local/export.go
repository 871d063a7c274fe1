package local

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/export"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// Format is a format in which a journal is read by others. What can be imported is a bundle:
// see ExportBundle. docs/exports.md says field by field what they hold:
//
//   - JSONLines: a record a line, an object with id, time, kind, caused_by,
//     payload (decoded; null where it was redacted) and raw (the stored bytes, standard base64);
//     the line that first needs blobs has them under blobs, base64 by hash.
//   - CloudEvents: a record a line, in the JSON format of CloudEvents 1.0.
//   - OTLP: a span a line, in the JSON encoding of OpenTelemetry's protocol.
type Format string

// The formats.
const (
	JSONLines   Format = "jsonl"
	CloudEvents Format = "cloudevents"
	OTLP        Format = "otlp"
)

// Formats returns the formats that Export writes.
func Formats() []Format { return []Format{JSONLines, CloudEvents, OTLP} }

// ledger is a world's, read while the world goes on.
type ledger struct{ lw *World }

// Intent returns what it knows of one.
func (l ledger) Intent(key receipt.Key) (e receipt.Entry, ok bool) {
	l.lw.View(func(m *world.Moment) { e, ok = m.Intent(key) })
	return e, ok
}

// Intents returns all of them.
func (l ledger) Intents() (all []receipt.Entry) {
	l.lw.View(func(m *world.Moment) { all = m.Intents() })
	return all
}

// Export writes the whole journal, as it is when it begins. The world goes on
// meanwhile. progress, which may be nil, is called with the number of records written.
func (lw *World) Export(w io.Writer, format Format, progress func(done uint64)) error {
	lw.still.RLock()
	defer lw.still.RUnlock()
	lw.mu.Lock()
	end, err := lw.store.Head().ID, lw.w.Sync()
	lw.mu.Unlock()
	if err != nil {
		return err
	}
	var write export.Writer
	switch format {
	case JSONLines:
		write = lw.writeJSONLine
	case CloudEvents:
		write = export.CloudEvents(lw.store, ledger{lw})
	case OTLP:
		write = export.OTLP(lw.store, ledger{lw})
	default:
		return fmt.Errorf("unknown format %q: want one of %q", format, Formats())
	}
	out := bufio.NewWriter(w)
	for s, err := range lw.store.Scan(0) {
		if err != nil {
			return err
		}
		if s.Err != nil {
			return s.Err
		}
		rec := s.Record
		if err := rec.Load(lw.store); err != nil && !errors.Is(err, journal.ErrRedacted) {
			return err
		}
		if err := write(out, &rec, s.Bytes); err != nil {
			return err
		}
		if progress != nil {
			progress(uint64(s.ID))
		}
		if s.ID == end {
			break
		}
	}
	return out.Flush()
}

// blobsOf returns the blobs that a record needs: its payload, unless it was
// redacted, and what a manifest names that it brings into the world.
func blobsOf(all journal.Blobs, rec *journal.Record) ([]journal.Blob, error) {
	var out []journal.Blob
	if rec.Payload == nil {
		return nil, nil
	}
	if !rec.Blob.IsZero() {
		out = append(out, journal.Blob{Hash: rec.Blob, Bytes: rec.Payload})
	}
	if !journal.BringsManifest(rec.Kind) {
		return out, nil
	}
	contents, err := contentsOf(all, rec)
	if err != nil {
		return nil, err
	}
	for _, h := range contents {
		content, err := all.Blob(h)
		if err != nil {
			return nil, err
		}
		out = append(out, journal.Blob{Hash: h, Bytes: content})
	}
	return out, nil
}

// jsonLine is a line of JSONLines.
type jsonLine struct {
	ID       journal.Seq       `json:"id"`
	Time     manifest.Tick     `json:"time"`
	Kind     journal.Kind      `json:"kind"`
	CausedBy journal.Seq       `json:"caused_by"`
	Payload  any               `json:"payload"`
	Raw      string            `json:"raw"`
	Blobs    map[string]string `json:"blobs,omitempty"`
}

func (lw *World) writeJSONLine(out *bufio.Writer, rec *journal.Record, stored []byte) error {
	blobs, err := blobsOf(lw.store, rec)
	if err != nil {
		return err
	}
	line := jsonLine{
		ID: rec.ID, Time: rec.Time, Kind: rec.Kind, CausedBy: rec.CausedBy,
		Raw: base64.StdEncoding.EncodeToString(stored),
	}
	if rec.Payload != nil {
		body, err := rec.Body()
		if err != nil {
			return err
		}
		line.Payload = body
	}
	for _, b := range blobs {
		if line.Blobs == nil {
			line.Blobs = make(map[string]string)
		}
		line.Blobs[b.Hash.String()] = base64.StdEncoding.EncodeToString(b.Bytes)
	}
	return json.NewEncoder(out).Encode(line)
}
