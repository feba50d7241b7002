// Package protocol is bytes only: the commands, frames, names, limits and error codes of the V2
// protocol that clients speak with nsqd and of the V1 protocol that nsqd speaks with nsqlookupd.
// It knows no sockets, no topics and no state; every decoder checks a length against its limit
// before it uses it, and never keeps or grows memory on behalf of a peer.
//
// Source: nsqd-tcp spec, sections 2 to 6 and 25; nsqlookupd spec, section 3.
package protocol
