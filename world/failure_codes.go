package world

import "github.com/worldkernel/worldkernel/governance"

// Codes of what the kernel itself tells a cell.
const (
	codeApprovalDenied  governance.Code = "approval_denied"
	CodeApprovalExpired governance.Code = "approval_expired"
	codeStopped         governance.Code = "stopped"
	codeInDoubt                         = "in_doubt"
	codeNotExecuted                     = "not_executed"
	codeCancelled                       = "cancelled"
	codeNotConfirmed                    = "not_confirmed"
	codeEdited                          = "edited"
	codeInputDenied                     = "input_denied"
)
