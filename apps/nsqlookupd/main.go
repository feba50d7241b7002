// Command nsqlookupd tells consumers which nsqds have a topic.
package main

import (
	"nsq/internal/run"
	"nsq/nsqlookupd"
)

func main() { run.Main(nsqlookupd.NewOptions(), nsqlookupd.New) }
