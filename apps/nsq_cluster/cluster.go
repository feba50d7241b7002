package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"nsq/internal/log"
	"nsq/internal/run"
	"nsq/internal/version"
	"nsq/nsqadmin"
	"nsq/nsqd"
	"nsq/nsqlookupd"
)

// cluster is made by newCluster and lives in Run.
type cluster struct {
	options *clusterOptions
	out     io.Writer // what the user reads
	logs    io.Writer // of the daemons
	members []member  // the nsqlookupd, the nsqds, the nsqadmin; they stop in the opposite order
}

// member is one daemon of the cluster.
type member struct {
	name string
	note string // what else there is to say about it
	daemon
}

// daemon is what the cluster asks of a nsqd, a nsqlookupd and whatever comes to join them.
type daemon interface {
	Run(ctx context.Context) error
	Close() error      // instead of Run
	TCPAddr() net.Addr // nil without one
	HTTPAddr() net.Addr
}

// admin is a nsqadmin, which has HTTP alone.
type admin struct{ *nsqadmin.NSQAdmin }

// TCPAddr is nil.
func (admin) TCPAddr() net.Addr { return nil }

// newCluster takes the folders and ports of all daemons, or of none if there is an error.
func newCluster(o *clusterOptions, out, logs io.Writer) (*cluster, error) {
	c := &cluster{options: o, out: out, logs: logs}
	if err := c.take(); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *cluster) take() error {
	if err := c.options.Validate(); err != nil {
		return err
	}
	if err := c.addLookupd(); err != nil {
		return err
	}
	for i := range c.options.NSQDs {
		if err := c.addNSQD(i); err != nil {
			return err
		}
	}
	return c.addAdmin()
}

func (c *cluster) addAdmin() error {
	const name = "nsqadmin"
	o := nsqadmin.NewOptions()
	o.HTTPAddress = c.options.listenOn(c.options.Admin)
	o.NSQLookupdHTTPAddresses = []string{reachable(c.members[0].HTTPAddr())}
	n, err := nsqadmin.New(o, c.logger(name))
	if err != nil {
		return fmt.Errorf("start %s: %w", name, namingFlag(err, ports{HTTP: c.options.Admin}, flagAdminHTTP, flagAdminHTTP))
	}
	c.members = append(c.members, member{name: name, daemon: admin{n}})
	return nil
}

func (c *cluster) addLookupd() error {
	const name = "nsqlookupd"
	port := c.options.Lookupd
	o := nsqlookupd.NewOptions()
	o.TCPAddress, o.HTTPAddress = c.options.listenOn(port.TCP), c.options.listenOn(port.HTTP)
	o.BroadcastAddress = c.options.broadcast(o.BroadcastAddress)
	l, err := nsqlookupd.New(o, c.logger(name))
	if err != nil {
		return fmt.Errorf("start %s: %w", name, namingFlag(err, port, flagLookupdTCP, flagLookupdHTTP))
	}
	c.members = append(c.members, member{name: name, daemon: l})
	return nil
}

func (c *cluster) addNSQD(i int) error {
	name := fmt.Sprintf("nsqd-%d", i+1)
	folder := filepath.Join(c.options.Data, name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make data folder of %s: %w", name, err)
	}
	port := c.options.nsqdPorts(i)
	o := nsqd.NewOptions()
	o.NodeID = int64(i)
	o.DataPath = folder
	o.TCPAddress, o.HTTPAddress, o.HTTPSAddress = c.options.listenOn(port.TCP), c.options.listenOn(port.HTTP), ""
	o.BroadcastAddress = c.options.broadcast(o.BroadcastAddress)
	o.NSQLookupdTCPAddresses = []string{reachable(c.members[0].TCPAddr())}
	n, err := nsqd.New(o, c.logger(name))
	if err != nil {
		return fmt.Errorf("start %s: %w", name, namingFlag(err, port, flagNSQDTCP, flagNSQDHTTP))
	}
	c.members = append(c.members, member{name: name, note: "data in " + folder, daemon: n})
	return nil
}

func (c *cluster) logger(name string) *log.Logger {
	return log.New(c.logs, "["+name+"] ", c.options.LogLevel)
}

// namingFlag says of a port that cannot be had which flag changes it.
func namingFlag(err error, wanted ports, tcpFlag, httpFlag string) error {
	failed, ok := errors.AsType[*net.OpError](err)
	if !ok || failed.Op != "listen" {
		return err
	}
	address, ok := failed.Addr.(*net.TCPAddr)
	if !ok {
		return err // the address itself is wrong
	}
	flag := tcpFlag
	if address.Port != wanted.TCP {
		flag = httpFlag
	}
	return fmt.Errorf("port %d cannot be used, choose another with --%s: %w", address.Port, flag, failed.Err)
}

// close lets go of what the members took, for a cluster that is not run.
func (c *cluster) close() error {
	var failed error
	for _, m := range c.members {
		failed = errors.Join(failed, m.Close())
	}
	return failed
}

// Run runs the daemons until ctx is cancelled or one of them fails, then stops them all, each nsqd
// before the nsqlookupd. It returns what failed.
func (c *cluster) Run(ctx context.Context) error {
	c.welcome()
	parts := run.NewGroup(ctx)
	for _, m := range c.members {
		parts.Go(func(ctx context.Context) error {
			if err := m.Run(ctx); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			return nil
		})
	}
	farewell := context.AfterFunc(ctx, func() { c.say("stopping\n") })
	err := parts.Wait()
	farewell()
	if err == nil {
		c.say("stopped; the messages are kept in %s\n", c.options.Data)
	}
	return err
}

// welcome tells where everything is and what to try first.
func (c *cluster) welcome() {
	c.say("%s; Ctrl-C stops it\n\n", version.Line("nsq_cluster"))
	for _, m := range c.members {
		tcp := ""
		if address := m.TCPAddr(); address != nil {
			tcp = "tcp " + reachable(address)
		}
		c.say("  %-10s  %-25s  http %-21s  %s\n", m.name, tcp, reachable(m.HTTPAddr()), m.note)
	}
	lookupd, first, pages := c.members[0], c.members[1], c.members[len(c.members)-1]
	c.say("\nIn another terminal, publish a message, see it in the statistics, and ask who has the topic:\n\n")
	c.say("  curl -d 'hello' 'http://%s/pub?topic=t'\n", reachable(first.HTTPAddr()))
	c.say("  curl 'http://%s/stats?topic=t'\n", reachable(first.HTTPAddr()))
	c.say("  curl 'http://%s/lookup?topic=t'\n\n", reachable(lookupd.HTTPAddr()))
	c.say("In a browser, look at all of it: http://%s/\n\n", reachable(pages.HTTPAddr()))
}

// say writes to the user; a terminal that is gone is no reason to stop.
func (c *cluster) say(format string, args ...any) { fmt.Fprintf(c.out, format, args...) }

// reachable is the address to connect to for one that is listened on: on this host if it is every address.
func reachable(address net.Addr) string {
	tcp, ok := address.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return address.String()
	}
	here := net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: tcp.Port}
	return here.String()
}
