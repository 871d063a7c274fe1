package api

import (
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/show/view"
)

// listReceipts answers with a page of answers to intents, in the order of the journal.
func listReceipts(c *call) error {
	f := c.quoted("status")
	if f.Word != "" && !receipt.Status(f.Word).Known() {
		return badRequest("status", "it is none of a receipt")
	}
	s, err := c.selectionOf(f.ExactCell())
	if err != nil {
		return err
	}
	s.Kinds = view.AnswerKinds()
	receipts := []view.ReceiptLine{}
	next, err := page(c, s, func(e *view.Entry) (bool, error) {
		a, err := c.world.Answer(e)
		if a == nil || err != nil {
			return false, err
		}
		line := a.Line()
		fits := f.Fits(line.Cell, line.Kind, string(line.Status))
		if fits {
			receipts = append(receipts, line)
		}
		return fits, nil
	})
	return c.list("receipt-list", "receipts", receipts, next, err)
}

// showReceipt answers with the last answer to an intent that is not late, or with
// that to one attempt, late or not, and what the kernel made only where there is no
// other.
func showReceipt(c *call) error {
	e, err := c.intent()
	if err != nil {
		return err
	}
	found, err := c.world.AnswerTo(e, c.number("attempt"))
	if err != nil {
		return err
	}
	if found == nil {
		return notFound("there is no such receipt")
	}
	return c.ok(object{"receipt", found.Full()})
}
