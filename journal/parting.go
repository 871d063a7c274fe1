package journal

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/worldkernel/worldkernel/receipt"
)

// Parting is where two journals part.
type Parting struct {
	Common Seq `json:"common"` // the last record that both have; 0: none
	A      Seq `json:"a"`      // the first of its own; 0: it ends with Common
	B      Seq `json:"b"`      // likewise
}

// PartingOf finds where two journals part that end with the records endA and
// endB. It reads a few records of each, as many as their number has binary
// digits: the link that is stored with a record stands for all before it.
func PartingOf(a, b History, endA, endB Seq) (Parting, error) {
	common, beyond := Seq(0), min(endA, endB)+1
	for common+1 < beyond {
		middle := common + (beyond-common)/2
		x, err := linked(a, middle)
		if err != nil {
			return Parting{}, err
		}
		y, err := linked(b, middle)
		if err != nil {
			return Parting{}, err
		}
		if x.Link == y.Link && bytes.Equal(x.Bytes, y.Bytes) {
			common = middle
		} else {
			beyond = middle
		}
	}
	p := Parting{Common: common}
	if common < endA {
		p.A = common + 1
	}
	if common < endB {
		p.B = common + 1
	}
	return p, nil
}

// linked returns a record with its link.
func linked(h History, id Seq) (Scanned, error) {
	for s, err := range h.Scan(id - 1) {
		if err != nil {
			return s, err
		}
		if s.ID == id {
			return s, nil
		}
		break
	}
	return Scanned{}, fmt.Errorf("journal: record #%d: %w", id, ErrNotFound)
}

// Spending is what effects cost in a part of a journal.
type Spending struct {
	receipt.Cost        // calls are attempts that began, but for those of which nothing left
	Answers      uint64 `json:"answers"` // receipts
}

// Spent sums what effects cost by the records after one, up to another. It reads
// them all.
func Spent(h History, after, to Seq) (Spending, error) {
	var sum Spending
	for s, err := range h.Scan(after) {
		if err == nil {
			err = s.Err
		}
		if err != nil {
			return sum, err
		}
		if s.ID > to {
			break
		}
		switch s.Record.Kind {
		case KindStarted:
			sum.Calls++
		case KindFinished:
			rec := s.Record
			err = sum.add(h, &rec)
		default: // it costs nothing
		}
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// add adds what the receipt in a record says.
func (sum *Spending) add(h History, rec *Record) error {
	body, err := rec.LoadBody(h)
	if err != nil {
		return err
	}
	finished, ok := body.(*Finished)
	if !ok {
		return errors.New("journal: " + string(rec.Kind) + " holds something else")
	}
	r, err := receipt.Decode(finished.Receipt)
	if err != nil {
		return fmt.Errorf("journal: record #%d: %w", rec.ID, err)
	}
	sum.Answers++
	sum.Tokens += r.Cost.Tokens
	sum.Bytes += r.Cost.Bytes
	sum.Micros += r.Cost.Micros
	if r.Unsent && sum.Calls > 0 { // else it began before
		sum.Calls--
	}
	return nil
}
