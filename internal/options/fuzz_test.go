package options

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whatever is in a file, reading it ends with settings or with an error.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		"id = 5\nmsg_timeout = \"7s\"\nsnappy = 0", `percentiles = [1, 0.5]`, `tls_required = {a = [1]}`,
		"[a.b]\nc = 1979-05-27T07:32:00Z", "a=" + strings.Repeat("[", 1000), "\xff\x00", `log_level = """x"""`,
	} {
		f.Add([]byte(seed))
	}
	path := filepath.Join(f.TempDir(), "prog.toml")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s := newSettings()
		var out strings.Builder
		_, err := s.table().Load([]string{"--config=" + path}, &out, &out)
		if out.Len() > 0 {
			t.Errorf("a file wrote %q", out.String())
		}
		if err != nil {
			return
		}
		if s.Peers == nil || s.Quantile == nil || s.LogLevel.String() == "" || s.MinTLS < 769 || s.MinTLS > 772 {
			t.Errorf("settings are %+v", s)
		}
	})
}

// Whatever is the body of a PUT, the list is the new one or the old one.
func FuzzSetStrings(f *testing.F) {
	for _, seed := range []string{`["a","b"]`, `[]`, `null`, `["a",null]`, `{"a":1}`, `[["a"]]`, "\"\xff\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		s := newSettings()
		s.Peers = []string{"old:1"}
		err := s.table().Set("nsqlookupd_tcp_addresses", body)
		if err != nil {
			if !errors.Is(err, ErrBadValue) || !cmp.Equal(s.Peers, []string{"old:1"}) {
				t.Errorf("error %v leaves %q", err, s.Peers)
			}
			return
		}
		// What was taken reads the same after a round through JSON.
		var want []string
		if json.Unmarshal(body, &want) != nil || !cmp.Equal(want, s.Peers) {
			t.Errorf("%q became %q", body, s.Peers)
		}
	})
}
