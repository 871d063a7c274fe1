package manifest

import "strconv"

// maxApprovers bounds what one record of a proposal can gather.
const maxApprovers = 100

func (v *validator) governance(path string, g Governance) {
	n := len(g.Approvers)
	switch {
	case n == 0 && g.Needed() > 1:
		v.fault(path+"approvals", "more than one approval needs a list of approvers")
	case n > 0 && g.Needed() > uint64(n):
		v.fault(path+"approvals", "%d approvals cannot come from %d approvers", g.Approvals, n)
	}
	if g.FourEyes && n < 2 {
		v.fault(path+"four_eyes", "four eyes need at least two approvers")
	}
	if n > maxApprovers {
		v.fault(path+"approvers", "has %d entries, at most %d are allowed", n, maxApprovers)
	}
	v.approvers(path+"approvers/", g.Approvers)
}

func (v *validator) approvers(path string, approvers []Approver) {
	names := make(map[string]bool, len(approvers))
	keys := make(map[PublicKey]string, len(approvers)) // whose they are
	for i, a := range approvers {
		at := path + strconv.Itoa(i)
		v.check(at+"/name", checkText(a.Name))
		if names[a.Name] {
			v.fault(at+"/name", "the name %q is taken by an earlier approver", a.Name)
		}
		names[a.Name] = a.Name != ""
		other, taken := keys[a.Key]
		switch {
		case a.Key.IsZero():
			v.fault(at+"/key", "an approver needs a public key")
		case taken:
			v.fault(at+"/key", "the key is that of approver %q, too", other)
		default:
			keys[a.Key] = a.Name
		}
	}
}
