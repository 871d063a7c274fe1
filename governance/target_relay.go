package governance

import (
	"math"
	"math/bits"
	"net/url"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// Bounds of what a model call is taken to cost that does not say it.
const (
	// DefaultOutputTokens is the most that an answer is taken to have where neither the request
	// nor the config bounds it.
	DefaultOutputTokens = 64_000
	// spareInputTokens are set aside for what a provider adds to a request by itself.
	spareInputTokens = 1_000
)

// RelayTarget is the model call that a relay effect would pass on.
type RelayTarget struct {
	Upstream  map[string]string     `cbor:"upstream"`   // by dialect: where its API is; none: what the gateway says
	Keys      map[string]string     `cbor:"keys"`       // by dialect: a reference to the secret that goes in the place of the agent's own
	Prices    map[string]RelayPrice `cbor:"prices"`     // by model, or by a pattern such as claude-*
	MaxOutput uint64                `cbor:"max_output"` // tokens of an answer that the request does not bound; 0: DefaultOutputTokens

	Dialect     string   `cbor:"-"`
	Model       string   `cbor:"-"`
	Tools       []string `cbor:"-"` // offered, and those that the provider runs
	MaxTokens   uint64   `cbor:"-"` // of the answer; 0: the request does not bound it
	InputTokens uint64   `cbor:"-"` // estimated
}

// RelayPrice is what 1,000 tokens cost, in millionths of a unit of money.
type RelayPrice struct {
	Input      uint64 `cbor:"input"`
	Output     uint64 `cbor:"output"`
	CacheRead  uint64 `cbor:"cache_read"`
	CacheWrite uint64 `cbor:"cache_write"`
}

// relayHost returns the provider of a dialect; empty: there is no such dialect.
func relayHost(dialect string) string {
	switch dialect {
	case "openai":
		return "api.openai.com"
	case "anthropic":
		return "api.anthropic.com"
	}
	return ""
}

// ParseRelay reads the config and the params of a relay effect. Params are what
// recorder.Request says. The error is a *CapError.
func ParseRelay(config, params canon.Raw) (*RelayTarget, error) {
	t := new(RelayTarget)
	if err := decodeConfig(config, t); err != nil {
		return nil, err
	}
	for dialect, address := range t.Upstream { // order cannot show: which of two faults is told first is no matter
		if relayHost(dialect) == "" {
			return nil, capErrorf(CodeBadConfig, "upstream: there is no dialect %q: openai, anthropic", shortened(dialect))
		}
		if _, err := serverURL("upstream", address); err != nil {
			return nil, err
		}
	}
	for dialect, key := range t.Keys { // order cannot show: likewise
		if relayHost(dialect) == "" || !strings.HasPrefix(key, "secret://") {
			return nil, capErrorf(CodeBadConfig, "keys: want references by dialect, as {anthropic: secret://NAME}")
		}
	}
	if len(params) == 0 {
		return t, nil
	}
	t.Dialect, _ = lookup[string](params, "dialect")
	t.Model, _ = lookup[string](params, "model")
	t.MaxTokens, _ = lookup[uint64](params, "max_tokens")
	t.InputTokens, _ = lookup[uint64](params, "input_tokens")
	offered, _ := lookup[[]string](params, "tools")
	provided, _ := lookup[[]string](params, "server_tools")
	t.Tools = append(offered, provided...)
	return t, nil
}

// Allowed says which bound of a capability of type llm t exceeds; nil: none.
func (t *RelayTarget) Allowed(p *manifest.CapParams) *CapError {
	as := LLMTarget{Provider: t.Provider(), Model: t.Model, Tools: t.Tools, MaxTokens: t.MaxTokens}
	return as.Allowed(p)
}

// Provider returns the host that the call goes to, as far as the manifest says it.
func (t *RelayTarget) Provider() string {
	if u, err := url.Parse(t.Upstream[t.Dialect]); err == nil && u.Host != "" {
		return strings.ToLower(u.Hostname())
	}
	return relayHost(t.Dialect)
}

// MaxCost returns the most that the call can cost, of the units that a relay knows; known is
// false for money where no price is given.
func (t *RelayTarget) MaxCost() (most receipt.Cost, priced bool) {
	p, priced := t.Price(t.Model)
	if t.Model == "" { // what asks for no model uses none
		return receipt.Cost{}, priced
	}
	in, out := satAdd(t.InputTokens, spareInputTokens), t.MaxTokens
	if out == 0 {
		out = t.MaxOutput
	}
	if out == 0 {
		out = DefaultOutputTokens
	}
	dearest := max(p.Input, p.CacheRead, p.CacheWrite)
	return receipt.Cost{Tokens: satAdd(in, out), Micros: satAdd(micros(in, dearest), micros(out, p.Output))}, priced
}

// Price returns what tokens of a model cost: by its name, by the longest pattern that covers
// it, else the dearest of all. It is false where no price is given.
func (t *RelayTarget) Price(model string) (p RelayPrice, priced bool) {
	if p, ok := t.Prices[model]; ok {
		return p, true
	}
	longest := -1
	for pattern, price := range t.Prices { // order cannot show: patterns that are as long differ, and one covers the name
		if manifest.Match(pattern, model) && len(pattern) > longest {
			longest, p = len(pattern), price
		}
	}
	if longest >= 0 {
		return p, true
	}
	for _, price := range t.Prices { // order cannot show: the greatest of each
		p.Input, p.Output = max(p.Input, price.Input), max(p.Output, price.Output)
		p.CacheRead, p.CacheWrite = max(p.CacheRead, price.CacheRead), max(p.CacheWrite, price.CacheWrite)
	}
	return p, len(t.Prices) > 0
}

// Micros returns what tokens of a model cost, rounded up.
func (p RelayPrice) Micros(input, cacheRead, cacheWrite, output uint64) uint64 {
	return satAdd(satAdd(micros(input, p.Input), micros(cacheRead, p.CacheRead)), satAdd(micros(cacheWrite, p.CacheWrite), micros(output, p.Output)))
}

// micros returns what tokens cost at a price for 1,000, rounded up.
func micros(tokens, price uint64) uint64 {
	hi, lo := bits.Mul64(tokens, price)
	lo, carry := bits.Add64(lo, 999, 0)
	if hi += carry; hi >= 1000 {
		return math.MaxUint64
	}
	n, _ := bits.Div64(hi, lo, 1000)
	return n
}

// relayAdapter is the row of the adapter relay.
func relayAdapter() adapter {
	return adapter{
		parse: func(config, params canon.Raw) (target, error) { return ParseRelay(config, params) },
		uses:  func(u Unit) bool { return u != UnitBytes },
		costs: func(config, params canon.Raw, u Unit) (uint64, bool) {
			t, err := ParseRelay(config, params)
			if err != nil || u == UnitBytes {
				return 0, false
			}
			cost, priced := t.MaxCost()
			return *u.Of(&cost), priced || u != UnitMicros
		},
		needs: func(config canon.Raw) (Needs, error) {
			_, err := ParseRelay(config, nil)
			return Needs{Roaming: true}, err
		},
	}
}
