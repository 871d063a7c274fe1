package governance

import (
	"fmt"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Verdict is the gate's answer about an effect. It is journaled as its text; the enumeration is
// append-only. The zero value is Deny.
type Verdict uint8

// Verdicts.
const (
	Deny Verdict = iota
	Allow
	RequireApproval
)

// String returns "deny", "allow" or "require_approval".
func (v Verdict) String() string {
	switch v {
	case Deny:
		return "deny"
	case Allow:
		return "allow"
	case RequireApproval:
		return "require_approval"
	default:
		return fmt.Sprintf("verdict(%d)", uint8(v))
	}
}

// MarshalText returns the text of a verdict, or an error for an unknown verdict.
func (v Verdict) MarshalText() ([]byte, error) {
	if v > RequireApproval {
		return nil, fmt.Errorf("governance: %s is not a verdict", v)
	}
	return []byte(v.String()), nil
}

// UnmarshalText parses the text of a verdict and refuses any other.
func (v *Verdict) UnmarshalText(text []byte) error {
	for known := Deny; known <= RequireApproval; known++ {
		if known.String() == string(text) {
			*v = known
			return nil
		}
	}
	return fmt.Errorf("governance: %q is not a verdict", text)
}

// MarshalCBOR returns the text of a verdict as a CBOR text string.
func (v Verdict) MarshalCBOR() ([]byte, error) {
	text, err := v.MarshalText()
	if err != nil {
		return nil, err
	}
	return canon.AppendText(nil, string(text)), nil
}

// UnmarshalCBOR parses the CBOR text string of a verdict and refuses any other.
func (v *Verdict) UnmarshalCBOR(data []byte) error {
	r := canon.NewReader(data)
	text := r.Text()
	if err := r.Close(); err != nil {
		return err
	}
	return v.UnmarshalText([]byte(text))
}

// Code names the check behind a denial; it is empty for other verdicts. Codes are journaled and
// append-only.
type Code string

// Codes, in the order of the checks.
const (
	CodeNoGrant        Code = "no_grant"         // the reducer holds no capability at all
	CodeUnknownCap     Code = "unknown_cap"      // the capability asked for is not among the reducer's grants
	CodeKindNotAllowed Code = "kind_not_allowed" // no capability in question covers the effect's kind
	CodeExpired        Code = "expired"          // every capability that covers the kind has expired
	CodePolicyDenied   Code = "policy_denied"    // a deny rule matched
	CodePolicyError    Code = "policy_error"     // no deny rule matched, but a rule could not be evaluated
	CodeNoPolicy       Code = "no_policy"        // no rule matched: the default is deny
	CodeNoMaxCost      Code = "no_max_cost"      // a budget bounds a unit of which the effect does not say how much it costs at most
	CodeBudgetExceeded Code = "budget_exceeded"  // a budget has not as much left as the effect may cost
)

// Codes of what effects of a typed adapter ask for, whatever the type; each
// target file has its own besides.
const (
	CodeBadConfig       Code = "bad_config"        // the effect's config has not the form that its adapter takes
	CodeBadParams       Code = "bad_params"        // params have not the form that the adapter takes
	CodeParamNotAllowed Code = "param_not_allowed" // a param that there is not, or that config fixes to something else
	CodeTooLarge        Code = "too_large"         // more bytes than config or capability allow
)

// CapError says which bound of a capability an effect exceeds.
type CapError struct {
	Code   Code
	Reason string // one sentence with the failed value

	cause error // that Reason tells of; nil: none
}

func (e *CapError) Error() string { return string(e.Code) + ": " + e.Reason }

// Unwrap returns the error that Reason tells of, if there is one.
func (e *CapError) Unwrap() error { return e.cause }

func capErrorf(code Code, format string, args ...any) *CapError {
	e := &CapError{Code: code, Reason: fmt.Sprintf(format, args...)}
	for _, arg := range args {
		if err, ok := arg.(error); ok {
			e.cause = err
		}
	}
	return e
}
