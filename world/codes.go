package world

import "github.com/worldkernel/worldkernel/governance"

// Codes of what the kernel itself tells a cell.
const (
	CodeApprovalDenied  governance.Code = "approval_denied"
	CodeApprovalExpired governance.Code = "approval_expired"
	CodeInDoubt                         = "in_doubt"
	CodeNotExecuted                     = "not_executed"
	CodeNotConfirmed                    = "not_confirmed"
)
