package main

import (
	"fmt"
	"net"
	"strconv"

	"nsq/internal/log"
	"nsq/internal/options"
)

const (
	maxPort  = 1<<16 - 1
	maxNSQDs = 100

	// portStep is from the ports of one nsqd to those of the next: 4150, 4250, 4350.
	portStep = 100
)

// clusterOptions are the settings of the cluster. A port of 0 stands for any that is free.
type clusterOptions struct {
	options.Logging

	Address  string // on which everything listens, without port
	Data     string // folder with a folder for each nsqd
	NSQDs    int    // how many
	Lookupd  ports  // of the nsqlookupd
	NSQDBase ports  // of the first nsqd
	Admin    int    // HTTP port of the nsqadmin
}

// ports are those of one daemon.
type ports struct{ TCP, HTTP int }

func newOptions() *clusterOptions {
	return &clusterOptions{
		Logging:  options.DefaultLogging(log.Warn, "[nsq_cluster] "),
		Address:  "127.0.0.1",
		Data:     "data/cluster",
		NSQDs:    1,
		Lookupd:  ports{TCP: 4160, HTTP: 4161},
		NSQDBase: ports{TCP: 4150, HTTP: 4151},
		Admin:    4171,
	}
}

// The flags that errors name.
const (
	flagNSQDs       = "nsqd"
	flagLookupdTCP  = "nsqlookupd-tcp-port"
	flagLookupdHTTP = "nsqlookupd-http-port"
	flagNSQDTCP     = "nsqd-tcp-port"
	flagNSQDHTTP    = "nsqd-http-port"
	flagAdminHTTP   = "nsqadmin-http-port"
)

// Table describes the options; its rows point into o.
func (o *clusterOptions) Table() *options.Table {
	return options.New("nsq_cluster",
		options.Group{Title: "Cluster", Options: []options.Option{
			{Flag: flagNSQDs, Value: options.Int(&o.NSQDs, 1, maxNSQDs),
				Help: "how many nsqd to run"},
			{Flag: "data", Value: options.String(&o.Data),
				Help: "folder for the messages, made if missing, with a folder for each nsqd in it: nsqd-1, nsqd-2"},
			{Flag: "log-level", Value: options.LogLevel(&o.LogLevel),
				Help: "lightest level that the daemons log: debug, info, warn, error or fatal"},
		}},
		options.Group{Title: "Addresses", Options: []options.Option{
			{Flag: "address", Value: options.String(&o.Address),
				Help: "name or IP address on which all daemons listen; 0.0.0.0 lets other hosts in"},
			{Flag: flagLookupdTCP, Value: options.Int(&o.Lookupd.TCP, 0, maxPort),
				Help: "TCP port of the nsqlookupd; 0 for any that is free"},
			{Flag: flagLookupdHTTP, Value: options.Int(&o.Lookupd.HTTP, 0, maxPort),
				Help: "HTTP port of the nsqlookupd; 0 for any that is free"},
			{Flag: flagNSQDTCP, Value: options.Int(&o.NSQDBase.TCP, 0, maxPort),
				Help: fmt.Sprintf("TCP port of the first nsqd, each further one is %d higher; 0 for any that are free", portStep)},
			{Flag: flagNSQDHTTP, Value: options.Int(&o.NSQDBase.HTTP, 0, maxPort),
				Help: fmt.Sprintf("HTTP port of the first nsqd, each further one is %d higher; 0 for any that are free", portStep)},
			{Flag: flagAdminHTTP, Value: options.Int(&o.Admin, 0, maxPort),
				Help: "HTTP port of the nsqadmin, for a browser; 0 for any that is free"},
		}},
	)
}

// Validate returns the first setting with which there can be no cluster, naming its flag.
func (o *clusterOptions) Validate() error {
	if err := o.Table().Validate(); err != nil {
		return err
	}
	last := o.nsqdPorts(o.NSQDs - 1)
	switch {
	case last.TCP > maxPort:
		return o.tooHigh(flagNSQDTCP, last.TCP)
	case last.HTTP > maxPort:
		return o.tooHigh(flagNSQDHTTP, last.HTTP)
	}
	return nil
}

func (o *clusterOptions) tooHigh(flag string, port int) error {
	return fmt.Errorf("--%s is too high for --%s %d: the last one would have port %d", flag, flagNSQDs, o.NSQDs, port)
}

// nsqdPorts are those of the i-th nsqd, counted from 0.
func (o *clusterOptions) nsqdPorts(i int) ports {
	return ports{TCP: above(o.NSQDBase.TCP, i), HTTP: above(o.NSQDBase.HTTP, i)}
}

func above(base, i int) int {
	if base == 0 {
		return 0
	}
	return base + i*portStep
}

// listenOn is the address to bind for a port.
func (o *clusterOptions) listenOn(port int) string {
	return net.JoinHostPort(o.Address, strconv.Itoa(port))
}

// broadcast is the name under which the daemons tell others to reach them; preset is the host's,
// which stands where the daemons listen on every address.
func (o *clusterOptions) broadcast(preset string) string {
	if ip := net.ParseIP(o.Address); o.Address == "" || ip != nil && ip.IsUnspecified() {
		return preset
	}
	return o.Address
}
