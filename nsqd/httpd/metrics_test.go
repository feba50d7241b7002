package httpd

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nsq/internal/api"
	"nsq/internal/diskq"
	"nsq/internal/log"
	"nsq/internal/metrics"
	"nsq/internal/metrics/metricstest"
	"nsq/internal/protocol"
	"nsq/internal/quantile"
	"nsq/internal/testutil"
	"nsq/nsqd/broker"
)

// measured is a broker of which everything is measured, and what scrapes it.
func measured(t testing.TB, path string, memQueueSize, maxTopics int, logger *log.Logger) (*broker.Broker, MetricsConfig) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	percentiles, err := quantile.NewPlan([]float64{0.5, 0.99}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	disk, deliveries, health := diskq.NewMeter(), broker.NewDeliveryLatency(), new(broker.Health)
	b, err := broker.New(broker.Config{
		MemQueueSize: memQueueSize, MaxMsgTimeout: 15 * time.Minute,
		QueueScanSelectionCount: 20, QueueScanWorkerPoolMax: 4,
		Health: health, Latency: percentiles, DeliveryLatency: deliveries, Logger: logger,
		Store: &broker.ClassicStore{Path: path, Queues: diskq.Config{
			Path: path, MaxBytesPerFile: 1 << 20, MinRecord: protocol.MessageHeaderSize, MaxRecord: 1 << 20,
			SyncEvery: 2500, SyncTimeout: 2 * time.Second, Health: health.Set, Meter: disk, Logger: logger,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b, MetricsConfig{
		Broker: b, Deliveries: deliveries, Disk: disk,
		TCP:       metrics.NewGate(nil, 0, func() int { return 7 }),
		StartTime: startTime, MaxTopics: maxTopics, Logger: logger,
	}
}

// startMeasured serves an API with metrics.
func startMeasured(t testing.TB, memQueueSize, maxTopics int) *node {
	t.Helper()
	logged := new(testutil.Buffer)
	logger, path := log.New(logged, "", log.Info), filepath.Join(t.TempDir(), "data")
	b, config := measured(t, path, memQueueSize, maxTopics, logger)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	door := metrics.NewListener(listener, "http")
	config.HTTP = []*metrics.Listener{door}
	n := &node{t: t, broker: b, path: path, log: logged}
	n.server = httptest.NewUnstartedServer(New(Config{
		Broker: b, Logger: logger, StartTime: startTime, Metrics: NewMetrics(config),
		Clients:    func() []api.ClientStats { return nil },
		MaxMsgSize: maxMsgSize, MaxBodySize: maxBodySize, MaxReqTimeout: time.Hour,
	}).Handler())
	if err := n.server.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	n.server.Listener = door
	n.server.Start()
	t.Cleanup(n.server.Close)
	return n
}

func (n *node) scrape() (metricstest.Values, string) {
	n.t.Helper()
	answer := n.get("/metrics")
	if answer.status != http.StatusOK {
		n.t.Fatalf("scrape: %d %.200s", answer.status, answer.body)
	}
	return metricstest.Parse(n.t, answer.body), answer.body
}

// fromStats are the metrics that /stats tells as well.
func (n *node) fromStats() metricstest.Values {
	n.t.Helper()
	var stats api.Stats
	if err := json.Unmarshal([]byte(n.get("/stats?format=json&include_mem=false").body), &stats); err != nil {
		n.t.Fatal(err)
	}
	values := metricstest.Values{"nsqd_topics": float64(len(stats.Topics)), "nsqd_start_time_seconds": float64(stats.StartTime)}
	for _, t := range stats.Topics {
		topic := fmt.Sprintf("{topic=%q}", t.TopicName)
		maps.Copy(values, metricstest.Values{
			"nsqd_topic_depth" + topic:               float64(t.Depth),
			"nsqd_topic_backend_depth" + topic:       float64(t.BackendDepth),
			"nsqd_topic_messages_total" + topic:      float64(t.MessageCount),
			"nsqd_topic_message_bytes_total" + topic: float64(t.MessageBytes),
			"nsqd_topic_paused" + topic:              truth(t.Paused),
		})
		if len(t.Channels) > 0 { // or there is nothing to measure
			values["nsqd_topic_e2e_latency_messages"+topic] = float64(t.E2eProcessingLatency.Count)
		}
		values["nsqd_channels"] += float64(len(t.Channels))
		for _, c := range t.Channels {
			channel := fmt.Sprintf("{channel=%q,topic=%q}", c.ChannelName, t.TopicName)
			maps.Copy(values, metricstest.Values{
				"nsqd_channel_depth" + channel:                         float64(c.Depth),
				"nsqd_channel_backend_depth" + channel:                 float64(c.BackendDepth),
				"nsqd_channel_in_flight" + channel:                     float64(c.InFlightCount),
				"nsqd_channel_deferred" + channel:                      float64(c.DeferredCount),
				"nsqd_channel_messages_total" + channel:                float64(c.MessageCount),
				"nsqd_channel_requeues_total" + channel:                float64(c.RequeueCount),
				"nsqd_channel_timeouts_total" + channel:                float64(c.TimeoutCount),
				"nsqd_channel_zone_local_deliveries_total" + channel:   float64(c.ZoneLocalMsgCount),
				"nsqd_channel_region_local_deliveries_total" + channel: float64(c.RegionLocalMsgCount),
				"nsqd_channel_global_deliveries_total" + channel:       float64(c.GlobalMsgCount),
				"nsqd_channel_clients" + channel:                       float64(c.ClientCount),
				"nsqd_channel_paused" + channel:                        truth(c.Paused),
				"nsqd_channel_e2e_latency_messages" + channel:          float64(c.E2eProcessingLatency.Count),
			})
			for _, p := range c.E2eProcessingLatency.Percentiles {
				if c.E2eProcessingLatency.Count > 0 {
					key := fmt.Sprintf("nsqd_channel_e2e_latency_seconds{channel=%q,percentile=\"%v\",topic=%q}", c.ChannelName, p.Quantile, t.TopicName)
					values[key] = p.Value / 1e9
				}
			}
		}
	}
	return values
}

// collector is a consumer that keeps the ids of what it gets.
type collector struct {
	mu  sync.Mutex
	ids []protocol.ID
}

func (c *collector) Deliver(batch []broker.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range batch {
		head := m.AppendHead(nil)
		c.ids = append(c.ids, protocol.ID(head[len(head)-protocol.IDSize:]))
	}
	return nil
}

func (c *collector) Flush() error { return nil }
func (c *collector) Close(error)  {}

func (c *collector) got() []protocol.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ids)
}

// workload leaves messages in every place: waiting in memory and on disk, in flight, deferred, finished
// and requeued.
func workload(t *testing.T, n *node) {
	t.Helper()
	n.setUp("/topic/create?topic=orders", "/channel/create?topic=orders&channel=billing", "/channel/create?topic=orders&channel=archive",
		"/channel/pause?topic=orders&channel=archive", "/topic/create?topic=empty", "/topic/pause?topic=empty")
	n.post("/mpub?topic=orders", "a\nbb\nccc\ndddd\neeeee\nf\ng\nh").expect(t, 200, "OK")
	n.post("/pub?topic=orders&defer=60000", "later").expect(t, 200, "OK")
	eventually(t, "the channels have all messages", func() bool {
		return !slices.ContainsFunc(n.topicStats("orders").Channels, func(c broker.ChannelStats) bool { return c.MessageCount < 9 })
	})
	consumer := new(collector)
	s, err := n.broker.Subscribe("orders", "billing", consumer, broker.SubscriptionConfig{MsgTimeout: time.Minute, Proximity: broker.SameZone})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.SetReady(4)
	eventually(t, "the window is full", func() bool { return len(consumer.got()) == 4 })
	s.SetReady(2)
	ids := consumer.got()
	if failed := s.Finish(ids[:2]); len(failed) > 0 {
		t.Fatalf("not finished: %s", failed)
	}
	if err := s.Requeue(ids[2], time.Hour); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the window is full again", func() bool { return len(consumer.got()) == 5 })
}

// A scrape tells what /stats does, and what only metrics tell, by the conventions of Prometheus.
func TestMetricsAreThoseOfStats(t *testing.T) {
	for _, memory := range []int{4, 1000} {
		t.Run(fmt.Sprint(memory), func(t *testing.T) {
			n := startMeasured(t, memory, 500)
			workload(t, n)
			values, text := n.scrape()
			stats := n.fromStats()
			if on := stats[`nsqd_channel_backend_depth{channel="archive",topic="orders"}`] > 0; on != (memory == 4) {
				t.Fatalf("messages on disk: %v, so this proves nothing", on)
			}
			values.Want(t, stats)
			values.Want(t, metricstest.Values{
				"nsqd_healthy": 1,
				`nsqd_channel_deliveries_total{channel="billing",topic="orders"}`: 5,
				`nsqd_channel_finishes_total{channel="billing",topic="orders"}`:   2,
				`nsqd_channel_requeues_total{channel="billing",topic="orders"}`:   1,
				`nsqd_channel_in_flight{channel="billing",topic="orders"}`:        2,
				`nsqd_channel_deferred{channel="billing",topic="orders"}`:         2,
				`nsqd_channel_ready{channel="billing",topic="orders"}`:            2,
				`nsqd_topic_oldest_message_age_seconds{topic="empty"}`:            0,
				"nsqd_delivery_latency_seconds_count":                             5,
				"nsqd_tcp_connections":                                            7,
				"nsqd_disk_write_errors_total":                                    0,
				`nsqd_http_connections{listener="http"}`:                          1,
				`nsqd_http_connections_accepted_total{listener="http"}`:           1,
			})
			if writes := values["nsqd_disk_write_seconds_count"]; (writes > 0) != (memory == 4) {
				t.Errorf("%v writes of disk queues with %d messages in memory", writes, memory)
			}
			if age := values[`nsqd_channel_oldest_message_age_seconds{channel="archive",topic="orders"}`]; age <= 0 || age > 60 {
				t.Errorf("the oldest message of the archive is %v s old", age)
			}
			for _, name := range []string{"go_goroutines", "process_start_time_seconds"} {
				if values[name] == 0 {
					t.Errorf("no %s", name)
				}
			}
			metricstest.Lint(t, text)
			if logged := n.log.String(); strings.Contains(logged, "/metrics") || strings.Contains(logged, "metrics:") {
				t.Errorf("scrapes are in the log:\n%s", logged)
			}
		})
	}
}

// Nothing is claimed about messages that all are on disk.
func TestAgeOfWhatIsOnDisk(t *testing.T) {
	n := startMeasured(t, 0, 500)
	n.setUp("/topic/create?topic=t", "/channel/create?topic=t&channel=c")
	n.post("/pub?topic=t", "x").expect(t, 200, "OK")
	eventually(t, "the channel has it", func() bool { return n.topicStats("t").Channels[0].BackendDepth == 1 })
	values, _ := n.scrape()
	values.Absent(t, "nsqd_channel_oldest_message_age_seconds")
	values.Want(t, metricstest.Values{`nsqd_topic_oldest_message_age_seconds{topic="t"}`: 0})
}

// The first topics by name are shown one by one and the others as one, which is also where those go that
// bear its name; the sums are those of all.
func TestMetricsLimit(t *testing.T) {
	n := startMeasured(t, 1000, 3)
	for _, topic := range []string{"_other", "a", "b", "c", "d", "e"} {
		n.setUp("/topic/create?topic="+topic, "/topic/pause?topic="+topic, "/channel/create?topic="+topic+"&channel=x",
			"/channel/create?topic="+topic+"&channel=_other")
		n.post("/mpub?topic="+topic, "1\n22").expect(t, 200, "OK")
	}
	values, text := n.scrape()
	values.Want(t, metricstest.Values{
		"nsqd_topics": 6, "nsqd_channels": 12,
		`nsqd_topic_depth{topic="a"}`: 2, `nsqd_topic_depth{topic="b"}`: 2, `nsqd_topic_depth{topic="c"}`: 2,
		`nsqd_topic_depth{topic="_other"}`:                      6,
		`nsqd_topic_messages_total{topic="_other"}`:             6,
		`nsqd_topic_message_bytes_total{topic="_other"}`:        9,
		`nsqd_topic_paused{topic="_other"}`:                     3,
		`nsqd_channel_clients{channel="x",topic="a"}`:           0,
		`nsqd_channel_clients{channel="x",topic="c"}`:           0,
		`nsqd_channel_clients{channel="_other",topic="a"}`:      0,
		`nsqd_channel_clients{channel="_other",topic="_other"}`: 0,
	})
	values.Absent(t, `nsqd_topic_depth{topic="d"`, `nsqd_topic_depth{topic="e"`, `nsqd_channel_depth{channel="x",topic="d"}`,
		`nsqd_channel_depth{channel="x",topic="_other"}`, `nsqd_topic_e2e_latency_messages{topic="_other"}`)
	if age := values[`nsqd_topic_oldest_message_age_seconds{topic="_other"}`]; age <= 0 || age > 60 {
		t.Errorf("the oldest message of the others is %v s old: the greatest age counts, not the sum", age)
	}
	metricstest.Lint(t, text)
}

// The limit is for the channels of all topics together.
func TestMetricsLimitOfChannels(t *testing.T) {
	n := startMeasured(t, 1000, 3)
	for _, topic := range []string{"a", "b"} {
		n.setUp("/topic/create?topic=" + topic)
		for _, channel := range []string{"u", "v"} {
			n.setUp("/channel/create?topic="+topic+"&channel="+channel, "/channel/pause?topic="+topic+"&channel="+channel)
		}
	}
	values, _ := n.scrape()
	values.Want(t, metricstest.Values{
		`nsqd_channel_paused{channel="u",topic="a"}`: 1, `nsqd_channel_paused{channel="v",topic="a"}`: 1,
		`nsqd_channel_paused{channel="u",topic="b"}`: 1, `nsqd_channel_paused{channel="_other",topic="b"}`: 1,
	})
	values.Absent(t, `nsqd_channel_paused{channel="v",topic="b"}`, `nsqd_channel_paused{channel="_other",topic="a"}`)
}

// What is deleted is not shown any more, and without a limit everything is.
func TestMetricsFollowTopics(t *testing.T) {
	n := startMeasured(t, 1000, 0)
	for i := range 600 {
		if _, err := n.broker.Topic(fmt.Sprintf("t%03d#ephemeral", i)); err != nil {
			t.Fatal(err)
		}
	}
	values, _ := n.scrape()
	values.Want(t, metricstest.Values{`nsqd_topic_depth{topic="t000#ephemeral"}`: 0, `nsqd_topic_depth{topic="t599#ephemeral"}`: 0})
	values.Absent(t, `nsqd_topic_depth{topic="_other"}`)
	n.setUp("/topic/delete?topic=t599%23ephemeral")
	values, _ = n.scrape()
	values.Absent(t, `nsqd_topic_depth{topic="t599`, `nsqd_topic_messages_total{topic="t599`)
	values.Want(t, metricstest.Values{"nsqd_topics": 599})
}

// A node that cannot keep messages says so, and counts the failures.
func TestMetricsOfASickNode(t *testing.T) {
	n := startMeasured(t, 0, 500)
	n.setUp("/topic/create?topic=t")
	values, _ := n.scrape()
	values.Want(t, metricstest.Values{"nsqd_healthy": 1, "nsqd_disk_write_errors_total": 0})
	n.breakDisk()
	if answer := n.post("/pub?topic=t", "x"); answer.status == http.StatusOK {
		t.Fatal("published, so this proves nothing")
	}
	values, _ = n.scrape()
	values.Want(t, metricstest.Values{"nsqd_healthy": 0, "nsqd_disk_write_errors_total": 1, "nsqd_disk_write_seconds_count": 0})
}

// Whoever asks for OpenMetrics gets it; others the text format of old.
func TestMetricsNegotiation(t *testing.T) {
	n := startMeasured(t, 1000, 500)
	for accept, want := range map[string]string{
		"": "text/plain; version=0.0.4",
		"application/openmetrics-text; version=1.0.0": "application/openmetrics-text; version=1.0.0",
	} {
		req, err := http.NewRequest(http.MethodGet, n.server.URL+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", accept)
		resp, err := n.server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if got := resp.Header.Get("Content-Type"); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("accepted %q, got %q, %v", accept, got, err)
		}
		if isOpen := strings.HasSuffix(string(body), "# EOF\n"); isOpen != (accept != "") {
			t.Errorf("accepted %q, got an end of OpenMetrics: %v", accept, isOpen)
		}
	}
}

// Without metrics there is no route.
func TestNoMetrics(t *testing.T) {
	start(t, 10).get("/metrics").expectCode(t, http.StatusNotFound, "NOT_FOUND")
}

// Scrapes, publishers, consumers and those who create and delete do not disturb each other.
func TestScrapesUnderTraffic(t *testing.T) {
	n := startMeasured(t, 5, 2)
	var all sync.WaitGroup
	for w := range 3 {
		all.Go(func() {
			for i := range 60 {
				topic := fmt.Sprintf("t%d", (w+i)%4)
				switch made, err := n.broker.Topic(topic); {
				case err != nil: // just deleted
				case i%20 == 19:
					_ = n.broker.DeleteTopic(topic)
				default:
					batch := new(broker.Batch)
					batch.Add(10)
					_ = made.Publish(batch)
					if s, err := n.broker.Subscribe(topic, "c", new(collector), broker.SubscriptionConfig{MsgTimeout: time.Minute}); err == nil {
						s.SetReady(5)
						_ = s.Close()
					}
				}
			}
		})
	}
	for range 15 {
		values, _ := n.scrape()
		if _, ok := values["nsqd_topics"]; !ok {
			t.Error("a scrape has no topics")
		}
	}
	all.Wait()
}

// The document has the table of the code.
func TestMetricsDocument(t *testing.T) {
	metricstest.Documented(t, "../../docs/metrics.md", "nsqd", metricFamilies())
}

// Every family of the table is shown when there is something to show, and nothing that is not in it.
func TestMetricsTableIsComplete(t *testing.T) {
	n := startMeasured(t, 4, 500)
	workload(t, n)
	_, text := n.scrape()
	shown := map[string]bool{}
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "# TYPE nsqd_"); ok {
			name, _, _ = strings.Cut(name, " ")
			shown["nsqd_"+name] = true
		}
	}
	want := map[string]bool{"nsqd_build_info": true}
	for _, f := range metricFamilies() {
		want[f.Name] = true
	}
	if !maps.Equal(shown, want) {
		t.Errorf("shown %v\nwant %v", slices.Sorted(maps.Keys(shown)), slices.Sorted(maps.Keys(want)))
	}
}

// The cost of a scrape of many topics, a channel each.
func BenchmarkScrape(b *testing.B) {
	for _, limit := range []int{500, 0} {
		b.Run(fmt.Sprintf("2000 topics, limit %d", limit), func(b *testing.B) {
			broker, config := measured(b, filepath.Join(b.TempDir(), "data"), 1000, limit, log.Discard())
			for i := range 2000 {
				topic, err := broker.Topic(fmt.Sprintf("topic%04d#ephemeral", i))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := topic.Channel("channel#ephemeral"); err != nil {
					b.Fatal(err)
				}
			}
			handler := NewMetrics(config)
			b.ReportAllocs()
			for b.Loop() {
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
				if answer.Code != http.StatusOK {
					b.Fatal(answer.Code)
				}
			}
		})
	}
}
