package touch

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nsqio/go-nsq"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counter counts touches of one message.
type counter struct {
	nsq.MessageDelegate
	touches atomic.Int32
}

func (c *counter) OnTouch(*nsq.Message)  { c.touches.Add(1) }
func (c *counter) OnFinish(*nsq.Message) {}

func newMessage() (*nsq.Message, *counter) {
	m, c := nsq.NewMessage(nsq.MessageID{}, nil), new(counter)
	m.Delegate = c
	return m, c
}

// A message is touched once an interval while it is held, and neither before its second interval nor
// after its release.
func TestTouches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every = time.Second
		k := New(every)
		defer k.Stop()
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		pass(every / 2)
		m, touched := newMessage()
		quick, quickTouched := newMessage()
		k.Hold(m)
		k.Hold(quick)
		pass(every)
		if touched.touches.Load() != 0 {
			t.Errorf("%d touches in the first interval", touched.touches.Load())
		}
		k.Release(quick)
		for want := int32(1); want <= 3; want++ {
			pass(every)
			if touched.touches.Load() != want {
				t.Errorf("%d touches, want %d", touched.touches.Load(), want)
			}
		}
		if k.Held() != 1 {
			t.Errorf("%d messages are held, want 1", k.Held())
		}
		k.Release(m)
		pass(3 * every)
		if touched.touches.Load() != 3 || quickTouched.touches.Load() != 0 {
			t.Errorf("%d and %d touches after the release, want 3 and 0", touched.touches.Load(), quickTouched.touches.Load())
		}
	})
}

// A message that was answered before its release is not touched.
func TestAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := New(time.Second)
		defer k.Stop()
		m, touched := newMessage()
		k.Hold(m)
		m.Finish()
		time.Sleep(time.Minute)
		synctest.Wait()
		if touched.touches.Load() != 0 {
			t.Errorf("%d touches", touched.touches.Load())
		}
	})
}

// The first touch, two intervals late at worst, comes in time.
func TestInterval(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{
		0: 10 * time.Second, -1: 10 * time.Second, time.Second: time.Second / 4, 1: time.Millisecond,
	} {
		if got := Interval(timeout); got != want {
			t.Errorf("timeout %v: %v, want %v", timeout, got, want)
		}
	}
}
