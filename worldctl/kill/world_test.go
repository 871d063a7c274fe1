package kill

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/stretchr/testify/require"
)

// again is the kind of payment that may be asked for twice under one key; once and
// looked may not. A verifier tells of the last whether it was made.
const (
	once   = "once"
	again  = "again"
	looked = "looked"
)

var paid = []string{once, once, again, looked}

const rules = `world: killed
version: %[2]d
reducers:
  client: {engine: starlark, source: client.star, grants: [bank]}
events:
  order:
  padded:
effects:
  bank.once:
    adapter: http
    config: {url: "http://127.0.0.1:%[1]s/once", method: POST}
    external_key: per_attempt
    retry: {attempts: 9, backoff: 1ms}
  bank.again:
    adapter: http
    config: {url: "http://127.0.0.1:%[1]s/again", method: POST}
    idempotent: true
    on_in_doubt: retry
    on_repeat: reuse
    retry: {attempts: 9, backoff: 1ms}
  bank.looked:
    adapter: http
    config: {url: "http://127.0.0.1:%[1]s/looked", method: POST}
    on_in_doubt: verify
    settles_after: 400ms
    verify: {adapter: http, config: {url: "http://127.0.0.1:%[1]s/seen"}}
    retry: {attempts: 9, backoff: 1ms}
caps:
  bank:
    type: http
    params: {schemes: [http], hosts: ["127.0.0.1"], ports: [%[1]s], methods: [POST], paths: [/once, /again, /looked]}
policies:
  - {name: payments, when: 'true', decide: allow}
routing:
  - {event: order, reducer: client, key: event.data.cell}
  - {event: padded, reducer: client, key: event.data.cell}
limits: {in_flight: %[3]d}
`

// client asks for a payment that it has not asked for yet.
const client = `def reduce(ctx, state, event):
    state = state or {}
    if event.name == "receipt":
        state[event.data["tag"]] = event.data["status"]
    elif event.name == "order":
        n = str(event.data["n"])
        if n not in state:
            state[n] = "asked"
            ctx.effect("bank." + event.data["kind"], {"json": {"cell": ctx.key, "n": event.data["n"]}}, tag=n)
    return state
`

// write writes the files of a world, of a version of its rules.
func (k *life) write(dir string, version int) {
	k.t.Helper()
	require.NoError(k.t, os.MkdirAll(dir, 0o700))
	for name, text := range map[string]string{
		"world.yaml": fmt.Sprintf(rules, k.bank.port(), version, 2+version%7), "client.star": client,
	} {
		require.NoError(k.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
}
