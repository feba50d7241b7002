// Command nsqadmin shows a cluster and changes it, in the browser and as a JSON API.
package main

import (
	"nsq/internal/run"
	"nsq/nsqadmin"
)

func main() { run.Main(nsqadmin.NewOptions(), nsqadmin.New) }
