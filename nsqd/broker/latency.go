package broker

import (
	"time"

	"nsq/internal/metrics/histogram"
)

// NewDeliveryLatency returns a histogram for Config.DeliveryLatency: from a consumer that waits for the
// message to a backlog of hours.
func NewDeliveryLatency() *histogram.Durations {
	const us, ms, s = time.Microsecond, time.Millisecond, time.Second
	return histogram.New(50*us, 100*us, 250*us, 500*us, 1*ms, 2500*us, 5*ms, 10*ms, 25*ms, 50*ms, 100*ms, 250*ms, 500*ms,
		1*s, 2500*ms, 5*s, 10*s, 30*s, 60*s, 300*s, 1800*s, 3600*s, 6*3600*s)
}

// measureDelivery notes how long ago those of a batch were published that are delivered for the
// first time: what a message waits for after that is up to consumers.
func (b *Broker) measureDelivery(batch []Message, now time.Time) {
	if b.config.DeliveryLatency == nil {
		return
	}
	wall, tally := now.UnixNano(), b.config.DeliveryLatency.Tally()
	for i := range batch {
		if batch[i].attempts == 1 {
			tally.Add(wall - batch[i].timestamp())
		}
	}
	tally.Flush()
}
