package consume

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/nsqio/go-nsq"
)

// Pauses between attempts to find and connect to what is missing; they double.
const (
	firstPause   = time.Second
	longestPause = 15 * time.Second
)

// connector is the part of a client's consumer that connects.
type connector interface {
	ConnectToNSQD(address string) error
	Stats() *nsq.ConsumerStats
}

// keeper connects a consumer to the nsqd that it has not got. The client by itself waits for a minute
// after each loss, and before it looks for a new topic again.
type keeper struct {
	consumer    connector
	find        func(context.Context) ([]string, error) // addresses of nsqd
	known       func() int                              // how many there are, 0 if unknown
	first, most time.Duration
	log         *log.Logger
}

// run works until ctx is cancelled.
func (k *keeper) run(ctx context.Context) {
	pause := k.first
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if k.complete() {
			pause = k.first
		} else {
			k.connect(ctx)
			pause = min(2*pause, k.most)
		}
		timer.Reset(pause)
	}
}

func (k *keeper) complete() bool {
	known := k.known()
	return known > 0 && k.consumer.Stats().Connections >= known
}

// connect looks for nsqd and connects to each that is not connected.
func (k *keeper) connect(ctx context.Context) {
	addresses, err := k.find(ctx)
	if err != nil && ctx.Err() == nil {
		k.log.Printf("error looking for nsqd - %s", err)
	}
	for _, address := range addresses {
		if ctx.Err() != nil {
			return
		}
		if err := k.consumer.ConnectToNSQD(address); err != nil && !errors.Is(err, nsq.ErrAlreadyConnected) {
			k.log.Printf("(%s) error connecting to nsqd - %s", address, err)
		}
	}
}

// connectFirst connects to the given nsqd for the first time. That the same address is there twice is an
// error, that a nsqd cannot be reached only when it is so with all of them and nobody is patient.
func connectFirst(consumer connector, addresses []string, patient bool, logger *log.Logger) error {
	seen := make(map[string]bool)
	var failure error
	connected := 0
	for _, address := range addresses {
		if seen[address] {
			return nsq.ErrAlreadyConnected
		}
		seen[address] = true
		err := consumer.ConnectToNSQD(address)
		if err == nil {
			connected++
			continue
		}
		if failure == nil {
			failure = err
		}
		if len(addresses) > 1 || patient {
			logger.Printf("(%s) error connecting to nsqd - %s", address, err)
		}
	}
	if connected > 0 || patient {
		return nil
	}
	return failure
}
