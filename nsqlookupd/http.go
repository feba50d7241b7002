package nsqlookupd

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"

	"nsq/internal/api"
	"nsq/internal/httpx"
	"nsq/internal/log"
	"nsq/internal/protocol"
	"nsq/internal/version"
	"nsq/nsqlookupd/registry"
)

// httpFront answers the HTTP API.
type httpFront struct {
	db  *registry.RegistrationDB
	log *log.Logger
}

// newRouter returns the routes, and the paths of those that belong to the API.
func newRouter(db *registry.RegistrationDB, metrics http.Handler, logger *log.Logger) (r *httpx.Router, paths []string) {
	f := &httpFront{db: db, log: logger}
	r = httpx.NewRouter(logger, httpx.AnswerHEAD())
	r.Plain(http.MethodGet, "/ping", func(*http.Request, httprouter.Params) (any, error) { return "OK", nil })
	for path, handler := range map[string]httpx.Handler{
		"/info":     f.info,
		"/topics":   f.topics,
		"/nodes":    f.nodes,
		"/channels": httpx.WithQuery(f.channels),
		"/lookup":   httpx.WithQuery(f.lookup),
	} {
		r.API(http.MethodGet, path, handler)
		paths = append(paths, path)
	}
	for path, handler := range map[string]httpx.QueryHandler{
		"/topic/create":    f.createTopic,
		"/topic/delete":    f.deleteTopic,
		"/topic/tombstone": f.tombstoneTopic,
		"/channel/create":  f.createChannel,
		"/channel/delete":  f.deleteChannel,
	} {
		r.API(http.MethodPost, path, httpx.WithQuery(handler))
		paths = append(paths, path)
	}
	r.Raw(http.MethodGet, "/debug", f.debug)
	r.Raw(http.MethodGet, "/metrics", func(w http.ResponseWriter, req *http.Request, _ httprouter.Params) {
		metrics.ServeHTTP(w, req)
	}, httpx.Unlogged())
	r.MountAllProfiles()
	return r, append(paths, "/ping", "/debug", "/metrics")
}

// The errors of the API.
var (
	errMissingTopic    = httpx.BadRequest("MISSING_ARG_TOPIC")
	errInvalidTopic    = httpx.BadRequest("INVALID_ARG_TOPIC")
	errMissingChannel  = httpx.BadRequest("MISSING_ARG_CHANNEL")
	errInvalidChannel  = httpx.BadRequest("INVALID_ARG_CHANNEL")
	errMissingNode     = httpx.BadRequest("MISSING_ARG_NODE")
	errTopicNotFound   = &httpx.Error{Status: http.StatusNotFound, Message: "TOPIC_NOT_FOUND"}
	errChannelNotFound = &httpx.Error{Status: http.StatusNotFound, Message: "CHANNEL_NOT_FOUND"}
)

// oneTopic returns a topic parameter of any form but "*": clients of old took that for all topics.
func oneTopic(query httpx.Params) (string, error) {
	topic, err := query.Require("topic", errMissingTopic)
	if err == nil && topic == "*" {
		err = errInvalidTopic
	}
	return topic, err
}

// topicAndChannel returns two valid names.
func topicAndChannel(query httpx.Params) (topic, channel string, err error) {
	if topic, err = query.RequireValid("topic", protocol.ValidName, errMissingTopic, errInvalidTopic); err != nil {
		return "", "", err
	}
	channel, err = query.RequireValid("channel", protocol.ValidName, errMissingChannel, errInvalidChannel)
	return topic, channel, err
}

func (f *httpFront) info(*http.Request, httprouter.Params) (any, error) {
	return api.LookupInfo{Version: version.Version}, nil
}

func (f *httpFront) topics(*http.Request, httprouter.Params) (any, error) {
	return api.TopicList{Topics: f.db.Topics()}, nil
}

func (f *httpFront) channels(query httpx.Params) (any, error) {
	topic, err := query.Require("topic", errMissingTopic)
	if err != nil {
		return nil, err
	}
	return api.ChannelList{Channels: f.db.Channels(topic)}, nil
}

func (f *httpFront) lookup(query httpx.Params) (any, error) {
	topic, err := query.Require("topic", errMissingTopic)
	if err != nil {
		return nil, err
	}
	channels, peers, known := f.db.Lookup(topic, time.Now())
	if !known {
		return nil, errTopicNotFound
	}
	producers := make([]api.Producer, 0, len(peers))
	for _, p := range peers {
		producers = append(producers, api.Producer(p))
	}
	return api.Lookup{Channels: channels, Producers: producers}, nil
}

func (f *httpFront) nodes(*http.Request, httprouter.Params) (any, error) {
	known := f.db.Nodes(time.Now())
	nodes := make([]api.Node, 0, len(known))
	for _, n := range known {
		node := api.Node{
			Producer:   api.Producer(n.Peer),
			Topics:     make([]string, 0, len(n.Topics)),
			Tombstones: make([]bool, 0, len(n.Topics)),
		}
		for _, t := range n.Topics {
			node.Topics = append(node.Topics, t.Name)
			node.Tombstones = append(node.Tombstones, t.Tombstoned)
		}
		nodes = append(nodes, node)
	}
	return api.NodeList{Producers: nodes}, nil
}

// debug shows the database as it is. The answer may be huge: it is collected and sent a topic at a time,
// so that it neither fills the memory nor keeps nsqd from registering.
func (f *httpFront) debug(w http.ResponseWriter, req *http.Request, _ httprouter.Params) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-NSQ-Content-Type", "nsq; version=1.0")
	if req.Method == http.MethodHead {
		return
	}
	if err := writeRegistrations(w, f.db.All()); err != nil {
		f.log.Debugf("failed to write HTTP response to %s - %s", req.RemoteAddr, err)
		panic(http.ErrAbortHandler) // the peer must not take half an answer for a whole one
	}
}

// writeRegistrations writes one JSON object, which has the form of api.Registrations.
func writeRegistrations(w io.Writer, all iter.Seq2[registry.Registration, []registry.Entry]) error {
	out := bufio.NewWriter(w) // its first error is kept until Flush
	opening := "{"
	for r, entries := range all {
		key, err := json.Marshal(r.String())
		if err != nil {
			return fmt.Errorf("encode registration: %w", err)
		}
		producers, err := json.Marshal(registered(entries))
		if err != nil {
			return fmt.Errorf("encode producers: %w", err)
		}
		if _, err := fmt.Fprintf(out, "%s%s:%s", opening, key, producers); err != nil {
			return err
		}
		opening = ","
	}
	if opening == "{" {
		_ = out.WriteByte('{')
	}
	_ = out.WriteByte('}')
	return out.Flush()
}

func registered(entries []registry.Entry) []api.RegisteredProducer {
	producers := make([]api.RegisteredProducer, 0, len(entries))
	for _, e := range entries {
		producers = append(producers, api.RegisteredProducer{
			BroadcastAddress: e.BroadcastAddress,
			Hostname:         e.Hostname,
			HTTPPort:         e.HTTPPort,
			ID:               e.RemoteAddress,
			LastUpdate:       e.LastUpdate.UnixNano(),
			TCPPort:          e.TCPPort,
			Tombstoned:       e.Tombstoned,
			TombstonedAt:     e.TombstonedAt.UnixNano(),
			TopologyRegion:   e.TopologyRegion,
			TopologyZone:     e.TopologyZone,
			Version:          e.Version,
		})
	}
	return producers
}

func (f *httpFront) createTopic(query httpx.Params) (any, error) {
	topic, err := query.RequireValid("topic", protocol.ValidName, errMissingTopic, errInvalidTopic)
	if err != nil {
		return nil, err
	}
	f.log.Infof("creating topic %s", topic)
	f.db.CreateTopic(topic)
	return nil, nil
}

func (f *httpFront) deleteTopic(query httpx.Params) (any, error) {
	topic, err := oneTopic(query)
	if err != nil {
		return nil, err
	}
	if f.db.DeleteTopic(topic) {
		f.log.Infof("deleted topic %s and its channels", topic)
	}
	return nil, nil
}

func (f *httpFront) tombstoneTopic(query httpx.Params) (any, error) {
	topic, err := oneTopic(query)
	if err != nil {
		return nil, err
	}
	node, err := query.Require("node", errMissingNode)
	if err != nil {
		return nil, err
	}
	n := f.db.Tombstone(topic, node, time.Now())
	f.log.Infof("tombstoned topic %s at %d producers called %s", topic, n, node)
	return nil, nil
}

func (f *httpFront) createChannel(query httpx.Params) (any, error) {
	topic, channel, err := topicAndChannel(query)
	if err != nil {
		return nil, err
	}
	f.log.Infof("creating channel %s of topic %s", channel, topic)
	f.db.CreateChannel(topic, channel)
	return nil, nil
}

func (f *httpFront) deleteChannel(query httpx.Params) (any, error) {
	topic, channel, err := topicAndChannel(query)
	if err != nil {
		return nil, err
	}
	if !f.db.DeleteChannel(topic, channel) {
		return nil, errChannelNotFound
	}
	f.log.Infof("deleted channel %s of topic %s", channel, topic)
	return nil, nil
}
