package worldctl

import (
	"bytes"
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/worldkernel/worldkernel/receipt"
)

// holds fails unless a file holds the first secret of a keyring: holds FILE
// KEYRING. With ! it fails if the file does.
func holds(ts *testscript.TestScript, neg bool, args []string) {
	data, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	ring, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	at := bytes.Index(ring, []byte("secret")) + len("secret") + 2 // behind the head of 32 bytes
	secret := ring[at : at+receipt.SecretBytes]
	if bytes.Contains(data, secret) == neg {
		ts.Fatalf("%s: secret there: %v", args[0], !neg)
	}
}
