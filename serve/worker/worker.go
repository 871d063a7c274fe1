// Package worker performs the live effects of worlds that another process serves
// (package serve/api), over HTTP.
//
// Every attempt is handed out once, ever. A worker keeps it by renewing its lease,
// and begins it only while that lasts by the worker's own clock, counted from before
// the attempt was asked for: so a process that was stopped and wakes up does nothing
// that the server has given up meanwhile. Where the lease ends while an adapter is
// at work its context ends too. What came of an attempt is on the worker's disk
// before it is sent, and stays there until the server has it or has refused it for
// good.
//
// Below Config.Dir a worker keeps
//
//	.worker/lock                 held by the process that works with the directory
//	.worker/name                 the worker's name: what is left is handed in under it
//	.worker/secrets/             values of secret://NAME, a file each; made by people
//	.worker/worlds/ID/effects    results that a server may not have yet
//
// and effects that name relative paths find them in Dir.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/trust"
	"github.com/worldkernel/worldkernel/receipt"
)

// Config says for whom a worker works, and how. All but Server, Token and Dir may
// be left out.
type Config struct {
	Server string   // URL of the server, as https://worlds.example:8443
	Token  string   // one of its tokens, with the scope work
	Worlds []string // ids; empty: all that the server lists when the worker starts
	Name   string   // empty: the one that Dir has, or a new one
	Dir    string   // one for each worker, and for one server

	// Trust is what the worker does for its worlds; nil: what needs no secret, no program
	// and no file. trust.All is for a server whose owner is the worker's own.
	Trust *trust.Trust

	Adapters map[string]host.Factory                // besides the host's own
	Secrets  func(reference string) (string, error) // nil: the environment and .worker/secrets, see host.Secrets
	Workers  int                                    // effects performed at once, of each world; below 1: host.DefaultWorkers
	Grace    time.Duration                          // how long what runs has to end when the worker is stopped; 0: host.DefaultGrace
	UnderWay func(receipt.Permit) func()            // told of each attempt, see host.Config; nil: nobody is
	Log      *slog.Logger                           // nil: nobody reads it
}

// Why a worker stops by itself. What it has not handed in is kept in Dir.
var (
	ErrInUse     = errors.New("worker: another process works with the directory")
	ErrOtherName = errors.New("worker: the directory belongs to a worker with another name")
	ErrRefused   = errors.New("worker: the server refuses")
)

// Run works until ctx ends, which is no error: then it asks for nothing more, lets
// what runs end, and hands it in. It ends by itself where the server refuses to let
// it work for any of the worlds, and where its disk fails. A server that is not
// there is waited for.
func Run(ctx context.Context, cfg Config) error {
	if cfg.Workers <= 0 {
		cfg.Workers = host.DefaultWorkers
	}
	if cfg.Grace <= 0 {
		cfg.Grace = host.DefaultGrace
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Trust == nil {
		cfg.Trust = new(trust.Trust)
	}
	if err := cfg.Trust.CheckPrograms(cfg.Dir); err != nil {
		return fmt.Errorf("worker: trust file: %w", err)
	}
	own := filepath.Join(cfg.Dir, ownDir)
	c, err := newClient(&cfg)
	if err != nil {
		return err
	}
	lock, err := claim(own)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // the process ends, or another claims it
	if cfg.Name, err = nameOf(own, cfg.Name); err != nil {
		return err
	}
	if cfg.Secrets == nil {
		cfg.Secrets = host.Secrets(filepath.Join(own, "secrets"))
	}
	cfg.Secrets = cfg.Trust.Lookup(cfg.Secrets)
	worlds, err := c.worlds(ctx, cfg.Worlds, cfg.Log)
	if err != nil {
		return unlessOver(ctx, err)
	}
	return work(ctx, &cfg, c, worlds)
}

// work runs a worldWorker for each world until all have ended.
func work(ctx context.Context, cfg *Config, c *client, worlds []string) error {
	// Handing in may go on for a while after ctx.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(cfg.Grace+handing, end)
		context.AfterFunc(life, func() { timer.Stop() })
	})()
	workers := make([]*worldWorker, len(worlds))
	for i, id := range worlds {
		var err error
		if workers[i], err = newWorldWorker(cfg, c, id); err != nil {
			return err
		}
	}
	var all sync.WaitGroup
	faults := make([]error, len(worlds))
	for i, w := range workers {
		all.Go(func() {
			if err := w.work(ctx, life); err != nil {
				w.log.Error("the work for a world has ended", "error", err)
				faults[i] = fmt.Errorf("worker: world %s: %w", w.id, err)
			}
		})
	}
	all.Wait()
	return errors.Join(faults...)
}

// unlessOver leaves out what the end of ctx has brought about.
func unlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// makeOwn makes a directory that is the worker's alone.
func makeOwn(dir string) error { return os.MkdirAll(dir, 0o700) }
