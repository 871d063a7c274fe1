package receipt

import (
	"bytes"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Nearly all entries of an old world are of intents that were asked for once, attempted, and
// have ended: the part of [Entry] that writes those in few bytes. What is left out is where it
// is stored (the key), in another field (the cell, most of the step's id), or of no use any
// more (nonce and slot, see Ledger.rest). What entries have in common comes first and in one
// piece, so that it compresses; record ids are distances.

// The head and version of such an entry: an array of 16.
const (
	endedFields = 16
	endedHead   = "\x90\x01"
)

// stepHash is how much of a cell's history its steps' ids have.
const stepHash = 8

// plainEnd reports whether an entry says no more than a short one can.
func (e *Entry) plainEnd() bool {
	return e.Ended() && len(e.Asked) == 1 && e.Asked[0] <= e.Emitted && e.Emitted <= e.Finished && (e.Started == 0 || e.Emitted < e.Started) &&
		e.Nonce == Nonce{} && e.Slot == 0 && e.Deadline == 0 && e.Reserved == Cost{} && e.Unused == 0 && e.Undone == 0 && e.Former == 0 &&
		(len(e.Intent.Params) == 0 || string(e.Intent.Params) == canon.Null) &&
		len(e.Lost)+len(e.Held)+len(e.Inputs)+len(e.Apart) == 0 && e.For == nil && e.Repeats == nil && e.Polling == nil &&
		!e.Waiting && !e.Abandoned && !e.Reused && !e.Attested && !e.Uncertain && e.Seen == nil
}

// appendEnded appends the short form of an entry; false: it has none.
func (e *Entry) appendEnded(b []byte) ([]byte, bool) {
	if !e.plainEnd() {
		return b, false
	}
	s, ok := e.Intent.Step.parts(e.Intent.Cell)
	if !ok {
		return b, false
	}
	b = canon.AppendUint(canon.AppendArray(b, endedFields), entryVersion)
	for _, text := range [...]string{e.Intent.Kind, e.Intent.Tag, e.Intent.Cap, string(e.State), string(e.Outcome)} {
		b = canon.AppendText(b, text)
	}
	b = canon.AppendUint(canon.AppendUint(b, e.Attempt), e.Intent.Occurrence)
	b = canon.AppendText(b, e.Intent.Cell)
	b = canon.AppendUint(canon.AppendUint(b, s.n), s.i)
	b = canon.AppendUint(canon.AppendUint(b, e.Asked[0]), e.Emitted-e.Asked[0])
	b = canon.AppendUint(canon.AppendUint(b, e.startedAfter()), e.Finished-e.Emitted)
	return canon.AppendBytes(b, append(s.history[:], e.Params[:]...)), true
}

// startedAfter is how long after it was emitted an intent was permitted; 0: never.
func (e *Entry) startedAfter() uint64 {
	if e.Started == 0 {
		return 0
	}
	return e.Started - e.Emitted
}

// decodeEnded parses what appendEnded wrote of a key's intent.
func decodeEnded(key Key, data []byte) (*Entry, error) {
	in := canon.NewReader(data)
	in.ArrayOf(endedFields)
	e := &Entry{Version: in.Uint()}
	e.Intent = Intent{Key: key, Kind: in.Text(), Tag: in.Text(), Cap: in.Text()}
	e.State, e.Outcome = State(in.Text()), Outcome(in.Text())
	e.Attempt, e.Intent.Occurrence = in.Uint(), in.Uint()
	e.Intent.Cell = in.Text()
	s := stepParts{n: in.Uint(), i: in.Uint()}
	asked := in.Uint()
	e.Asked, e.Emitted = []uint64{asked}, asked+in.Uint()
	if after := in.Uint(); after > 0 {
		e.Started = e.Emitted + after
	}
	e.Finished = e.Emitted + in.Uint()
	hashes := in.Bytes()
	if err := in.Close(); err != nil {
		return nil, err
	}
	if len(hashes) != stepHash+len(e.Params) {
		return nil, ErrVersion
	}
	copy(e.Params[:], hashes[copy(s.history[:], hashes):])
	e.Intent.Step = s.id(e.Intent.Cell)
	if again, ok := e.appendEnded(nil); !ok || !bytes.Equal(again, data) {
		return nil, ErrVersion
	}
	return e, nil
}

// stepParts is what a step's id has besides the cell's name.
type stepParts struct {
	n, i    uint64
	history [stepHash]byte
}

func (s *stepParts) id(cell string) StepID {
	var h History
	copy(h[:], s.history[:])
	return NewStepID(cell, s.n, int(s.i), h)
}

// Number returns the number of a cell's step; false: an effect of no step has the id.
func (id StepID) Number(cell string) (uint64, bool) {
	s, ok := id.parts(cell)
	return s.n, ok
}

// parts takes the id of a cell's step apart; false: it is no such id.
func (id StepID) parts(cell string) (s stepParts, ok bool) {
	rest, ok := strings.CutPrefix(string(id), cell+"@")
	n, rest, ok2 := strings.Cut(rest, ".")
	i, history, ok3 := strings.Cut(rest, "~")
	if !ok || !ok2 || !ok3 || len(history) != hex.EncodedLen(stepHash) {
		return s, false
	}
	var failed [3]error
	s.n, failed[0] = strconv.ParseUint(n, 10, 64)
	s.i, failed[1] = strconv.ParseUint(i, 10, 31)
	_, failed[2] = hex.Decode(s.history[:], []byte(history))
	return s, failed == [3]error{} && s.id(cell) == id
}
