package httpd

import (
	"bytes"
	"fmt"
	"strings"
	"time"
	"unicode"

	"nsq/internal/api"
	"nsq/internal/version"
)

// statsText renders statistics for people. Programs read it too: every blank counts.
//
// Source: nsqd-http spec, section 11.2.
func statsText(stats api.Stats, start time.Time) []byte {
	now := time.Now()
	var w bytes.Buffer
	fmt.Fprintf(&w, "%s\nstart_time %s\nuptime %s\n", version.Line("nsqd"), start.Local().Format(time.RFC3339), now.Sub(start))
	fmt.Fprintf(&w, "\nHealth: %s\n", stats.Health)
	if stats.Memory != nil {
		writeMemory(&w, stats.Memory)
	}
	writeTopics(&w, stats.Topics, now)
	writeProducers(&w, stats.Producers, now)
	return w.Bytes()
}

func writeMemory(w *bytes.Buffer, m *api.Memory) {
	w.WriteString("\nMemory:\n")
	for _, row := range append(m.Gauges(), api.Figure{Name: "gc_total_runs", Value: uint64(m.GCTotalRuns)}) {
		fmt.Fprintf(w, "   %-25s\t%d\n", row.Name, row.Value)
	}
}

func writeTopics(w *bytes.Buffer, topics []api.TopicStats, now time.Time) {
	if len(topics) == 0 {
		w.WriteString("\nTopics: None\n")
		return
	}
	w.WriteString("\nTopics:")
	for _, t := range topics {
		fmt.Fprintf(w, "\n%s[%-15s] depth: %-5d be-depth: %-5d msgs: %-8d e2e%%: %s\n", pauseMark(t.Paused),
			t.TopicName, t.Depth, t.BackendDepth, t.MessageCount, latencyText(t.E2eProcessingLatency))
		for _, c := range t.Channels {
			fmt.Fprintf(w, "   %s[%-25s] depth: %-5d be-depth: %-5d inflt: %-4d def: %-4d re-q: %-5d timeout: %-5d msgs: %-8d e2e%%: %s\n",
				pauseMark(c.Paused), c.ChannelName, c.Depth, c.BackendDepth, c.InFlightCount, c.DeferredCount,
				c.RequeueCount, c.TimeoutCount, c.MessageCount, latencyText(c.E2eProcessingLatency))
			for _, client := range c.Clients {
				fmt.Fprintf(w, "        %s state: %d inflt: %-4d rdy: %-4d fin: %-8d re-q: %-8d msgs: %-8d connected: %s\n",
					clientName(client), client.State, client.InFlightCount, client.ReadyCount, client.FinishCount,
					client.RequeueCount, client.MessageCount, connected(client, now))
			}
		}
	}
}

func writeProducers(w *bytes.Buffer, producers []api.ProducerStats, now time.Time) {
	if len(producers) == 0 {
		w.WriteString("\nProducers: None\n")
		return
	}
	w.WriteString("\nProducers:\n")
	for _, p := range producers {
		total := uint64(0)
		topics := make([]string, 0, len(p.PubCounts))
		for _, c := range p.PubCounts {
			total += c.Count
			topics = append(topics, fmt.Sprintf("%s=%d", c.Topic, c.Count))
		}
		fmt.Fprintf(w, "   %s msgs: %-8d topics: %s connected: %s\n",
			clientName(p), total, strings.Join(topics, ","), connected(p, now))
	}
}

func pauseMark(paused bool) string {
	if paused {
		return "*P "
	}
	return "   "
}

// clientName is a client in brackets: protocol, host and remote port, user agent.
func clientName(c api.ClientStats) string {
	// Of an address without a port, that of a unix socket, nothing is left.
	port := c.RemoteAddress[strings.LastIndexByte(c.RemoteAddress, ':')+1:]
	if len(port) == len(c.RemoteAddress) {
		port = ""
	}
	return fmt.Sprintf("[%s %-21s]", c.Version, oneLine(c.Hostname+":"+port+" "+c.UserAgent))
}

// oneLine keeps what a client says of itself from looking like lines of ours.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// connected is how long a client has been there, in whole seconds.
func connected(c api.ClientStats, now time.Time) time.Duration {
	return time.Duration(max(now.Unix()-c.ConnectTS, 0)) * time.Second
}

// latencyText lists the percentiles of a latency, in the order of the configuration.
func latencyText(latency api.E2eProcessingLatency) string {
	texts := make([]string, 0, len(latency.Percentiles))
	for _, p := range latency.Percentiles {
		texts = append(texts, nanoseconds(p.Value))
	}
	return strings.Join(texts, ", ")
}

func nanoseconds(n float64) string {
	switch {
	case n > 1e9:
		return fmt.Sprintf("%.1fs", n/1e9)
	case n > 1e6:
		return fmt.Sprintf("%.1fms", n/1e6)
	case n > 1e3:
		return fmt.Sprintf("%.1fus", n/1e3)
	}
	return fmt.Sprintf("%.1fns", n)
}
