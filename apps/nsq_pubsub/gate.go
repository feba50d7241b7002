package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	"nsq/internal/httpx"
)

var errForbidden = &httpx.Error{Status: http.StatusForbidden, Message: "FORBIDDEN"}

// gate says who may read and publish. It does not change.
type gate struct {
	nets   []netip.Prefix // none: every address
	header string
	users  []string // none: everybody
	sites  *http.CrossOriginProtection
}

func newGate(nets []string, header string, users []string) (*gate, error) {
	g := &gate{header: header, users: users, sites: http.NewCrossOriginProtection()}
	for _, text := range nets {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("--allow-from-cidr is invalid: %w", err)
		}
		g.nets = append(g.nets, prefix)
	}
	if len(users) > 0 && header == "" {
		return nil, errors.New("--allowed-user requires --acl-http-header")
	}
	return g, nil
}

// check returns errForbidden unless the request may be served.
func (g *gate) check(req *http.Request) error {
	// Reading a channel takes messages from others: a GET is no more innocent than a POST when another
	// site makes a browser send it.
	act := req.WithContext(req.Context())
	act.Method = http.MethodPost
	if g.sites.Check(act) != nil || !g.near(req.RemoteAddr) || !g.known(req.Header.Values(g.header)) {
		return errForbidden
	}
	return nil
}

// near says whether the peer has an address that is allowed; one of a unix socket has none.
func (g *gate) near(remote string) bool {
	if len(g.nets) == 0 {
		return true
	}
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	address := peer.Addr().Unmap().WithZone("")
	return slices.ContainsFunc(g.nets, func(p netip.Prefix) bool { return p.Contains(address) })
}

// known says whether the proxy names a user that is allowed; a second name is one that the proxy has not
// removed.
func (g *gate) known(names []string) bool {
	return len(g.users) == 0 || len(names) == 1 && slices.Contains(g.users, names[0])
}
