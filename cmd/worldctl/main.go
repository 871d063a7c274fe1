// Command worldctl creates, runs, inspects and verifies worlds of agents.
package main

import (
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/llm"
	"github.com/worldkernel/worldkernel/host/mcp"
	"github.com/worldkernel/worldkernel/worldctl"
)

func main() {
	worldctl.Main(worldctl.Options{Adapters: map[string]host.Factory{"llm": llm.New, "mcp": mcp.New}})
}
