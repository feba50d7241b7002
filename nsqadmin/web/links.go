package web

import (
	"net/url"
	"strings"
)

// links makes the addresses of pages, all of them below the base path. Names come from nodes and may
// have any form: each is one escaped segment.
type links struct{ base string } // without a trailing slash; empty for the root

func newLinks(basePath string) links { return links{strings.TrimRight(basePath, "/")} }

// To is the address of a fixed path, which begins with a slash.
func (l links) To(path string) string {
	if path == "/" && l.base != "" {
		return l.base // with a slash it would be redirected
	}
	return l.base + path
}

// Static is the address of an asset.
func (l links) Static(name string) string { return l.base + "/static/" + name }

func (l links) topic(topic string) string { return l.base + "/topics/" + url.PathEscape(topic) }

func (l links) channel(topic, channel string) string {
	return l.topic(topic) + "/" + url.PathEscape(channel)
}

func (l links) node(address string) string { return l.base + "/nodes/" + url.PathEscape(address) }

// withQuery appends the parameters that are not empty.
func withQuery(path string, values url.Values) string {
	kept := url.Values{}
	for key, list := range values {
		if len(list) > 0 && list[0] != "" {
			kept.Set(key, list[0])
		}
	}
	if len(kept) == 0 {
		return path
	}
	return path + "?" + kept.Encode()
}
