// Command nsqd receives, queues and delivers messages.
package main

import (
	"nsq/internal/run"
	"nsq/nsqd"
)

func main() { run.Main(nsqd.NewOptions(), nsqd.New) }
