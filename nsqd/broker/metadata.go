package broker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"nsq/internal/version"
)

// metadataRetry is the time between attempts to write metadata that could not be written.
const metadataRetry = time.Second

// document is the content of nsqd.dat. Source: nsqd-storage spec, section 3.
type document struct {
	Topics  []documentTopic `json:"topics"`
	Version string          `json:"version"`
}

type documentTopic struct {
	Name     string            `json:"name"`
	Paused   bool              `json:"paused"`
	Channels []documentChannel `json:"channels"`
}

type documentChannel struct {
	Name   string `json:"name"`
	Paused bool   `json:"paused"`
}

// metadata writes nsqd.dat. Changes that come while one write runs share the next.
type metadata struct {
	broker  *Broker
	writing sync.Mutex // the turn to write

	mu      sync.Mutex // guards the following
	pending *metadataWrite
	retry   *time.Timer
}

// metadataWrite is one write that a number of callers wait for.
type metadataWrite struct {
	once sync.Once
	err  error
}

// save writes the names and states of all topics and channels as they are now or later, and
// returns when they are durable. A failure is logged, shows in Health, and is tried again until it works.
func (b *Broker) save() error {
	m := &b.metadata
	m.mu.Lock()
	if m.pending == nil {
		m.pending = new(metadataWrite)
	}
	w := m.pending
	m.mu.Unlock()

	w.once.Do(func() { // the first of those who wait writes for all
		m.writing.Lock()
		defer m.writing.Unlock()
		m.mu.Lock()
		m.pending = nil // what changes from now on needs another write
		m.mu.Unlock()
		w.err = b.writeMetadata()
	})
	return w.err
}

// keep returns when what was created is in the metadata, whoever created it. Whether it was kept is
// remembered even if it could not be: to try again is the business of saveLater.
func (b *Broker) keep(ephemeral bool, kept *atomic.Bool) {
	if ephemeral || kept.Load() {
		return
	}
	b.save()
	kept.Store(true)
}

func (b *Broker) writeMetadata() error {
	name := b.config.Store.MetadataName()
	b.config.Logger.Infof("NSQ: persisting topic/channel metadata to %s", name)
	data, err := json.Marshal(b.document())
	if err == nil {
		err = b.config.Store.SaveMetadata(data)
	}
	b.config.Health.Set("metadata", err)
	if err != nil {
		b.config.Logger.Errorf("failed to persist metadata - %s", err)
		b.saveLater()
		return fmt.Errorf("persist metadata: %w", err)
	}
	return nil
}

// saveLater tries again after a while, unless the broker is closed.
func (b *Broker) saveLater() {
	m := &b.metadata
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.retry == nil {
		m.retry = time.AfterFunc(metadataRetry, func() {
			if !b.isClosed() {
				b.save()
			}
		})
		return
	}
	m.retry.Reset(metadataRetry)
}

// document describes all topics and channels that are not ephemeral.
func (b *Broker) document() document {
	d := document{Version: version.Version}
	for _, t := range b.Topics() {
		if t.ephemeral {
			continue
		}
		topic := documentTopic{Name: t.name, Paused: t.paused.Load()}
		for _, c := range t.Channels() {
			if !c.ephemeral {
				topic.Channels = append(topic.Channels, documentChannel{Name: c.name, Paused: c.paused.Load()})
			}
		}
		d.Topics = append(d.Topics, topic)
	}
	return d
}

// restore creates the topics and channels of the metadata, and writes it back unless it is as we
// would write it: a full disk must not keep anyone from reading what is on it.
func (b *Broker) restore() error {
	name := b.config.Store.MetadataName()
	data, err := b.config.Store.LoadMetadata()
	var d document
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("failed to load metadata - failed to read metadata from %s - %w", name, err)
	default:
		if err := json.Unmarshal(data, &d); err != nil {
			return fmt.Errorf("failed to load metadata - failed to parse metadata in %s - %w", name, err)
		}
	}
	for _, t := range d.Topics {
		if err := b.restoreTopic(t); err != nil {
			return err
		}
	}
	if same, err := json.Marshal(b.document()); err == nil && bytes.Equal(same, data) {
		return nil
	}
	if err := b.save(); err != nil {
		return fmt.Errorf("failed to persist metadata - %w", errors.Unwrap(err))
	}
	return nil
}

// restoreTopic creates a topic with its channels. It begins to move messages when all are there.
func (b *Broker) restoreTopic(d documentTopic) error {
	if !b.validMetadataName("topic", d.Name) {
		return nil
	}
	if _, err := b.FindTopic(d.Name); err == nil {
		return nil
	}
	t, err := newTopic(b, d.Name)
	if err != nil {
		return err
	}
	t.paused.Store(d.Paused)
	t.kept.Store(true)
	b.mu.Lock()
	b.topics[d.Name] = t
	b.mu.Unlock()
	for _, channel := range d.Channels {
		if !b.validMetadataName("channel", channel.Name) {
			continue
		}
		c, _, err := t.ensureChannel(channel.Name)
		if err != nil {
			return err
		}
		c.paused.Store(channel.Paused)
		c.kept.Store(true)
	}
	t.wakePump()
	return nil
}
