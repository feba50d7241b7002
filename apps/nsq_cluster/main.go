// Command nsq_cluster runs a whole local cluster in one process, for trying things out and for
// working on nsq: a nsqlookupd and one nsqd or more, on the usual ports. It knows the daemons only
// as a main function does, by their options, New and Run.
package main

import (
	"os"

	"nsq/internal/log"
	"nsq/internal/run"
)

func main() {
	run.Main(newOptions(), func(o *clusterOptions, _ *log.Logger) (*cluster, error) {
		return newCluster(o, os.Stdout, os.Stderr)
	})
}
