package export

import (
	"math"
	"strconv"
)

// otlpSchema names the conventions that the attributes follow.
const otlpSchema = "https://opentelemetry.io/schemas/1.37.0"

// otlpRequest is an ExportTraceServiceRequest in the JSON encoding of OTLP:
// names in camelCase, ids in hex, 64-bit numbers as text, enumerations as
// numbers.
type otlpRequest struct {
	Spans [1]otlpResourceSpans `json:"resourceSpans"`
}

type otlpResourceSpans struct {
	Resource struct {
		Attributes otlpAttributes `json:"attributes"`
	} `json:"resource"`
	Scopes [1]otlpScopeSpans `json:"scopeSpans"`
}

type otlpScopeSpans struct {
	Scope struct {
		Name string `json:"name"`
	} `json:"scope"`
	Spans  [1]*otlpSpan `json:"spans"`
	Schema string       `json:"schemaUrl"`
}

type otlpSpan struct {
	Trace      string         `json:"traceId"`
	ID         string         `json:"spanId"`
	Parent     string         `json:"parentSpanId,omitempty"`
	Name       string         `json:"name"`
	Kind       otlpSpanKind   `json:"kind"`
	Start      string         `json:"startTimeUnixNano"`
	End        string         `json:"endTimeUnixNano"`
	Attributes otlpAttributes `json:"attributes"`
	Links      []otlpLink     `json:"links,omitempty"`
	Status     *otlpStatus    `json:"status,omitempty"`
}

type otlpSpanKind int

// The kinds of spans that a world has.
const (
	otlpInternal otlpSpanKind = 1
	otlpClient   otlpSpanKind = 3
	otlpConsumer otlpSpanKind = 5
)

type otlpLink struct {
	Trace string `json:"traceId"`
	ID    string `json:"spanId"`
}

type otlpStatus struct {
	Message string `json:"message,omitempty"`
	Code    int    `json:"code"`
}

const otlpError = 2 // a code of otlpStatus

type otlpAttributes []otlpAttribute

type otlpAttribute struct {
	Key   string    `json:"key"`
	Value otlpValue `json:"value"`
}

type otlpValue struct {
	Text  *string    `json:"stringValue,omitempty"`
	Bool  *bool      `json:"boolValue,omitempty"`
	Int   string     `json:"intValue,omitempty"`
	Array *otlpArray `json:"arrayValue,omitempty"`
}

type otlpArray struct {
	Values []otlpValue `json:"values"`
}

// text adds a text, unless it is empty.
func (a *otlpAttributes) text(key, value string) {
	if value != "" {
		*a = append(*a, otlpAttribute{key, otlpValue{Text: &value}})
	}
}

// texts adds a list of texts, unless it is empty.
func (a *otlpAttributes) texts(key string, values []string) {
	if len(values) == 0 {
		return
	}
	list := new(otlpArray)
	for _, value := range values {
		list.Values = append(list.Values, otlpValue{Text: &value})
	}
	*a = append(*a, otlpAttribute{key, otlpValue{Array: list}})
}

func (a *otlpAttributes) number(key string, value uint64) {
	*a = append(*a, otlpAttribute{key, otlpValue{Int: strconv.FormatUint(min(value, math.MaxInt64), 10)}})
}

// yes adds true, unless it is false.
func (a *otlpAttributes) yes(key string, value bool) {
	if value {
		*a = append(*a, otlpAttribute{key, otlpValue{Bool: &value}})
	}
}

// fail gives a span the status of an error.
func (s *otlpSpan) fail(kind, message string) {
	s.Attributes.text("error.type", kind)
	s.Status = &otlpStatus{Message: message, Code: otlpError}
}

// unixNanos returns a time as OTLP has it, which has none before 1970.
func unixNanos(t int64) string { return strconv.FormatInt(max(t, 0), 10) }
