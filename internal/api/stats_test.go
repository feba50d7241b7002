package api_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nsq/internal/api"
)

// captured is the answer of a daemon with a consumer, a producer, and a topic without anything.
const captured = `{"version":"1.3.0","health":"OK","start_time":1796095899,"topics":[` +
	`{"topic_name":"empty","channels":[],"depth":0,"backend_depth":0,"message_count":0,"message_bytes":0,` +
	`"paused":true,"e2e_processing_latency":{"count":0,"percentiles":null}},` +
	`{"topic_name":"orders","channels":[` +
	`{"channel_name":"billing","depth":6,"backend_depth":5,"in_flight_count":3,"deferred_count":2,` +
	`"message_count":12,"zone_local_msg_count":1,"region_local_msg_count":2,"global_msg_count":3,` +
	`"requeue_count":1,"timeout_count":4,"client_count":1,"clients":[` +
	`{"client_id":"tlsc","hostname":"h3","version":"V2","remote_address":"127.0.0.1:54724","state":3,` +
	`"ready_count":7,"in_flight_count":3,"message_count":5,"zone_local_msg_count":1,"region_local_msg_count":2,` +
	`"global_msg_count":3,"finish_count":9,"requeue_count":8,"connect_ts":1796095899,"sample_rate":6,` +
	`"deflate":true,"snappy":true,"user_agent":"tls/1","authed":true,"auth_identity":"user1",` +
	`"auth_identity_url":"http://id/user1","topology_zone":"z","topology_region":"r","tls":true,` +
	`"tls_cipher_suite":"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256","tls_version":"TLS1.2",` +
	`"tls_negotiated_protocol":"p","tls_negotiated_protocol_is_mutual":true}],"paused":false,` +
	`"e2e_processing_latency":{"count":1,"percentiles":[{"quantile":1,"value":1187100000},{"quantile":0.99,"value":0.5}]}}],` +
	`"depth":1,"backend_depth":2,"message_count":12,"message_bytes":31,"paused":false,` +
	`"e2e_processing_latency":{"count":0,"percentiles":null}}],` +
	`"memory":{"heap_objects":1,"heap_idle_bytes":2,"heap_in_use_bytes":3,"heap_released_bytes":4,` +
	`"gc_pause_usec_100":5,"gc_pause_usec_99":6,"gc_pause_usec_95":7,"next_gc_bytes":8,"gc_total_runs":9},` +
	`"producers":[` +
	`{"client_id":"pid","hostname":"host2","version":"V2","remote_address":"@","state":0,` +
	`"ready_count":0,"in_flight_count":0,"message_count":0,"finish_count":0,"requeue_count":0,` +
	`"connect_ts":1796095899,"sample_rate":0,"deflate":false,"snappy":false,"user_agent":"pua/2.0",` +
	`"topology_zone":"","topology_region":"","pub_counts":[{"topic":"orders","count":1}],"tls":false,` +
	`"tls_cipher_suite":"","tls_version":"","tls_negotiated_protocol":"","tls_negotiated_protocol_is_mutual":false}]}`

// Decoding and encoding an answer gives it back to the byte: no field is lost, renamed, moved or
// there when it should be omitted.
func TestAnswersKeepTheirForm(t *testing.T) {
	tests := []struct {
		name, text string
		value      any
	}{
		{"stats", captured, new(api.Stats)},
		{"stats without anything", `{"version":"1.3.0","health":"OK","start_time":1,"topics":null,"producers":null}`, new(api.Stats)},
		{"stats without topics", `{"version":"1.3.0","health":"OK","start_time":1,"topics":[],"producers":null}`, new(api.Stats)},
		{"channel without clients", `{"channel_name":"c","depth":0,"backend_depth":0,"in_flight_count":0,"deferred_count":0,` +
			`"message_count":0,"requeue_count":0,"timeout_count":0,"client_count":2,"clients":null,"paused":true,` +
			`"e2e_processing_latency":{"count":0,"percentiles":null}}`, new(api.ChannelStats)},
		{"info", `{"version":"1.3.0","broadcast_address":"b","hostname":"h","http_port":-1,"tcp_port":4150,` +
			`"start_time":1796095813,"max_heartbeat_interval":60000000000,"max_output_buffer_size":65536,` +
			`"max_output_buffer_timeout":30000000000,"max_deflate_level":6,"topology_zone":"z","topology_region":"r"}`, new(api.Info)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := json.Unmarshal([]byte(test.text), test.value); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(test.value)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.text, string(text)); diff != "" {
				t.Errorf("answer changed (-want +got):\n%s", diff)
			}
		})
	}
}

// What an old daemon does not know is zero, what it alone knows is ignored.
func TestOldStatsCanBeRead(t *testing.T) {
	const old = `{"version":"0.3.8","health":"OK","host":"h","topics":[{"topic_name":"t","depth":3,"backend_depth":1,` +
		`"message_count":5,"paused":false,"e2e_processing_latency":null,"channels":[{"channel_name":"c","depth":2,` +
		`"message_count":4,"clients":[{"name":"n","client_id":"i","version":"V2","remote_address":"1.2.3.4:5","connect_ts":6}]}]}]}`
	want := api.Stats{Version: "0.3.8", Health: "OK", Topics: []api.TopicStats{{
		TopicName: "t", Depth: 3, BackendDepth: 1, MessageCount: 5, Channels: []api.ChannelStats{{
			ChannelName: "c", Depth: 2, MessageCount: 4, Clients: []api.ClientStats{
				{ClientID: "i", Version: "V2", RemoteAddress: "1.2.3.4:5", ConnectTS: 6},
			},
		}},
	}}}
	var got api.Stats
	if err := json.Unmarshal([]byte(old), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decoded differently (-want +got):\n%s", diff)
	}
}

// The subscription is told by the place of a client, not by the client.
func TestSubscriptionStaysInside(t *testing.T) {
	with, err := json.Marshal(api.ClientStats{Topic: "t", Channel: "c"})
	if err != nil {
		t.Fatal(err)
	}
	without, err := json.Marshal(api.ClientStats{})
	if err != nil {
		t.Fatal(err)
	}
	if string(with) != string(without) {
		t.Errorf("subscription shows: %s", with)
	}
}
