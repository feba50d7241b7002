//go:build unix

package e2e

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nsqio/go-nsq"

	"nsq/internal/api"
)

// madeRecords returns records as an earlier nsqd could have written them, every third one delivered
// before.
func madeRecords(name string, count, bodySize int) []record {
	records := make([]record, count)
	for i := range records {
		body := fmt.Sprintf("%s %d\n\x00\xff", name, i)
		records[i] = record{
			timestamp: 1_796_000_000_000_000_000 + int64(i),
			id:        fmt.Sprintf("18ed%s%05x", strings.Repeat(fmt.Sprintf("%x", len(name)%16), 7), i),
			body:      body + strings.Repeat("x", max(bodySize-len(body), 0)),
		}
		if i%3 == 0 {
			records[i].attempts = uint16(1 + i)
		}
	}
	return records
}

// delivered is how records look when they arrive.
func delivered(records []record) []record {
	arrived := slices.Clone(records)
	for i := range arrived {
		arrived[i].attempts++
	}
	return arrived
}

// compareRecords tells how the records differ; their order is nobody's promise.
func compareRecords(t *testing.T, what string, got, want []record) {
	t.Helper()
	order := func(a, b record) int { return cmp.Or(cmp.Compare(a.body, b.body), cmp.Compare(a.attempts, b.attempts)) }
	got, want = slices.Clone(got), slices.Clone(want)
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("%s: %+v is missing, %d of %d are there", what, want[i], len(got), len(want))
		case i >= len(want):
			t.Errorf("%s: %+v is too much, %d for %d", what, got[i], len(got), len(want))
		case got[i] != want[i]:
			t.Errorf("%s: record %+v, want %+v", what, got[i], want[i])
		default:
			continue
		}
		return
	}
}

func recordsOf(messages []*nsq.Message) []record {
	var records []record
	for _, m := range messages {
		records = append(records, recordOf(m))
	}
	return records
}

// Everything in a folder of NSQ 1.3, or of an older one, is delivered as it is.
func TestFolderOfNSQ13(t *testing.T) {
	for version, metadata := range map[string]string{
		"1.3.0": `{"topics":[{"name":"orders","paused":false,"channels":[{"name":"billing","paused":false},{"name":"idle","paused":true}]},` +
			`{"name":"alone","paused":false,"channels":null},{"name":"held","paused":true,"channels":null}],"version":"1.3.0"}`,
		"1.2.1": `{"topics":[{"channels":[{"name":"billing","paused":false},{"name":"idle","paused":true}],"name":"orders","paused":false},` +
			`{"channels":[],"name":"alone","paused":false},{"channels":[],"name":"held","paused":true}],"version":"1.2.1"}`,
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			writeFile(t, filepath.Join(folder, "nsqd.dat"), metadata)
			alone := madeRecords("alone", 30, 40)
			writeQueue(t, folder, "alone", 2, 4, alone[:10], alone[10:20], alone[20:])
			billing := madeRecords("billing", 25, 200)
			writeQueue(t, folder, "orders:billing", 0, 0, billing[:5], billing[5:20], billing[20:])
			// Read to the end in the file that is still written to.
			writeQueue(t, folder, "orders", 7, 3, madeRecords("orders", 3, 20))
			held := madeRecords("held", 2, 20)
			writeQueue(t, folder, "held", 0, 0, held)
			// A channel that had nothing to store.
			writeFile(t, metaFile(folder, "orders:idle"), "0\n0,0\n0,0\n")

			// The second file of billing is longer than files of this daemon get.
			d := startNSQD(t, folder, "--max-bytes-per-file=1000", "--mem-queue-size=8")
			channel := awaitChannel(t, d, "orders", "idle", drained)
			topic, err := topicStats(d, "held")
			if err != nil {
				t.Fatal(err)
			}
			if !channel.Paused || !topic.Paused || topic.Depth != 2 {
				t.Errorf("channel idle paused %v, topic held paused %v with depth %d", channel.Paused, topic.Paused, topic.Depth)
			}
			post(t, d, "/topic/unpause?topic=held", "")
			fresh := "published by the new one"
			post(t, d, "/pub?topic=orders", fresh)
			post(t, d, "/channel/unpause?topic=orders&channel=idle", "")

			var fromAlone, fromBilling, fromHeld, fromIdle inbox
			consume(t, "alone", "c", maxInFlight(10), fromAlone.HandleMessage, d)
			consume(t, "orders", "billing", maxInFlight(10), fromBilling.HandleMessage, d)
			consume(t, "held", "c", maxInFlight(10), fromHeld.HandleMessage, d)
			consume(t, "orders", "idle", maxInFlight(10), fromIdle.HandleMessage, d)
			fromAlone.await(t, len(alone)-4)
			fromBilling.await(t, len(billing)+1)
			fromHeld.await(t, len(held))
			fromIdle.await(t, 1)
			for topic, channel := range map[string]string{"alone": "c", "orders": "billing", "held": "c"} {
				awaitChannel(t, d, topic, channel, drained)
			}
			d.Stop()

			compareRecords(t, "alone", recordsOf(fromAlone.all()), delivered(alone[4:]))
			compareRecords(t, "held", recordsOf(fromHeld.all()), delivered(held))
			old := slices.DeleteFunc(recordsOf(fromBilling.all()), func(r record) bool { return r.body == fresh })
			compareRecords(t, "orders:billing", old, delivered(billing))
			if came := fromIdle.all(); len(came) != 1 || string(came[0].Body) != fresh {
				t.Errorf("channel idle delivered %+v", recordsOf(came))
			}
			checkFiles(t, folder)
			if left := readFolder(t, folder); len(left) > 0 {
				t.Errorf("left in the folder: %+v", left)
			}
		})
	}
}

// The folder of a nsqd that was stopped is one that NSQ 1.3 can go on with.
func TestFolderForNSQ13(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	d := startNSQD(t, folder, "--mem-queue-size=5", "--max-bytes-per-file=300")
	producer := newProducer(t, d, nil)
	waiting, pushed := numbered("waiting", 20), numbered("pushed", 20)

	publish(t, producer, "zoo", waiting...)
	post(t, d, "/topic/create?topic=alpha", "")
	for _, channel := range []string{"work", "archive", "passing%23ephemeral"} {
		post(t, d, "/channel/create?topic=alpha&channel="+channel, "")
	}
	post(t, d, "/topic/create?topic=gone%23ephemeral", "")
	publish(t, producer, "gone#ephemeral", "nobody")
	publish(t, producer, "alpha", pushed...)
	post(t, d, "/topic/create?topic=quiet", "")
	post(t, d, "/topic/pause?topic=quiet", "")
	post(t, d, "/channel/pause?topic=alpha&channel=archive", "")
	held := hold(t, "alpha", "work", 3, d)
	inFlight := held.await(t, 3)
	for _, channel := range []string{"work", "archive"} {
		awaitChannel(t, d, "alpha", channel, func(c api.ChannelStats) bool { return c.Depth+c.InFlightCount == int64(len(pushed)) })
	}
	d.Stop()

	metadata, err := os.ReadFile(filepath.Join(folder, "nsqd.dat"))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"topics":[{"name":"alpha","paused":false,"channels":[{"name":"archive","paused":true},{"name":"work","paused":false}]},` +
		`{"name":"quiet","paused":true,"channels":null},{"name":"zoo","paused":false,"channels":null}],"version":"1.4.0"}`
	if string(metadata) != want {
		t.Errorf("nsqd.dat %s\nwant     %s", metadata, want)
	}
	checkFiles(t, folder)
	queues := readFolder(t, folder)
	if len(queues) != 3 {
		t.Errorf("%d queues have messages, want 3", len(queues))
	}
	checkBodies(t, "zoo", queues["zoo"], waiting, nil)
	checkBodies(t, "alpha:archive", queues["alpha:archive"], pushed, nil)
	checkBodies(t, "alpha:work", queues["alpha:work"], pushed, inFlight)
}

// checkBodies insists that a queue has each body once, with the attempts and the identity of those
// that were delivered before.
func checkBodies(t *testing.T, queue string, got []record, bodies []string, before []*nsq.Message) {
	t.Helper()
	var want []record
	known := map[string]record{}
	for _, m := range before {
		known[string(m.Body)] = recordOf(m)
	}
	byBody := map[string]record{}
	for _, r := range got {
		byBody[r.body] = r
	}
	for _, body := range bodies {
		r, ok := known[body]
		if !ok { // who was never delivered is known by its body only
			r = record{timestamp: byBody[body].timestamp, id: byBody[body].id, body: body}
		}
		want = append(want, r)
	}
	compareRecords(t, queue, got, want)
}

// A folder in which a daemon is stopped in the middle of reading it has each message still.
func TestStopDuringStart(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	const topics = 150
	var names []string
	want := map[string][]record{}
	for i := range topics {
		topic := fmt.Sprintf("topic-%03d", i)
		names = append(names, fmt.Sprintf(`{"name":"%s","paused":false,"channels":[{"name":"c","paused":false}]}`, topic))
		want[topic+":c"] = madeRecords(topic, 2, 30)
		writeQueue(t, folder, topic+":c", 0, 0, want[topic+":c"])
	}
	writeFile(t, filepath.Join(folder, "nsqd.dat"), `{"topics":[`+strings.Join(names, ",")+`],"version":"1.3.0"}`)

	for range long(3, 50) {
		d := programs.Launch(t, "nsqd", nsqdArgs(folder)...)
		d.AwaitLog("INFO: ID: ")
		d.Stop()
		queues := readFolder(t, folder)
		if len(queues) != topics {
			t.Fatalf("%d queues have messages, want %d", len(queues), topics)
		}
		for queue, records := range want {
			compareRecords(t, queue, queues[queue], records)
		}
		metadata, err := os.ReadFile(filepath.Join(folder, "nsqd.dat"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(metadata), `"name":"topic-`); got != topics {
			t.Fatalf("nsqd.dat has %d topics, want %d", got, topics)
		}
	}
}
