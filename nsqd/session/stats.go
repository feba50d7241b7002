package session

import (
	"cmp"
	"crypto/tls"
	"slices"

	"nsq/internal/api"
)

// protocolVersion is what statistics call the protocol.
const protocolVersion = "V2"

// Clients describes all live connections, in the order in which they came.
func (s *Server) Clients() []api.ClientStats {
	s.mu.Lock()
	live := make([]*client, 0, len(s.clients))
	for c := range s.clients {
		live = append(live, c)
	}
	s.mu.Unlock()
	slices.SortFunc(live, func(a, b *client) int {
		return cmp.Or(a.started.Compare(b.started), cmp.Compare(a.addr, b.addr))
	})
	all := make([]api.ClientStats, 0, len(live))
	for _, c := range live {
		all = append(all, c.stats())
	}
	return all
}

func (c *client) stats() api.ClientStats {
	agreed := c.settings.Load()
	stats := api.ClientStats{
		ClientID:       agreed.clientID,
		Hostname:       agreed.hostname,
		Version:        protocolVersion,
		RemoteAddress:  c.addr,
		State:          c.state.Load(),
		ConnectTS:      c.started.Unix(),
		SampleRate:     agreed.sampleRate,
		Deflate:        agreed.deflate,
		Snappy:         agreed.snappy,
		UserAgent:      agreed.userAgent,
		TopologyZone:   agreed.topologyZone,
		TopologyRegion: agreed.topologyRegion,
		PubCounts:      c.pubCountList(),
	}
	if subscription := c.consumer.Load(); subscription != nil {
		part := subscription.Stats()
		stats.Topic, stats.Channel = part.Topic, part.Channel
		stats.ReadyCount, stats.InFlightCount = part.ReadyCount, part.InFlightCount
		stats.MessageCount = part.MessageCount
		stats.FinishCount, stats.RequeueCount = part.FinishCount, part.RequeueCount
	}
	if rights := c.rights.Load(); rights != nil {
		grant := rights.Grant()
		stats.Authed = true
		stats.AuthIdentity, stats.AuthIdentityURL = grant.Identity(), grant.IdentityURL()
	}
	if secure := c.tls.Load(); secure != nil {
		stats.TLS = true
		stats.TLSCipherSuite = tls.CipherSuiteName(secure.CipherSuite)
		stats.TLSVersion = tlsVersion(secure.Version)
		stats.TLSNegotiatedProtocol = secure.NegotiatedProtocol
		stats.TLSNegotiatedProtocolIsMutual = true
	}
	return stats
}

// tlsVersion is the name in statistics, which has no space.
func tlsVersion(version uint16) string {
	names := map[uint16]string{
		tls.VersionTLS10: "TLS1.0", tls.VersionTLS11: "TLS1.1",
		tls.VersionTLS12: "TLS1.2", tls.VersionTLS13: "TLS1.3",
	}
	return names[version]
}

// pubCountList tells what the client has published, sorted by topic.
func (c *client) pubCountList() []api.PubCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pubCounts) == 0 {
		return nil
	}
	list := make([]api.PubCount, 0, len(c.pubCounts))
	for topic, count := range c.pubCounts {
		if n := count.Load(); n > 0 {
			list = append(list, api.PubCount{Topic: topic, Count: n})
		}
	}
	slices.SortFunc(list, func(a, b api.PubCount) int { return cmp.Compare(a.Topic, b.Topic) })
	return list
}
