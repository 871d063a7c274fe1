package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/fxamacker/cbor/v2"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// importBatch is how many imported records become durable at once.
const importBatch = 2048

// importBytes is how many bytes such a batch has, or a few more.
const importBytes = 8 << 20

// Import makes a world in a directory of a journal that Export wrote, in either
// format. Without the content of its keyring file (nil) the world can be read
// and verified, not run; a sealed one stays sealed with its passphrase. The journal is replayed before the world is there;
// where that fails the directory is as it was. It is in no log, whatever opts say: there what is in
// flight would be taken for never begun. MoveInto takes it to one. progress may be nil.
func Import(ctx context.Context, dir string, r io.Reader, keyring []byte, opts Options, progress func(done uint64)) error {
	opts = opts.inDirectory()
	bounds := opts.Bounds.withDefaults()
	ctx, cancel := bounds.within(ctx)
	defer cancel()
	in := newStinted(cancelled{ctx, r}, bounds)
	next, err := exportReader(in)
	if err != nil {
		return err
	}
	first, err := next()
	if err != nil {
		return unread(0, err)
	}
	id, err := worldIDOf(first)
	if err != nil {
		return err
	}
	none, err := receipt.NewKeyring(id, nil)
	keys := ring{keys: none}
	if keyring != nil {
		keys, err = decodeKeyring(keyring, opts)
	}
	if err != nil {
		return fmt.Errorf("import: the keyring: %w", err)
	}
	if of := keys.keys.World(); of != id {
		return fmt.Errorf("import: the keyring was made for world %s, the journal is of %s", of, id)
	}
	return file.InDir(dir, func() error { return importTo(ctx, dir, keys, opts, first, next, progress) })
}

func importTo(ctx context.Context, dir string, keyring ring, opts Options, first exported, next func() (exported, error), progress func(uint64)) error {
	return build(dir, keyring, opts, func(hidden string, s *store.Store) error {
		if err := appendAll(s, first, next, progress); err != nil {
			return err
		}
		lw := &World{mu: newTurn(), dir: dir, hidden: hidden, store: s, keys: keyring.keys, opts: opts}
		if err := world.Adopt(ctx, lw.config(), opts.Bounds.withDefaults().Bounds); err != nil {
			return err
		}
		var err error
		if lw.w, err = world.Open(lw.config()); err != nil {
			return err
		}
		if lw.host != nil {
			if err := lw.host.Close(); err != nil {
				return err
			}
		}
		for _, h := range lw.w.Manifest().Contents() { // Open reads only what it runs
			if _, err := s.Blob(h); err != nil {
				return fmt.Errorf("import: content of the manifest: %w", err)
			}
		}
		return nil
	})
}

// exported is one record of an export, with the blobs that come with it.
type exported struct {
	data  []byte
	blobs []journal.Blob
}

// worldIDOf returns the world that an export's first record created.
func worldIDOf(first exported) (string, error) {
	rec, err := journal.DecodeRecord(first.data)
	if err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	body, err := rec.Body()
	if err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	created, ok := body.(*journal.Created)
	if !ok {
		return "", fmt.Errorf("import: the first record is %s: an export begins with %s", rec.Kind, journal.KindCreated)
	}
	return created.World, nil
}

// appendAll appends an export's records in batches.
func appendAll(s *store.Store, x exported, next func() (exported, error), progress func(uint64)) error {
	a := appender{store: s, missing: make(map[journal.Hash]journal.Seq)}
	for {
		rec, err := journal.DecodeRecord(x.data)
		if err != nil {
			return unread(a.batch.Head.ID, err)
		}
		if err := a.add(rec, x); err != nil {
			return err
		}
		x, err = next()
		done := errors.Is(err, io.EOF)
		if err != nil && !done {
			return unread(rec.ID, err)
		}
		if !done && len(a.batch.Records) < importBatch && a.bytes < importBytes {
			continue
		}
		if err := a.flush(); err != nil {
			return err
		}
		if progress != nil {
			progress(uint64(rec.ID))
		}
		if done {
			return a.close()
		}
	}
}

// appender gathers imported records in batches.
type appender struct {
	store   *store.Store
	chain   canon.Chain
	batch   journal.Batch
	bytes   int                          // of the batch
	missing map[journal.Hash]journal.Seq // payloads that did not come, and first records that have them
}

// add appends a record. With one that says that a payload was redacted the batch
// ends, so that the store is told.
func (a *appender) add(rec journal.Record, x exported) error {
	head := a.batch.Head
	if rec.ID != head.ID+1 {
		return fmt.Errorf("import: record #%d follows record #%d: records are missing, repeated or out of order", rec.ID, head.ID)
	}
	head = journal.Head{ID: rec.ID, Root: a.chain.Add(uint64(rec.ID), string(rec.Kind), x.data)}
	a.batch.Records = append(a.batch.Records, journal.Stored{ID: rec.ID, Bytes: x.data, Root: head.Root})
	a.batch.Blobs = append(a.batch.Blobs, x.blobs...)
	a.bytes += len(x.data)
	for _, b := range x.blobs {
		a.bytes += len(b.Bytes)
	}
	a.batch.Head = head
	for _, b := range x.blobs {
		delete(a.missing, b.Hash)
	}
	if !rec.Blob.IsZero() && rec.Load(journal.BlobList(x.blobs)) != nil && a.missing[rec.Blob] == 0 {
		if _, err := a.store.Blob(rec.Blob); err != nil {
			a.missing[rec.Blob] = rec.ID
		}
	}
	if rec.Kind != journal.KindRedacted {
		return nil
	}
	body, err := rec.Body()
	if err != nil {
		return unread(rec.ID-1, err)
	}
	if b, ok := body.(*journal.Redacted); ok {
		delete(a.missing, b.Blob)
		return a.store.Redact(b.Blob, a.flush)
	}
	return nil
}

// flush makes the batch durable and begins the next.
func (a *appender) flush() error {
	if len(a.batch.Records) == 0 {
		return nil
	}
	p, err := a.store.Append(a.batch)
	if err != nil {
		return err
	}
	a.batch, a.bytes = journal.Batch{After: a.batch.Head, Head: a.batch.Head}, 0
	return p.Wait()
}

// close refuses what lacks a payload that nobody redacted.
func (a *appender) close() error {
	for blob, id := range a.missing { // order shows in which one is named first; any is true
		return fmt.Errorf("import: record #%d: payload %s is missing, and no record says that it was redacted", id, blob)
	}
	return nil
}

// ErrCutOff says that a file ends within what it holds.
var ErrCutOff = errors.New("the file is cut off")

// unread says behind which record an export cannot be read; 0 is its beginning.
func unread(after journal.Seq, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = ErrCutOff
	}
	return fmt.Errorf("import: after record #%d: %w", after, err)
}

// exportReader tells the formats apart by their first byte.
func exportReader(in *stinted) (func() (exported, error), error) {
	first, err := in.Peek(1)
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("import: the file is empty")
	case err != nil:
		return nil, unread(0, err)
	}
	if first[0] == '{' {
		return jsonLines(in), nil
	}
	return cborItems(in), nil
}

func cborItems(in *stinted) func() (exported, error) {
	dec := cbor.NewDecoder(in)
	return func() (exported, error) {
		var x exported
		in.nextItem()
		for {
			var item cbor.RawMessage
			if err := dec.Decode(&item); err != nil {
				if errors.Is(err, io.EOF) && len(x.blobs) > 0 {
					return x, io.ErrUnexpectedEOF
				}
				if foreign := (*cbor.SyntaxError)(nil); errors.As(err, &foreign) {
					err = errors.New("what follows is no record")
				}
				return x, err
			}
			r := canon.NewReader(item)
			content := r.Bytes()
			if r.Close() != nil {
				x.data = bytes.Clone(item)
				return x, nil
			}
			x.blobs = append(x.blobs, journal.Blob{Hash: canon.Sum(content), Bytes: bytes.Clone(content)})
		}
	}
}

func jsonLines(in *stinted) func() (exported, error) {
	dec := json.NewDecoder(in)
	dec.DisallowUnknownFields()
	dec.UseNumber()
	return func() (exported, error) {
		in.nextItem()
		var line importedLine
		if err := dec.Decode(&line); errors.Is(err, io.EOF) {
			return exported{}, err
		} else if err != nil {
			return exported{}, canon.PlainJSON(err)
		}
		x := exported{data: line.Raw}
		for name, content := range line.Blobs {
			if canon.Sum(content).String() != name {
				return exported{}, fmt.Errorf("blob %s: the content has another hash", name)
			}
			x.blobs = append(x.blobs, journal.Blob{Hash: canon.Sum(content), Bytes: content})
		}
		return x, line.check(x.blobs)
	}
}

// importedLine is a jsonLine as it is read back.
type importedLine struct {
	ID       journal.Seq       `json:"id"`
	Time     manifest.Tick     `json:"time"`
	Kind     journal.Kind      `json:"kind"`
	CausedBy journal.Seq       `json:"caused_by"`
	Payload  any               `json:"payload"`
	Raw      []byte            `json:"raw"` // base64, by encoding/json
	Blobs    map[string][]byte `json:"blobs"`
}

// check compares what a line says to people with its raw bytes: a file that was
// changed in only one of them is refused.
func (l *importedLine) check(blobs journal.BlobList) error {
	rec, err := journal.DecodeRecord(l.Raw)
	if err != nil {
		return err
	}
	if l.ID != rec.ID || l.Time != rec.Time || l.Kind != rec.Kind || l.CausedBy != rec.CausedBy {
		return fmt.Errorf("the line of record #%d does not match its raw bytes", rec.ID)
	}
	if l.Payload == nil && !rec.Blob.IsZero() {
		return nil // appendAll finds out whether it was redacted
	}
	body, err := rec.LoadBody(blobs)
	if err != nil {
		return err
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	var want any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&want); err != nil {
		return err
	}
	if !reflect.DeepEqual(l.Payload, want) {
		return fmt.Errorf("the payload of record #%d does not match its raw bytes", rec.ID)
	}
	return nil
}
