package run

import "context"

type hurryKey struct{}

// withHurry returns a context whose Hurry channel the function closes; it may be called again.
func withHurry(parent context.Context) (context.Context, func()) {
	haste, hurry := context.WithCancel(context.Background())
	return context.WithValue(parent, hurryKey{}, haste.Done()), hurry
}

// Hurry returns the channel that is closed when a second signal asks a stopping daemon to make
// haste: to wait no longer for peers and requests, yet to lose nothing. ctx is that of Daemon.Run
// or one made from it; with any other the channel is nil, which is never ready.
func Hurry(ctx context.Context) <-chan struct{} {
	hurry, _ := ctx.Value(hurryKey{}).(<-chan struct{})
	return hurry
}
