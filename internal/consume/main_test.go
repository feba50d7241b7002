package consume

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// After a lost connection go-nsq sleeps for lookupd_poll_interval, whatever happens.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/nsqio/go-nsq.(*Consumer).onConnClose.func1"))
}
