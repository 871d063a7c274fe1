// Command worldctl creates, runs, inspects and verifies worlds of agents.
package main

import (
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/llm"
	"github.com/worldkernel/worldkernel/host/mcp"
	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/worldctl"
)

func main() {
	worldctl.Main(worldctl.Options{
		Reducers: reducer.Registry{recorder.Name + "@" + recorder.Version: recorder.New},
		Adapters: map[string]host.Factory{"llm": llm.New, "mcp": mcp.New, "relay": relay.New(nil)},
	})
}
