package export

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// startedSpan is an attempt in flight.
type startedSpan struct {
	intent   journal.Seq // the intent.emitted that it follows from
	time     int64       // of its permit, by the world's calendar
	nanos    string      // likewise, as its span has it
	manifest *manifest.Manifest
}

func (x *spans) start(rec *journal.Record) error {
	body, err := rec.Body()
	if err != nil {
		return err
	}
	b := body.(*journal.Started)
	x.open[b.Key] = startedSpan{
		intent: rec.CausedBy, time: x.manifest.Clock.At(rec.Time), nanos: x.nanos(rec), manifest: x.manifest,
	}
	return nil
}

// effectSpan is the span of an attempt that has ended, or of a denial.
func (x *spans) effectSpan(rec *journal.Record) (*otlpSpan, error) {
	e, ok := x.intentOf(rec)
	if !ok {
		return nil, nil // it was redacted, and was not its intent's last word
	}
	asked, err := x.askedFor(&e, rec.ID)
	if err != nil || asked == nil {
		return nil, err
	}
	at, err := x.places.placeOf(asked.CausedBy)
	if err != nil {
		return nil, err
	}
	if _, err := x.places.keepPlace(rec); err != nil {
		return nil, err
	}
	s := x.span(rec, "", otlpInternal)
	x.stand(s, at)
	if rec.Kind == journal.KindDenied {
		return s, s.denial(&e, rec)
	}
	flight, open := x.open[e.Intent.Key]
	if open && rec.Kind != journal.KindLate {
		delete(x.open, e.Intent.Key)
		s.Start = flight.nanos
		if asked, err = x.record(flight.intent); err != nil {
			return nil, err
		}
	} else { // it was given up, and is answered after all
		flight = startedSpan{manifest: x.manifest}
	}
	params, err := s.intent(&e, asked)
	if err != nil {
		return nil, err
	}
	effect := flight.manifest.Effects[e.Intent.Kind]
	chat := effect.Adapter == manifest.CapLLM
	if chat {
		s.chat(effect.Config, params)
	} else {
		s.tool(e.Intent.Kind)
	}
	if rec.Payload == nil {
		return s, nil
	}
	return s, s.ending(rec, flight, chat)
}

// outside links a span to what the outside recorded of the attempt, if it did.
func (s *otlpSpan) outside(key receipt.Key, attempt uint64) {
	trace, span := key.Trace(attempt)
	s.Links = append(s.Links, otlpLink{Trace: trace, ID: span})
}

// denial makes a span one of an effect that never was: none of a tool or a model.
func (s *otlpSpan) denial(e *receipt.Entry, rec *journal.Record) error {
	s.Name = "deny " + e.Intent.Kind
	if _, err := s.intent(e, rec); err != nil {
		return err
	}
	if rec.Payload == nil {
		s.fail(string(receipt.StatusDenied), "")
		return nil
	}
	body, err := rec.Body()
	if err != nil {
		return err
	}
	b := body.(*journal.IntentDenied)
	s.fail(b.Code, b.Reason)
	return nil
}

// ending adds how an attempt ended.
func (s *otlpSpan) ending(rec *journal.Record, flight startedSpan, chat bool) error {
	body, err := rec.Body()
	if err != nil {
		return err
	}
	var data journal.Data
	switch b := body.(type) {
	case *journal.Expired:
		s.Attributes.number("worldkernel.attempt", b.Attempt)
		s.fail("expired", b.Reason)
		s.outside(b.Key, b.Attempt)
		return nil
	case *journal.Late:
		s.Attributes.yes("worldkernel.late", true)
		data = b.Receipt
	case *journal.Finished:
		data = b.Receipt
	}
	r, err := receipt.Decode(data)
	if err != nil {
		return err
	}
	// The receipts of deterministic effects have the permit's calendar time.
	if r.StartedAt != flight.time || r.FinishedAt != flight.time {
		s.Start, s.End = unixNanos(r.StartedAt), unixNanos(max(r.StartedAt, r.FinishedAt))
		s.Attributes.yes("worldkernel.wall_clock", true)
		s.outside(r.Key, r.Attempt)
	}
	s.receipt(r, chat)
	return nil
}

// intent adds what an effect is, and returns its params where they are known.
func (s *otlpSpan) intent(e *receipt.Entry, asked *journal.Record) (params journal.Data, err error) {
	a := &s.Attributes
	a.text("worldkernel.key", e.Intent.Key.String())
	a.text("worldkernel.step_id", string(e.Intent.Step))
	a.text("worldkernel.cell", e.Intent.Cell)
	a.text("worldkernel.kind", e.Intent.Kind)
	a.text("worldkernel.cap", e.Intent.Cap)
	if asked.Payload == nil {
		return nil, nil
	}
	var decision string
	var rules []string
	body, err := asked.Body()
	switch b := body.(type) {
	case *journal.IntentEmitted:
		decision, rules, params = b.Decision, b.Rules, b.Params
	case *journal.IntentDenied:
		decision, rules, params = "deny", b.Rules, b.Params
	case *journal.IntentAwaitingApproval:
		decision, rules, params = "require_approval", b.Rules, b.Params
	}
	a.text("worldkernel.decision", decision)
	a.texts("worldkernel.rules", rules)
	return params, err
}

// tool makes a span one of a tool, in the words of OpenTelemetry's conventions
// for generative AI.
func (s *otlpSpan) tool(kind string) {
	s.Name = "execute_tool " + kind
	s.Attributes.text("gen_ai.operation.name", "execute_tool")
	s.Attributes.text("gen_ai.tool.name", kind)
}

// chat makes a span one of a model.
func (s *otlpSpan) chat(config, params journal.Data) {
	s.Name, s.Kind = "chat", otlpClient
	s.Attributes.text("gen_ai.operation.name", "chat")
	t, err := governance.ParseLLM(config, params)
	if err != nil {
		return // an attempt that was refused for just that
	}
	s.Attributes.text("gen_ai.provider.name", providerName(t.Provider))
	s.Attributes.text("server.address", t.Provider)
	if base, err := url.Parse(t.BaseURL); err == nil {
		port, err := strconv.ParseUint(cmp.Or(base.Port(), map[string]string{"http": "80", "https": "443"}[base.Scheme]), 10, 16)
		if err == nil {
			s.Attributes.number("server.port", port)
		}
	}
	if t.Model != "" {
		s.Name = "chat " + t.Model
		s.Attributes.text("gen_ai.request.model", t.Model)
	}
	if t.MaxTokens != 0 {
		s.Attributes.number("gen_ai.request.max_tokens", t.MaxTokens)
	}
}

// providerName returns the conventions' name of who answers at a host. Of a host
// that is not known it is that of the API which the adapter speaks.
func providerName(host string) string {
	if strings.HasSuffix(host, ".openai.azure.com") {
		return "azure.ai.openai"
	}
	return cmp.Or(map[string]string{
		"api.anthropic.com":                 "anthropic",
		"api.cohere.ai":                     "cohere",
		"api.cohere.com":                    "cohere",
		"api.deepseek.com":                  "deepseek",
		"generativelanguage.googleapis.com": "gcp.gemini",
		"api.groq.com":                      "groq",
		"api.mistral.ai":                    "mistral_ai",
		"api.perplexity.ai":                 "perplexity",
		"api.x.ai":                          "x_ai",
	}[host], "openai")
}

// receipt adds what an attempt came to. Neither params nor answers are part of
// it, as the conventions want by default; what an error says is.
func (s *otlpSpan) receipt(r *receipt.Receipt, chat bool) {
	a := &s.Attributes
	a.number("worldkernel.attempt", r.Attempt)
	a.text("worldkernel.status", string(r.Status))
	a.text("worldkernel.outcome", string(r.Class))
	a.text("worldkernel.external_ref", r.ExternalRef)
	for _, cost := range []struct {
		unit string
		n    uint64
	}{{"tokens", r.Cost.Tokens}, {"bytes", r.Cost.Bytes}, {"micros", r.Cost.Micros}} {
		if cost.n != 0 {
			a.number("worldkernel.cost."+cost.unit, cost.n)
		}
	}
	if r.Status != receipt.StatusOK {
		s.fail(cmp.Or(textAt(r.Payload, "code"), string(r.Status)), complaint(r.Payload))
	}
	if !chat {
		return
	}
	a.text("gen_ai.response.id", r.ExternalRef)
	a.text("gen_ai.response.model", textAt(r.Payload, "model"))
	if reason := textAt(r.Payload, "finish_reason"); reason != "" {
		a.texts("gen_ai.response.finish_reasons", []string{reason})
	}
	for _, usage := range []struct{ name, field string }{
		{"gen_ai.usage.input_tokens", "prompt_tokens"},
		{"gen_ai.usage.output_tokens", "completion_tokens"},
	} {
		item, err := canon.Lookup(r.Payload, "usage", usage.field)
		number := canon.NewReader(item)
		if n := number.Uint(); err == nil && number.Close() == nil {
			a.number(usage.name, n)
		}
	}
}

// textAt returns the text under a key of a map, "" where there is none.
func textAt(data journal.Data, key string) string {
	item, err := canon.Lookup(data, key)
	if err != nil {
		return ""
	}
	return textOf(item)
}

// textOf returns an item that is a text, "" for another.
func textOf(item journal.Data) string {
	r := canon.NewReader(item)
	text := r.Text()
	if r.Close() != nil {
		return ""
	}
	return text
}

// complaint returns what the payload of a failure says, at most as much of it as
// a journal would hold of an error.
func complaint(payload journal.Data) string {
	text := cmp.Or(textAt(payload, "error"), textOf(payload))
	if len(text) <= journal.MaxTextBytes {
		return text
	}
	return strings.ToValidUTF8(text[:journal.MaxTextBytes], "") + "…"
}
