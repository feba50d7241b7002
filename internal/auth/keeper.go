package auth

import (
	"context"
	"sync/atomic"
	"time"
)

// Keeper holds what one client was granted, and asks again when that has expired. It is safe for
// concurrent use: the client's commands and a check of its subscription may come at the same time.
type Keeper struct {
	client  *Client
	request *Request              // a pointer, behind which nobody prints
	grant   atomic.Pointer[Grant] // never nil
}

// Keep asks for the grant of a client and keeps it. Errors are those of Query.
func (c *Client) Keep(ctx context.Context, request Request) (*Keeper, error) {
	grant, err := c.Query(ctx, request)
	if err != nil {
		return nil, err
	}
	k := &Keeper{client: c, request: &request}
	k.grant.Store(grant)
	return k, nil
}

// Grant is what was granted last, expired or not. When it expires a subscription is to be checked
// again.
func (k *Keeper) Grant() *Grant { return k.grant.Load() }

// Valid is a grant that has not expired at now. If there is none the servers are asked with the
// secret of the first time; on an error, which is one of Query, the next call asks again. ErrRefused
// tells a client that lost its rights from servers that are out of order.
func (k *Keeper) Valid(ctx context.Context, now time.Time) (*Grant, error) {
	kept := k.grant.Load()
	if !kept.Expired(now) {
		return kept, nil
	}
	fresh, err := k.client.Query(ctx, *k.request)
	if err != nil {
		return nil, err
	}
	if !k.grant.CompareAndSwap(kept, fresh) {
		// Somebody else has asked meanwhile, and perhaps later than we did.
		return k.grant.Load(), nil
	}
	return fresh, nil
}
