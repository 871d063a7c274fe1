package pglog

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"
)

// Check looks whether of each world the row can be so, all frames are there up to its head, all parts of its
// image, and its keyring, and yields a *DamageError for each of which they are not. It does not read them:
// Records, Blob and Kept see what is in them.
func (s *Store) Check(ctx context.Context) iter.Seq[error] {
	return func(yield func(error) bool) {
		var found []error
		err := s.insist(ctx, func(ctx context.Context) error {
			found = nil
			return s.rows(ctx, sqlCheck, nil, func(r pgx.Rows) error {
				var id, fault string
				var keyring bool
				var head, first, last, records, parts, there int64
				err := r.Scan(&id, &fault, &head, &first, &last, &records, &parts, &there, &keyring)
				if fault != "" {
					found = append(found, faultOf(id, fault))
					return err
				}
				if !keyring && head > 0 {
					found = append(found, &DamageError{id, "the keyring", errors.New("it is missing")})
				}
				if first != 1 || last != head || records != head {
					found = append(found, &DamageError{id, "the journal", fmt.Errorf(
						"the world ends at #%d, and there are %d records from #%d to #%d", head, records, first, last)})
				}
				if parts != there {
					found = append(found, &DamageError{id, "the image", errors.New("a part is missing")})
				}
				return err
			})
		})
		if err != nil {
			found = []error{err}
		}
		for _, err := range found {
			if !yield(err) {
				return
			}
		}
	}
}

// faultOf says what of a world's row cannot be so: see sqlFault.
func faultOf(id, fault string) error {
	return &DamageError{id, fault, errors.New("its row has what cannot be there, or is too long")}
}
