package main

import (
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/llm"
	"github.com/worldkernel/worldkernel/host/mcp"
)

// adapters returns those that this program has besides the host's own, for one
// host: programs that want neither link neither.
func adapters() map[string]host.Factory {
	return map[string]host.Factory{"llm": llm.New, "mcp": mcp.Factory()}
}
