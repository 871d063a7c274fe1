package pglog

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"
)

// Check looks whether of each world all frames are there up to its head, and all parts of its
// image, and yields a *DamageError for each of which they are not. It does not read them:
// Records, Blob and Kept see what is in them.
func (s *Store) Check(ctx context.Context) iter.Seq[error] {
	return func(yield func(error) bool) {
		var found []error
		err := s.insist(ctx, func(ctx context.Context) error {
			found = nil
			return s.rows(ctx, sqlCheck, nil, func(r pgx.Rows) error {
				var id string
				var head, first, last, records, parts, there int64
				err := r.Scan(&id, &head, &first, &last, &records, &parts, &there)
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
