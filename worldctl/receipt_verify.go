package worldctl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/local"
)

// receiptCheck is what became of verifying receipts.
type receiptCheck struct {
	OK           bool         `json:"ok"`
	Checked      int          `json:"checked"`
	Unverifiable int          `json:"unverifiable"` // the world has no keys
	Bad          []badReceipt `json:"bad"`
}

type badReceipt struct {
	Key    receipt.Key `json:"key"`
	Record journal.Seq `json:"record"` // 0: it is not in the journal
	Error  string      `json:"error"`
}

func newReceiptVerifyCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "verify [FILE]",
		Short: "Verify the signatures of receipts",
		Long: `Verify all receipts in the journal, or those in FILE (- for stdin): what
receipt show -o json or -o jsonl printed, or the stored bytes of one receipt.
Those in FILE must also be the ones that the journal has.

Exit code 3 if one is forged, altered, foreign, unknown or a duplicate.`,
		Example: `  worldctl receipt verify
  worldctl receipt show 9f86d081884c -o json | worldctl receipt verify -`,
		Args: args(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.verifyReceipts((*receiptCheck).journal)
			}
			// What writes to stdin may still own the world: read it to its end.
			data, err := c.read(args[0])
			if err != nil {
				return err
			}
			if args[0] == "-" {
				c.stdin = bytes.NewReader(data) // for the owner
			}
			return c.verifyReceipts(func(check *receiptCheck, lw *local.World) error { return check.file(lw, args[0], data) })
		},
	}
}

func (c *cli) verifyReceipts(verify func(*receiptCheck, *local.World) error) error {
	return c.with(func(lw *local.World) error {
		check := &receiptCheck{Bad: []badReceipt{}}
		if err := verify(check, lw); err != nil {
			return err
		}
		check.OK = len(check.Bad) == 0
		if err := c.object("receipt-verify", check, func() { c.showReceiptCheck(check) }); err != nil || check.OK {
			return err
		}
		return hinted(fmt.Errorf("%w: %d of %d receipts are bad", errInvalid, len(check.Bad), check.Checked), "worldctl verify checks the whole world")
	})
}

func (c *cli) showReceiptCheck(check *receiptCheck) {
	fmt.Fprintf(c.stdout, "%d receipts checked, %d bad, %d unverifiable\n", check.Checked, len(check.Bad), check.Unverifiable)
	if check.OK {
		return
	}
	t := c.newTable()
	t.AppendHeader(table.Row{"key", "record", "error"})
	for _, b := range check.Bad {
		t.AppendRow(table.Row{short(b.Key), numbered(b.Record), b.Error})
	}
	t.Render()
}

// add counts one receipt and what verifying it came to.
func (check *receiptCheck) add(key receipt.Key, record journal.Seq, err error) {
	check.Checked++
	if err != nil {
		check.Bad = append(check.Bad, badReceipt{Key: key, Record: record, Error: err.Error()})
	}
}

// journal verifies all receipts of a world.
func (check *receiptCheck) journal(lw *local.World) error {
	for a, err := range recordsOf(lw).Answers() {
		if err != nil {
			return err
		}
		if a.Raw == nil {
			continue // the kernel made it: nobody signed it
		}
		if !lw.Keys().CanSign() {
			check.Unverifiable++
			continue
		}
		err = lw.Keys().Verify(&a.Receipt)
		if errors.Is(err, receipt.ErrRevokedKey) {
			err = nil // the journal took it while the key was good
		}
		check.add(a.Key, a.Record, err)
	}
	return nil
}

// file verifies the receipts in a file's content.
func (check *receiptCheck) file(lw *local.World, name string, data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return hinted(fmt.Errorf("%s is empty", name), "worldctl receipt show KEY -o json > FILE")
	}
	if data[0] != '{' {
		return check.raw(lw, data)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	for n := 1; ; n++ {
		var text json.RawMessage
		if err := dec.Decode(&text); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: receipt %d: %w", name, n, err)
		}
		raw, shown, err := parseReceipt(text)
		if err != nil {
			return hinted(fmt.Errorf("%s: receipt %d: %w", name, n, err), "worldctl receipt show KEY -o json prints what can be verified")
		}
		if shown != nil {
			check.add(shown.key, 0, shown)
			continue
		}
		if err := check.raw(lw, raw); err != nil {
			return err
		}
	}
}

// raw verifies one receipt by its stored bytes.
func (check *receiptCheck) raw(lw *local.World, data []byte) error {
	r, err := receipt.Decode(data)
	if err != nil {
		check.add(receipt.Key{}, 0, err)
		return nil
	}
	if !lw.Keys().CanSign() {
		check.Unverifiable++
		return nil
	}
	record, err := journal.Seq(0), lw.Keys().Verify(r)
	if err == nil || errors.Is(err, receipt.ErrRevokedKey) {
		at, unfit := recordsOf(lw).admits(data, r)
		if err == nil || at > 0 && unfit == nil { // the journal took it while the key was good
			record, err = at, unfit
		}
	}
	check.add(r.Key, record, err)
	return nil
}

// admits reports why a genuine receipt is not the one that the journal has, or
// would take.
func (j records) admits(data []byte, r *receipt.Receipt) (journal.Seq, error) {
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
		return nil, nil, errors.New("it does not carry its stored bytes under raw")
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
	x, errX := canon.FromJSON(a)
	y, errY := canon.FromJSON(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// maxFileBytes bounds what is read into memory at once.
const maxFileBytes = 256 << 20

// read returns the content of a file, or of stdin for "-".
func (c *cli) read(name string) ([]byte, error) {
	in := c.stdin
	if name != "-" {
		f, err := os.Open(c.path(name))
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // only read
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxFileBytes+1))
	if err == nil && len(data) > maxFileBytes {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxFileBytes)
	}
	return data, err
}
