package local

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
)

// Format is a format of exported journals. Both hold the stored bytes of every
// record, and the blobs that records and manifests name, but those that were
// redacted:
//
//   - CBORSeq, RFC 8742: a record is an array, its stored bytes; the blobs that
//     it is the first to need come before it, each a byte string.
//   - JSONLines: a record a line, an object with id, time, kind, caused_by,
//     payload (decoded, for people; null where it was redacted) and raw (the stored bytes, standard base64);
//     the line that first needs blobs has them under blobs, base64 by hash.
type Format string

// The formats.
const (
	CBORSeq   Format = "cborseq"
	JSONLines Format = "jsonl"
)

// Export writes the whole journal. progress, which may be nil, is called with
// the number of records written.
func (lw *World) Export(w io.Writer, format Format, progress func(done uint64)) error {
	var write func(*bufio.Writer, *world.Record, world.Scanned, []world.Blob) error
	switch format {
	case CBORSeq:
		write = writeCBOR
	case JSONLines:
		write = writeJSONLine
	default:
		return fmt.Errorf("unknown format %q: want %s or %s", format, CBORSeq, JSONLines)
	}
	lw.mu.Lock()
	defer lw.mu.Unlock()
	out := bufio.NewWriter(w)
	for s, err := range lw.store.Scan(0) {
		if err != nil {
			return err
		}
		if s.Err != nil {
			return s.Err
		}
		rec := s.Record
		blobs, err := lw.blobsOf(&rec)
		if err != nil {
			return err
		}
		if err := write(out, &rec, s, blobs); err != nil {
			return err
		}
		if progress != nil {
			progress(uint64(s.ID))
		}
	}
	return out.Flush()
}

// blobsOf returns the blobs that a record needs: its payload, unless it was
// redacted, and what a manifest names that it brings into the world.
func (lw *World) blobsOf(rec *world.Record) ([]world.Blob, error) {
	var out []world.Blob
	if err := rec.Load(lw.store); errors.Is(err, world.ErrRedacted) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if !rec.Blob.IsZero() {
		out = append(out, world.Blob{Hash: rec.Blob, Bytes: rec.Payload})
	}
	if !world.BringsManifest(rec.Kind) {
		return out, nil
	}
	contents, err := lw.contentsOf(rec)
	if err != nil {
		return nil, err
	}
	for _, h := range contents {
		content, err := lw.store.Blob(h)
		if err != nil {
			return nil, err
		}
		out = append(out, world.Blob{Hash: h, Bytes: content})
	}
	return out, nil
}

func writeCBOR(out *bufio.Writer, _ *world.Record, s world.Scanned, blobs []world.Blob) error {
	for _, b := range blobs {
		if _, err := out.Write(canon.AppendBytes(nil, b.Bytes)); err != nil {
			return err
		}
	}
	_, err := out.Write(s.Bytes)
	return err
}

// jsonLine is a line of JSONLines.
type jsonLine struct {
	ID       world.Seq         `json:"id"`
	Time     manifest.Tick     `json:"time"`
	Kind     world.Kind        `json:"kind"`
	CausedBy world.Seq         `json:"caused_by"`
	Payload  any               `json:"payload"`
	Raw      string            `json:"raw"`
	Blobs    map[string]string `json:"blobs,omitempty"`
}

func writeJSONLine(out *bufio.Writer, rec *world.Record, s world.Scanned, blobs []world.Blob) error {
	line := jsonLine{
		ID: rec.ID, Time: rec.Time, Kind: rec.Kind, CausedBy: rec.CausedBy,
		Raw: base64.StdEncoding.EncodeToString(s.Bytes),
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
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if _, err := out.Write(data); err != nil {
		return err
	}
	return out.WriteByte('\n')
}
