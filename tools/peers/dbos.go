package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
)

const dbosPromise = "steps at least once, until their output is stored; a row for each step that has ended, none before it, in PostgreSQL " +
	"(fsync and synchronous_commit on), each its own synced transaction; workflows go on from these; nothing is chained or signed"

// dbosTransact has the cells be workflows of DBOS Transact, beside a PostgreSQL server.
func dbosTransact(ctx context.Context, w *work) error {
	server, err := startPostgres(ctx, w.dir)
	if err != nil {
		return err
	}
	defer server.stop()
	if err := server.durable(ctx); err != nil {
		return err
	}
	d, err := dbos.NewContext(ctx, dbos.Config{DatabaseURL: server.url, AppName: "peers", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	agent := func(ctx dbos.Context, effects int) (int, error) {
		for n := range effects {
			if _, err := dbos.RunAsStep(ctx, func(ctx context.Context) (string, error) { return w.Perform(ctx, n) }); err != nil {
				return n, err
			}
		}
		return effects, nil
	}
	dbos.RegisterWorkflow(d, agent, dbos.WithWorkflowName("agent"))
	if err := dbos.Launch(d); err != nil {
		return fmt.Errorf("launching: %w", err)
	}
	defer func() { _ = dbos.Shutdown(d, 10*time.Second) }()
	return w.measure(ctx, server.cpu, func(_ context.Context, cell int) error {
		h, err := dbos.RunWorkflow(d, agent, w.effects, dbos.WithWorkflowID("agent-"+strconv.Itoa(cell)))
		if err == nil {
			_, err = h.GetResult()
		}
		return err
	})
}
