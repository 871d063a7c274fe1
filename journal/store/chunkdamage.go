package store

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/chunk"
	"github.com/worldkernel/worldkernel/journal"
)

// chunkDamage yields an error for each chunk that is not what was written, which names
// what it hurts, and for each content in chunks that is not for another reason.
func (s *Store) chunkDamage(yield func(error) bool) bool {
	hurt := make(map[uint64]*DamageError)
	more := s.each(chunkPrefix, func(key, value []byte) error {
		_, err := unseal(key, value)
		if damage := (*DamageError)(nil); errors.As(err, &damage) && hasNumber(key) {
			hurt[uint64(recordID(key))] = damage
			return nil
		}
		return err
	}, yield)
	if !more {
		return false
	}
	s.nameUsers(hurt)
	for _, number := range slices.Sorted(maps.Keys(hurt)) {
		if !yield(hurt[number]) {
			return false
		}
	}
	return s.listDamage(hurt, yield) && s.eachSealed(findPrefix, func(key, body []byte) error {
		k, err := parseKnown(key, body)
		if err == nil {
			if _, err = s.get(chunkKey(k.number)); errors.Is(err, journal.ErrNotFound) {
				err = damaged(key, errNoChunk)
			}
		}
		return err
	}, yield)
}

// namedUsers is how many contents the error about a chunk names.
const namedUsers = 3

// nameUsers writes into errors about chunks what needs these.
func (s *Store) nameUsers(hurt map[uint64]*DamageError) {
	if len(hurt) == 0 {
		return
	}
	users, reader := make(map[uint64][]string), s.chunkReader()
	_ = s.eachList(func(key, list []byte) error { // of lists that cannot be read listDamage tells
		l, err := chunk.Parse(list, maxContentBytes)
		if err != nil {
			return nil
		}
		_ = l.Each(reader.piece, func(number uint64, _ bool) bool { // ends at a damaged list
			name := nameOf(key)
			if hurt[number] != nil && !slices.Contains(users[number], name) {
				users[number] = append(users[number], name)
			}
			return true
		})
		return nil
	})
	for number, names := range users { // order cannot show: each is about another
		more := ""
		if left := len(names) - namedUsers; left > 0 {
			names, more = names[:namedUsers], fmt.Sprintf(" and %d more", left)
		}
		hurt[number].What += " (of " + strings.Join(names, ", ") + more + ")"
	}
}

// listDamage checks all contents in chunks. Chunks that are hurt are named already.
func (s *Store) listDamage(hurt map[uint64]*DamageError, yield func(error) bool) bool {
	reader := s.chunkReader()
	known := false // the error at hand
	pieces := func(number uint64) ([]byte, error) {
		known = hurt[number] != nil
		return reader.piece(number)
	}
	check := func(key, list []byte) error {
		known = false
		content, err := contentOf(list, pieces)
		switch {
		case err != nil && known:
			return nil
		case err == nil && key[0] == listPrefix && !isNamed(key, content):
			err = errBlobHash
		}
		if err != nil {
			return damaged(key, err)
		}
		return nil
	}
	return s.eachSealed(listPrefix, check, yield) && s.eachSealed(versionPrefix, func(key, body []byte) error {
		if !isInChunks(body) {
			return nil
		}
		return check(key, body[1:])
	}, func(err error) bool {
		// Of the sums of versions Damage tells where it comes to them.
		return errors.Is(err, errSum) || yield(err)
	})
}

// isNamed reports whether a key is that of a blob.
func isNamed(key, content []byte) bool {
	sum := canon.Sum(content)
	return bytes.Equal(key[1:], sum[:])
}
