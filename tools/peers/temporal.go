package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const temporalPromise = "activities at least once, again for ever if they fail or their worker is lost (at most once with " +
	"MaximumAttempts 1, not used here); scheduled, started and completed are events of a history in SQLite (WAL, " +
	"synchronous=FULL), synced; workflows are replayed from it; nothing is chained or signed"

// queue is where the worker and the server meet.
const queue = "effects"

// temporal has the cells be workflows of Temporal, with a worker and a server in this
// process that speak gRPC.
func temporal(ctx context.Context, w *work) error {
	server, address, err := startTemporal(filepath.Join(w.dir, "temporal.db"))
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	defer func() { _ = server.Stop() }()
	c, err := client.DialContext(ctx, client.Options{
		HostPort: address, Namespace: namespace, Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		return err
	}
	defer c.Close()
	agent := func(ctx workflow.Context, effects int) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		for n := range effects {
			if err := workflow.ExecuteActivity(ctx, w.Perform, n).Get(ctx, nil); err != nil {
				return err
			}
		}
		return nil
	}
	wk := worker.New(c, queue, worker.Options{})
	wk.RegisterWorkflowWithOptions(agent, workflow.RegisterOptions{Name: "agent"})
	wk.RegisterActivity(w.Perform)
	if err := wk.Start(); err != nil {
		return err
	}
	defer wk.Stop()
	return w.measure(ctx, withinProcess, func(ctx context.Context, cell int) error {
		run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "agent-" + strconv.Itoa(cell), TaskQueue: queue}, "agent", w.effects)
		if err == nil {
			err = run.Get(ctx, nil)
		}
		return err
	})
}
