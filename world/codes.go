package world

import "github.com/worldkernel/worldkernel/governance"

// Codes of what the kernel itself tells a cell.
const (
	codeApprovalDenied  governance.Code = "approval_denied"
	codeApprovalExpired governance.Code = "approval_expired"
	codeInDoubt                         = "in_doubt"
	codeNotExecuted                     = "not_executed"
	codeCancelled                       = "cancelled"
	codeNotConfirmed                    = "not_confirmed"
	codeEdited                          = "edited"
	codeInputDenied                     = "input_denied"
)
