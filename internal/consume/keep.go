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
}

// source says where the nsqd of a topic are.
type source interface {
	known() []string                            // as far as is known without asking
	find(ctx context.Context) ([]string, error) // asks; with an error, the addresses are those known before
}

// given is the source of direct mode.
type given []string

func (g given) known() []string                        { return g }
func (g given) find(context.Context) ([]string, error) { return g, nil }

// keeper connects a consumer to the nsqd that it has not got. The client by itself waits for a minute
// after each loss, and before it looks for a new topic again.
type keeper struct {
	consumer    connector
	source      source
	first, most time.Duration // pauses
	log         *log.Logger
}

// run works until ctx is cancelled. As long as something is missing, it asks for the addresses again.
func (k *keeper) run(ctx context.Context) {
	pause, missing := k.first, false
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		addresses := k.source.known()
		if missing || len(addresses) == 0 {
			addresses = k.find(ctx)
		}
		missing = !k.connect(ctx, addresses) || len(addresses) == 0
		if missing {
			pause = min(2*pause, k.most)
		} else {
			pause = k.first
		}
		timer.Reset(pause)
	}
}

func (k *keeper) find(ctx context.Context) []string {
	addresses, err := k.source.find(ctx)
	if err != nil && ctx.Err() == nil {
		k.log.Printf("error looking for nsqd - %s", err)
	}
	return addresses
}

// connect connects to each nsqd that is not connected, and says whether all are then.
func (k *keeper) connect(ctx context.Context, addresses []string) bool {
	all := true
	for _, address := range addresses {
		if ctx.Err() != nil {
			return false
		}
		if err := k.consumer.ConnectToNSQD(address); err != nil && !errors.Is(err, nsq.ErrAlreadyConnected) {
			all = false
			k.log.Printf("(%s) error connecting to nsqd - %s", address, err)
		}
	}
	return all
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
