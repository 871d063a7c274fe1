package bundle

import "fmt"

// maxDamage is how many errors of one bundle are kept.
const maxDamage = 10_000

// DamageError names a part of a bundle that is not what a Writer writes.
type DamageError struct {
	Item   uint64 // from 1, the header; 0: the file, before it is unpacked or as a whole
	Offset int64  // of the item in the unpacked bundle, in bytes
	Err    error  // what is wrong
}

func (e *DamageError) Error() string {
	if e.Item == 0 {
		return fmt.Sprintf("bundle: %v", e.Err)
	}
	return fmt.Sprintf("bundle: item %d, byte %d (unpacked): %v", e.Item, e.Offset, e.Err)
}

// Unwrap returns the cause.
func (e *DamageError) Unwrap() error { return e.Err }

// damaged keeps an error; item 0 is the whole file.
func (r *Reader) damaged(item uint64, at int64, format string, args ...any) {
	if len(r.damage) == maxDamage {
		r.omitted++
		return
	}
	r.damage = append(r.damage, &DamageError{Item: item, Offset: at, Err: fmt.Errorf(format, args...)})
}
