// Package worldkernel is a deterministic kernel for worlds of agents.
//
// A world is a journal folded into cells. A cell is an instance of a reducer: an event comes in, the
// reducer returns the next state, and may ask for an effect outside. A gate judges the effect, a host
// performs it at most once, and a signed receipt comes back as an event. All of that is in one hash-chained
// journal, so a world can be replayed without I/O, rolled back without paying twice, forked, upgraded through
// review, and verified offline.
//
// Three lines run a world in a directory (worldctl init makes one):
//
//	w, err := local.Open("support-desk", local.Options{})
//	_, err = w.Submit(ctx, "ticket.opened", map[string]any{"customer": "ada"})
//	err = w.Run(ctx)
//
// # The API
//
// Programs of yours import these packages; docs/go.md has an example of each:
//
//	worldctl            the whole command line, with reducers and adapters of yours: worldctl.Main
//	world/local         worlds in directories and stores
//	world/memory        worlds in memory, for experiments
//	world/worldtest     worlds in tests
//	world/source        world.yaml as a manifest
//	world, reducer, reducer/kit, host, host/llm, host/mcp, host/trust, receipt, manifest, journal, serve/worker
//	                    the types that these take and return
//
// All other packages are parts of worldctl. They are not an API: names in them change without notice.
//
// # Concurrent use
//
// A local.World and a host.Host are safe for concurrent use: calls take turns. A memory.World, a world.World, a
// reducer.Context and a receipt.Ledger are not. Reducers run one at a time; adapters run side by side.
//
// # Versions
//
// Formats and names may change until version 0.1.0. From then on journals, bundles and backups stay readable.
package worldkernel
