package nsqd

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"nsq/internal/log"
	"nsq/internal/metrics/metricstest"
)

// A whole daemon counts its connections, those that it refuses included, and measures deliveries and
// disk queues.
func TestMetricsOfADaemon(t *testing.T) {
	o := NewOptions()
	o.TCPAddress, o.HTTPAddress, o.HTTPSAddress = "127.0.0.1:0", "127.0.0.1:0", ""
	o.BroadcastAddress, o.NodeID, o.DataPath = "localhost", 1, t.TempDir()
	o.MaxConnections, o.MemQueueSize, o.MetricsMaxTopics = 1, 0, 1
	n, err := New(o, log.Discard())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- n.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	ask := func(method, target string) string {
		t.Helper()
		req, err := http.NewRequest(method, "http://"+n.HTTPAddr().String()+target, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s, %v", target, resp.StatusCode, body, err)
		}
		return string(body)
	}
	scrape := func() metricstest.Values { return metricstest.Parse(t, ask(http.MethodGet, "/metrics")) }
	dial := func() net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", n.TCPAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		return conn
	}

	ask(http.MethodPost, "/topic/create?topic=t")
	ask(http.MethodPost, "/channel/create?topic=t&channel=c")
	ask(http.MethodPost, "/topic/create?topic=u")
	consumer := dial()
	if _, err := io.WriteString(consumer, "  V2SUB t c\nRDY 1\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(consumer, make([]byte, 10)); err != nil { // OK of SUB
		t.Fatal(err)
	}
	if _, err := dial().Read(make([]byte, 1)); err == nil {
		t.Error("a connection beyond the limit is served")
	}
	published, err := client.Post("http://"+n.HTTPAddr().String()+"/pub?topic=t", "", io.LimitReader(zeros{}, 5))
	if err != nil || published.StatusCode != http.StatusOK {
		t.Fatal(published, err)
	}
	if err := published.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(consumer, make([]byte, 8+26+5)); err != nil { // the message
		t.Fatal(err)
	}
	values := scrape()
	values.Want(t, metricstest.Values{
		"nsqd_tcp_connections": 1, "nsqd_tcp_connections_accepted_total": 2, "nsqd_tcp_connections_refused_total": 1,
		"nsqd_delivery_latency_seconds_count":                   1,
		`nsqd_channel_clients{channel="c",topic="t"}`:           1,
		`nsqd_channel_in_flight{channel="c",topic="t"}`:         1,
		`nsqd_topic_depth{topic="_other"}`:                      0,
		`nsqd_http_connections_accepted_total{listener="http"}`: 5,
	})
	values.Absent(t, `nsqd_http_connections{listener="https"}`, `nsqd_topic_depth{topic="u"}`)
	if values["nsqd_disk_write_seconds_count"] == 0 {
		t.Error("no write of a disk queue, though nothing is kept in memory")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
