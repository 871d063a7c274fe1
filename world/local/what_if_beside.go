package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// Ask runs a what-if beside the world, which goes on, and has use look at what came of
// it. The directories of q are made for that, and gone afterwards; `worldctl gc` removes
// them where the process was killed.
func (lw *World) Ask(ctx context.Context, q WhatIf, use func(*Supposed) error) (err error) {
	dir, err := os.MkdirTemp(lw.dir, newDir) // on the disk of the world, where records need not be copied
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	q.Dir, q.Copy = filepath.Join(dir, "fork"), filepath.Join(dir, "past")
	x, err := lw.Suppose(ctx, q)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	opts := lw.opts
	opts.Effects, opts.asked, opts.live, opts.Remote, opts.Missed = "", 0, nil, false, nil // who answers is another matter there
	if err := x.Run(ctx, opts); err != nil {
		return err
	}
	return use(x)
}
