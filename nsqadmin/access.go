package nsqadmin

import (
	"net/http"
	"slices"

	"nsq/internal/httpx"
)

// acl says who may do actions.
type acl struct {
	header string
	users  []string
}

// admin says whether the request may do actions. The header is that of a trusted proxy.
func (a acl) admin(req *http.Request) bool {
	return len(a.users) == 0 || slices.Contains(a.users, req.Header.Get(a.header))
}

// errForbidden is the answer to those who may not.
var errForbidden = &httpx.Error{Status: http.StatusForbidden, Message: "FORBIDDEN"}

// sameOrigin refuses what other sites make browsers send.
func sameOrigin(handler http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"message":"FORBIDDEN"}`)) // a peer that is gone misses nothing
	}))
	return protection.Handler(handler)
}
