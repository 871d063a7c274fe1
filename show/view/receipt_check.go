package view

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// ReceiptCheck is what became of verifying receipts.
type ReceiptCheck struct {
	OK           bool         `json:"ok"`
	Checked      int          `json:"checked"`
	Unverifiable int          `json:"unverifiable"` // the world has no keys
	Bad          []BadReceipt `json:"bad"`
}

// BadReceipt is an invalid receipt, with the reason.
type BadReceipt struct {
	Key    receipt.Key `json:"key"`
	Record journal.Seq `json:"record"` // 0: it is not in the journal
	Error  string      `json:"error"`
}

// Why what is to be checked is no receipt.
var (
	ErrNoReceipts = errors.New("there is no receipt in it")
	ErrNoRaw      = errors.New("it does not carry its stored bytes under raw")
)

// CheckReceipts verifies all receipts in the journal.
func (j Journal) CheckReceipts() (*ReceiptCheck, error) {
	check := &ReceiptCheck{OK: true, Bad: []BadReceipt{}}
	keys := j.Local.Keys()
	for a, err := range j.Answers() {
		if err != nil {
			return nil, err
		}
		if a.Raw == nil {
			continue // the kernel made it: nobody signed it
		}
		if !keys.CanSign() {
			check.Unverifiable++
			continue
		}
		err = keys.Verify(&a.Receipt)
		if errors.Is(err, receipt.ErrRevokedKey) {
			err = nil // the journal took it while the key was good
		}
		check.add(a.Key, a.Record, err)
	}
	return check, nil
}

// CheckShown verifies receipts that were shown: as JSON, one after the other, with
// their stored bytes, or the stored bytes of one. They must also be the ones that the
// journal has, or would take.
func (j Journal) CheckShown(data []byte) (*ReceiptCheck, error) {
	check := &ReceiptCheck{OK: true, Bad: []BadReceipt{}}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, ErrNoReceipts
	}
	if data[0] != '{' {
		return check, j.checkRaw(check, data)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	for n := 1; ; n++ {
		var text json.RawMessage
		err := dec.Decode(&text)
		if errors.Is(err, io.EOF) {
			return check, nil
		}
		if err == nil {
			err = j.checkShown(check, text)
		}
		if err != nil {
			return nil, fmt.Errorf("receipt %d: %w", n, canon.PlainJSON(err))
		}
	}
}

func (j Journal) checkShown(check *ReceiptCheck, text []byte) error {
	raw, shown, err := parseReceipt(text)
	if err != nil {
		return err
	}
	if shown != nil {
		check.add(shown.key, 0, shown)
		return nil
	}
	return j.checkRaw(check, raw)
}

// checkRaw verifies one receipt by its stored bytes.
func (j Journal) checkRaw(check *ReceiptCheck, data []byte) error {
	r, err := receipt.Decode(data)
	if err != nil {
		check.add(receipt.Key{}, 0, err)
		return nil
	}
	keys := j.Local.Keys()
	if !keys.CanSign() {
		check.Unverifiable++
		return nil
	}
	record, err := journal.Seq(0), keys.Verify(r)
	if err == nil || errors.Is(err, receipt.ErrRevokedKey) {
		at, unfit := j.admits(data, r)
		if err == nil || at > 0 && unfit == nil { // the journal took it while the key was good
			record, err = at, unfit
		}
	}
	check.add(r.Key, record, err)
	return nil
}

// add counts one receipt and what verifying it came to.
func (check *ReceiptCheck) add(key receipt.Key, record journal.Seq, err error) {
	check.Checked++
	if err != nil {
		check.OK = false
		check.Bad = append(check.Bad, BadReceipt{Key: key, Record: record, Error: err.Error()})
	}
}

// admits reports why a genuine receipt is not the one that the journal has, or
// would take.
func (j Journal) admits(data []byte, r *receipt.Receipt) (journal.Seq, error) {
	e, ok := j.LedgerEntry(r.Key)
	if !ok {
		return 0, receipt.ErrUnknownIntent
	}
	have, err := j.AnswerTo(&e, r.Attempt)
	current := r.Attempt == e.Attempt && r.Nonce == e.Nonce && (e.State == receipt.StateInFlight || e.State == receipt.StateInDoubt)
	switch {
	case err != nil:
		return 0, err
	case have != nil && have.Raw != nil && bytes.Equal(have.Raw, data):
		return have.Record, nil
	case have != nil && have.Raw != nil:
		return have.Record, receipt.ErrDuplicate
	case !current && !slices.Contains(e.Lost, receipt.Lost{Attempt: r.Attempt, Nonce: r.Nonce}):
		return 0, receipt.ErrWrongAttempt
	case r.Kind != e.Intent.Kind || r.ParamsHash != e.Params || r.Cap != e.Intent.Cap:
		return 0, receipt.ErrWrongIntent
	}
	return 0, nil
}

// alteredError says that a printed receipt does not say what its bytes say.
type alteredError struct {
	key    receipt.Key
	fields []string
}

func (e *alteredError) Error() string {
	return "altered: " + strings.Join(e.fields, ", ") + " is not what its stored bytes say"
}

// parseReceipt takes the stored bytes out of a printed receipt, and compares
// what else it says with them.
func parseReceipt(text []byte) (raw []byte, altered *alteredError, err error) {
	var said map[string]json.RawMessage
	if err := json.Unmarshal(text, &said); err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(said["raw"], &raw); err != nil || len(raw) == 0 {
		return nil, nil, ErrNoRaw
	}
	r, err := receipt.Decode(raw)
	if err != nil {
		return raw, nil, nil //nolint:nilerr // verifying the bytes says it again
	}
	printed, err := json.Marshal(r)
	if err != nil {
		return nil, nil, err
	}
	var says map[string]json.RawMessage
	if err := json.Unmarshal(printed, &says); err != nil {
		return nil, nil, err
	}
	altered = &alteredError{key: r.Key}
	for name, value := range says { // order cannot show: sorted below
		if other, ok := said[name]; ok && !sameJSON(value, other) {
			altered.fields = append(altered.fields, name)
		}
	}
	if len(altered.fields) == 0 {
		return raw, nil, nil
	}
	slices.Sort(altered.fields)
	return raw, altered, nil
}

func sameJSON(a, b []byte) bool {
	x, errX := canon.FromPrintedJSON(a)
	y, errY := canon.FromPrintedJSON(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
