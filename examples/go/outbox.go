package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/worldkernel/worldkernel/host"
)

// outbox is an adapter: it appends letters to a file.
type outbox struct{ file string }

func newOutbox(s host.Setup) (host.Adapter, error) {
	var config struct {
		File string `cbor:"file"`
	}
	err := s.Decode(&config)
	return &outbox{filepath.Join(s.Dir, config.File)}, err
}

// Perform makes one attempt. Its error says that nobody can tell what happened.
func (o *outbox) Perform(_ context.Context, call host.Call) (host.Result, error) {
	var l letter
	if err := call.Decode(&l); err != nil {
		return host.Refused(err), nil
	}
	f, err := os.OpenFile(o.file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return host.Refused(err), nil
	}
	_, err = f.WriteString(l.Text + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return host.Result{}, err
	}
	return host.OK(len(l.Text))
}
