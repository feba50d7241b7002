package nsqd

import (
	"nsq/internal/metrics"
	"nsq/internal/netserver"
	"nsq/nsqd/httpd"
)

// doors are the listeners as the servers have them: with the connections counted.
type doors struct {
	tcp         *metrics.Gate
	http, https *metrics.Listener // nil without one
}

// countConnections makes the doors, and returns the server behind that of TCP.
func (n *NSQD) countConnections() (tcp *netserver.Server) {
	n.doors.tcp = metrics.NewGate(n.tcpListener, n.options.MaxConnections, func() int { return tcp.Conns() })
	if n.httpListener != nil {
		n.doors.http = metrics.NewListener(n.httpListener, "http")
	}
	if n.httpsListener != nil {
		n.doors.https = metrics.NewListener(n.httpsListener, "https")
	}
	return netserver.New(n.doors.tcp, n.tcpConfig())
}

func (n *NSQD) metricsConfig() httpd.MetricsConfig {
	config := httpd.MetricsConfig{
		Broker:     n.broker,
		Deliveries: n.deliveries,
		Disk:       n.disk,
		TCP:        n.doors.tcp,
		StartTime:  n.started,
		MaxTopics:  n.options.MetricsMaxTopics,
		Logger:     n.logger,
	}
	for _, door := range []*metrics.Listener{n.doors.http, n.doors.https} {
		if door != nil {
			config.HTTP = append(config.HTTP, door)
		}
	}
	return config
}
