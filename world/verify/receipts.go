package verify

import (
	"errors"

	"github.com/worldkernel/worldkernel/receipt"
)

// receipt checks a receipt's hash and signature and returns it, nil where it is
// none.
func (v *verifier) receipt(place string, data []byte) *receipt.Receipt {
	r, err := receipt.Decode(data)
	if err != nil {
		v.report.Receipts.Bad++
		v.fault(place, "receipt: %v", err)
		return nil
	}
	if v.report.WorldID != "" && r.World != v.report.WorldID {
		err = receipt.ErrWrongWorld
	} else {
		err = v.checkSignature(place, r)
	}
	if err != nil {
		v.report.Receipts.Bad++
		v.fault(place, "receipt of intent %s: %v", r.Key, err)
	}
	return r
}

// checkSignature counts a receipt by what can be said of its signature, and
// returns why it is bad. A parent's keys need not be there.
func (v *verifier) checkSignature(place string, r *receipt.Receipt) error {
	if v.canSign() && v.cfg.Keys.World() == r.World {
		err := v.cfg.Keys.Verify(r)
		if err == nil || errors.Is(err, receipt.ErrRevokedKey) { // it was valid when it was journaled
			v.report.Receipts.Checked++
			return nil
		}
		return err // an unknown key too: a keyring keeps the old ones
	}
	if err := checkHash(r); err != nil {
		return err
	}
	v.report.Receipts.Unverifiable++
	if v.unsigned == "" {
		v.unsigned = place
	}
	return nil
}

// checkHash returns why a receipt's hash is not that of its content.
func checkHash(r *receipt.Receipt) error {
	none, err := receipt.NewKeyring(r.World, nil)
	if err != nil {
		return err
	}
	if err := none.Verify(r); !errors.Is(err, receipt.ErrUnknownKey) {
		return err
	}
	return nil
}

func (v *verifier) canSign() bool { return v.cfg.Keys != nil && v.cfg.Keys.CanSign() }

// inherit makes the receipts so far those of a parent world.
func (v *verifier) inherit() {
	r := &v.report.Receipts
	r.Inherited += r.Checked + r.Unverifiable
	r.Checked, r.Unverifiable, v.unsigned = 0, 0, ""
}

// closeReceipts finds out when the journal has been read whether the keys are
// this world's.
func (v *verifier) closeReceipts() {
	r := &v.report.Receipts
	if r.Unverifiable == 0 || !v.canSign() {
		return
	}
	r.Bad, r.Unverifiable = r.Bad+r.Unverifiable, 0
	v.fault(v.unsigned, "the receipts from here on are of world %s, and the keys are those of %s", v.report.WorldID, v.cfg.Keys.World())
}
