package receipt

import "github.com/worldkernel/worldkernel/internal/canon"

// Checked is a receipt that a keyring has found genuine. Only [Keyring.Check] makes one, so
// that who gets it can tell by whom it was looked at, and need not look again.
type Checked struct {
	receipt Receipt
	data    []byte
	by      *Keyring
}

// Check decodes a receipt and verifies it. The result keeps data, and is not to be changed.
func (k *Keyring) Check(d *Decoder, data []byte) (Checked, error) {
	c := Checked{data: data, by: k}
	if err := d.Decode(data, &c.receipt); err != nil {
		return Checked{}, err
	}
	if err := k.Verify(&c.receipt); err != nil {
		return Checked{}, err
	}
	return c, nil
}

// SignChecked is Sign for who goes on with the receipt: what a keyring has signed itself it need
// not look at again. The result keeps nothing of r that its maker could change.
func (k *Keyring) SignChecked(r Receipt) (c Checked, err error) {
	if r.World != k.world {
		return c, ErrWrongWorld
	}
	if err := k.seal(&r); err != nil {
		return c, err
	}
	if err := r.checkForm(); err != nil {
		return c, err
	}
	if err := r.checkParts(); err != nil {
		return c, err
	}
	b := r.appendHead(make([]byte, 0, r.sizeHint()))
	payload := len(b)
	b = canon.AppendRaw(b, r.Payload)
	r.Payload = b[payload:len(b):len(b)]
	b = r.appendTail(b)
	if r.StateChange != nil {
		change := *r.StateChange
		r.StateChange = &change
	}
	return Checked{receipt: r, data: b, by: k}, nil
}

// By reports whether this keyring did the check.
func (c *Checked) By(k *Keyring) bool { return k != nil && c.by == k }

// Receipt returns what the bytes say, which must not be changed.
func (c *Checked) Receipt() *Receipt { return &c.receipt }

// Bytes returns the bytes that were checked, which must not be changed.
func (c *Checked) Bytes() []byte { return c.data }
