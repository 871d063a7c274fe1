package world

import (
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// ready is the output of a kernel since the last takeReady: the batch must be durable before a task begins or
// an input is acknowledged.
type ready struct {
	journal.Batch
	Tasks []receipt.Task
}

// arenaBytes is the size of the buffers that records are written to. Mailboxes
// keep parts of them alive, so a buffer is never reused.
const arenaBytes = 64 << 10

// recorder writes records: it numbers, encodes and chains them.
type recorder struct {
	chain   *canon.Chain
	taken   journal.Head // the head at the last takeReady
	last    journal.Seq
	now     manifest.Tick
	records []journal.Stored
	blobs   []journal.Blob
	tasks   []receipt.Task
	arena   []byte
	volume  uint64 // bytes written so far, with the memory held for them
	body    []byte // scratch: the payload of the record being written

	// In a world that keeps no records they are numbered, and only their execution hash is computed.
	execution *journal.Execution // nil: records are kept
	failed    error              // first error of execution

	// In a replay roots are computed on demand: the goroutine that reads the journal ahead has mostly computed
	// a root before it is needed.
	late   bool
	kinds  []journal.Kind // if late: of records
	linked int            // if late: number of records that have their roots
}

func newRecorder(head journal.Head, now manifest.Tick) recorder {
	return recorder{chain: canon.ResumeChain(head.Root), taken: head, last: head.ID, now: now}
}

// head returns the head with everything written so far.
func (r *recorder) head() journal.Head { return journal.Head{ID: r.last, Root: r.root()} }

// writeRecord appends a record and returns its id.
func (r *recorder) writeRecord(kind journal.Kind, cause journal.Seq, b journal.Body) journal.Seq {
	if r.execution != nil {
		r.last++
		if err := r.execution.Add(b); err != nil && r.failed == nil {
			r.failed = err
		}
		return r.last
	}
	id, _ := r.write(kind, cause, journal.Append(r.body[:0], b))
	return id
}

// write is writeRecord for the frequent kinds that have no line in the execution hash. The caller has appended
// the payload to the empty r.body, so that its struct needs no memory of its own. payload is the written payload,
// in memory that stays as it is.
func (r *recorder) write(kind journal.Kind, cause journal.Seq, body []byte) (id journal.Seq, payload []byte) {
	r.body = body
	if r.execution != nil {
		return r.pass(body)
	}
	r.last++
	e := canon.Envelope{ID: uint64(r.last), Time: uint64(r.now), Kind: string(kind), CausedBy: uint64(cause)}
	if len(r.body) > journal.MaxInlineBytes {
		payload, r.body = r.body, nil // which is too long to be copied
		e.Blob, e.BlobSize = canon.Sum(payload), uint64(len(payload))
		r.blobs = append(r.blobs, journal.Blob{Hash: e.Blob, Bytes: payload})
	} else {
		e.Payload = r.body
	}
	if most := len(r.body) + envelopeBytes; cap(r.arena)-len(r.arena) < most {
		r.arena = make([]byte, 0, max(arenaBytes, most))
	}
	start := len(r.arena)
	r.arena = canon.AppendEnvelope(r.arena, e)
	bytes := r.arena[start:len(r.arena):len(r.arena)]
	if payload == nil {
		payload = bytes[len(bytes)-len(r.body):]
	}
	r.volume += uint64(len(bytes)+len(payload)) + recordBytes
	s := journal.Stored{ID: r.last, Bytes: bytes}
	if r.late {
		r.kinds = append(r.kinds, kind)
	} else {
		s.Root = r.chain.Add(uint64(r.last), string(kind), bytes)
	}
	r.records = append(r.records, s)
	return r.last, payload
}

// pass is write in a world that keeps no records. Of the payload it keeps the end, which mailboxes refer to.
func (r *recorder) pass(end []byte) (id journal.Seq, payload []byte) {
	r.last++
	r.execution.Skip()
	if len(end) == 0 {
		end = []byte(canon.Null)
	}
	return r.last, r.stable(end)
}

// stable copies bytes to memory that stays as it is: mailboxes refer to it.
func (r *recorder) stable(b []byte) []byte {
	if cap(r.arena)-len(r.arena) < len(b) {
		r.arena = make([]byte, 0, max(arenaBytes, len(b)))
	}
	start := len(r.arena)
	r.arena = append(r.arena, b...)
	return r.arena[start:len(r.arena):len(r.arena)]
}

// stepped is write for the outcome of a step.
func (r *recorder) stepped(cause journal.Seq, b *journal.Stepped) journal.Seq {
	if r.execution == nil {
		id, _ := r.write(journal.KindStepped, cause, b.Append(r.body[:0]))
		return id
	}
	r.last++
	r.execution.Step(b.Cell, b.N, b.Outcome)
	return r.last
}

// root returns the chain root with everything written so far.
func (r *recorder) root() journal.Hash {
	if r.late {
		for ; r.linked < len(r.records); r.linked++ {
			s := &r.records[r.linked]
			s.Root = r.chain.Add(uint64(s.ID), string(r.kinds[r.linked]), s.Bytes)
		}
	}
	return r.chain.Root()
}

// rootOf returns the chain root after the i-th record. known, if not zero, was computed elsewhere from the same
// bytes and the same previous root.
func (r *recorder) rootOf(i int, known journal.Hash) journal.Hash {
	if i == r.linked && !known.IsZero() {
		r.chain.Resume(known)
		r.records[i].Root = known
		r.linked++
	}
	if i >= r.linked {
		r.root()
	}
	return r.records[i].Root
}

// forget drops what was written, and keeps the head.
func (r *recorder) forget() {
	r.root()
	r.records, r.blobs, r.tasks = r.records[:0], nil, nil
	r.kinds, r.linked = r.kinds[:0], 0
}

// envelopeBytes is an upper bound of a record's bytes without its payload.
const envelopeBytes = 128

// pending returns the number of records written since the last takeReady. It means nothing in a fold.
func (r *recorder) pending() int { return int(r.last - r.taken.ID) }

// takeReady returns the output since its last call. The caller owns the result; into's memory is reused.
func (r *recorder) takeReady(into ready) ready {
	out := ready{
		Batch: journal.Batch{After: r.taken, Head: r.head(), Records: r.records, Blobs: r.blobs},
		Tasks: r.tasks,
	}
	r.taken = out.Head
	clear(into.Records)
	clear(into.Tasks)
	r.records, r.blobs, r.tasks = into.Records[:0], nil, into.Tasks[:0]
	r.kinds, r.linked = r.kinds[:0], 0
	return out
}
