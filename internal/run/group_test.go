package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Parts stop one after the other, the last one first, each only when the one after it has ended.
func TestGroupStopsInReverse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		g := NewGroup(ctx)
		var steps []string // parts take turns, so no lock
		for _, name := range []string{"loop", "http", "tcp"} {
			g.Go(func(ctx context.Context) error {
				<-ctx.Done()
				steps = append(steps, name+" stops")
				time.Sleep(time.Second) // lets a part that does not wait for its turn show
				steps = append(steps, name+" ended")
				return ctx.Err() // as a part does that just hands on why it ended
			})
		}
		result := make(chan error)
		go func() { result <- g.Wait() }()
		synctest.Wait()
		if len(steps) > 0 {
			t.Fatalf("before the stop: %q", steps)
		}
		cancel()
		if err := <-result; err != nil {
			t.Errorf("error %v of a clean stop", err)
		}
		want := []string{"tcp stops", "tcp ended", "http stops", "http ended", "loop stops", "loop ended"}
		if !slices.Equal(steps, want) {
			t.Errorf("steps %q\nwant  %q", steps, want)
		}
	})
}

// The first failure stops the others and leads what Wait returns; failures while stopping follow.
func TestGroupFirstErrorWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGroup(t.Context())
		first, second := errors.New("accept failed"), errors.New("flush failed")
		g.Go(func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("close topics: %w", second)
		})
		g.Go(func(context.Context) error { time.Sleep(time.Minute); return first })
		g.Go(func(ctx context.Context) error { <-ctx.Done(); return nil })
		err := g.Wait()
		if want := "accept failed\nclose topics: flush failed"; err == nil || err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
		if !errors.Is(err, first) || !errors.Is(err, second) {
			t.Errorf("error %v does not wrap its causes", err)
		}
	})
}

// A part may be done before the rest. One that was not told to stop and reports a cancelled context
// has failed.
func TestGroupPartEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		g := NewGroup(ctx)
		g.Go(func(context.Context) error { return nil })
		result := make(chan error, 1)
		go func() { result <- g.Wait() }()
		synctest.Wait()
		select {
		case err := <-result:
			t.Fatalf("the end of a part ended the group: %v", err)
		default:
		}
		cancel()
		if err := <-result; err != nil {
			t.Error(err)
		}

		g = NewGroup(t.Context())
		g.Go(func(context.Context) error { return context.Canceled })
		if err := g.Wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want %v", err, context.Canceled)
		}
	})
}

// A group whose context is cancelled already still runs its parts, so that they can clean up, and
// they hear of a hurry.
func TestGroupContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, hurry := withHurry(t.Context())
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		hurry()
		g := NewGroup(ctx)
		ran := false
		g.Go(func(ctx context.Context) error {
			<-ctx.Done()
			<-Hurry(ctx)
			ran = true
			return nil
		})
		if err := g.Wait(); err != nil || !ran {
			t.Errorf("error %v, part ran: %v", err, ran)
		}
	})
}
