package manifest

import (
	"crypto/ed25519"
	"fmt"
)

// Terms are what a signature of a person binds: this change, of this manifest,
// in this world, with what this report says it would have done.
type Terms struct {
	World     string // its id
	Base      Hash   // the manifest that was in force
	Candidate Hash   // the manifest that is to be
	Report    Hash   // of a shadow; zero: the author's signature, who has seen none
}

// Statement returns the text that is signed: lines that a person can read, the
// first of which is found in nothing else that such a key signs.
func (t Terms) Statement() []byte {
	if t.Report.IsZero() {
		return fmt.Appendf(nil, "worldkernel proposal v1\nworld %s\nbase %s\ncandidate %s\n", t.World, t.Base, t.Candidate)
	}
	return fmt.Appendf(nil, "worldkernel approval v1\nworld %s\nbase %s\ncandidate %s\nreport %s\n",
		t.World, t.Base, t.Candidate, t.Report)
}

// Signature is an Ed25519 signature (RFC 8032) over Terms.Statement.
type Signature struct {
	_     struct{} `cbor:",toarray"`
	Key   PublicKey
	Bytes []byte
}

// Sign signs terms.
func Sign(key ed25519.PrivateKey, t Terms) Signature {
	return Signature{
		Key:   PublicKey(key.Public().(ed25519.PublicKey)), //nolint:forcetypeassert // documented to be one
		Bytes: ed25519.Sign(key, t.Statement()),
	}
}

// Verifies reports whether s is a signature of its key over terms.
func (s Signature) Verifies(t Terms) bool {
	return ed25519.Verify(s.Key[:], t.Statement(), s.Bytes)
}
