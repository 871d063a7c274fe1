package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cschleiden/go-workflows/backend"
	"github.com/cschleiden/go-workflows/backend/monoprocess"
	"github.com/cschleiden/go-workflows/backend/sqlite"
	"github.com/cschleiden/go-workflows/client"
	"github.com/cschleiden/go-workflows/registry"
	"github.com/cschleiden/go-workflows/worker"
	"github.com/cschleiden/go-workflows/workflow"
)

const goWorkflowsPromise = "activities at least once, up to 3 times if they fail; scheduled and completed are events of a history " +
	"in SQLite (WAL, synchronous=FULL), each its own synced transaction; workflows are replayed from it; nothing is chained or signed"

// lifetime is how long a cell may take.
const lifetime = time.Hour

// goWorkflows has the cells be workflows of cschleiden/go-workflows, with a worker in
// this process that is told at once when there is something to do.
func goWorkflows(ctx context.Context, w *work) error {
	b := monoprocess.NewMonoprocessBackend(sqlite.NewSqliteBackend(filepath.Join(w.dir, "workflows.db"),
		sqlite.WithBackendOptions(backend.WithLogger(slog.New(slog.DiscardHandler)))))
	defer func() { _ = b.Close() }()
	agent := func(ctx workflow.Context, effects int) (int, error) {
		for n := range effects {
			if _, err := workflow.ExecuteActivity[string](ctx, workflow.DefaultActivityOptions, w.Perform, n).Get(ctx); err != nil {
				return n, err
			}
		}
		return effects, nil
	}
	wk := worker.New(b, nil)
	if err := wk.RegisterWorkflow(agent, registry.WithName("agent")); err != nil {
		return err
	}
	if err := wk.RegisterActivity(w.Perform); err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	if err := wk.Start(working); err != nil {
		stop()
		return err
	}
	c := client.New(b)
	err := w.measure(ctx, withinProcess, func(ctx context.Context, cell int) error {
		i, err := c.CreateWorkflowInstance(ctx, client.WorkflowInstanceOptions{InstanceID: "agent-" + strconv.Itoa(cell)}, "agent", w.effects)
		if err == nil {
			_, err = client.GetWorkflowResult[int](ctx, c, i, lifetime)
		}
		return err
	})
	stop()
	_ = wk.WaitForCompletion()
	return err
}
