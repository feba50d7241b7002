package clientopt

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nsq/internal/version"
)

// Options reach the client's config, in each of the forms in which they can be written.
func TestSet(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := New("prog")
	for _, text := range []string{
		"dial_timeout,2s", "max-requeue-delay,3s", "deflate", "snappy,false", "client_id,a,b", "max_attempts,65535",
		"backoff_strategy,full_jitter", "heartbeat_interval,-1ns", "auth-secret-file," + secret, "user_agent,X", "local_addr,127.0.0.1:0",
	} {
		if err := o.Set(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	c := o.Config()
	if c.DialTimeout != 2*time.Second || c.MaxRequeueDelay != 3*time.Second || !c.Deflate || c.Snappy ||
		c.ClientID != "a,b" || c.MaxAttempts != 65535 || c.HeartbeatInterval != -1 || c.AuthSecret != "s3cret" || c.LocalAddr == nil {
		t.Errorf("config is %+v", c)
	}
	if want := "prog/" + version.Version + " go-nsq/1.1.0"; c.UserAgent != want {
		t.Errorf("user agent %q, want %q", c.UserAgent, want)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

// A copy of the config can be changed without the next one being so, and attempts are not limited unless
// somebody says so.
func TestConfigIsACopy(t *testing.T) {
	o := New("prog")
	o.Config().MaxInFlight = 77
	if c := o.Config(); c.MaxInFlight == 77 || c.MaxAttempts != 0 {
		t.Errorf("max in flight %d, max attempts %d", c.MaxInFlight, c.MaxAttempts)
	}
}

// What is wrong with an option is said; nothing panics.
func TestSetRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"bogus,1":                      "invalid option bogus",
		"":                             "invalid option ",
		"read_timeout,10ms":            "invalid read_timeout ! 10ms < 100ms",
		"sample_rate,100":              "invalid sample_rate ! 100 > 99",
		"dial_timeout,5":               `failed to coerce option dial_timeout (5) - time: missing unit in duration "5"`,
		"max_attempts,99999":           "invalid max_attempts ! 99999 > 65535",
		"max_attempts,-1":              `failed to coerce option max_attempts (-1) - strconv.ParseUint: parsing "-1": invalid syntax`,
		"max_attempts":                 `failed to coerce option max_attempts () - strconv.ParseUint: parsing "": invalid syntax`,
		"tls_config,x":                 "invalid option tls_config",
		"tls-config":                   "invalid option tls_config",
		"backoff_strategy,linear":      "failed to coerce option backoff_strategy (linear) - want exponential or full_jitter",
		"backoff_strategy":             "failed to coerce option backoff_strategy () - a value is required",
		"tls_cert":                     "failed to coerce option tls_cert () - a value is required",
		"local_addr":                   "failed to coerce option local_addr () - a value is required",
		"tls_min_version,tls2":         "ERROR: tls2 is not a tls version",
		"tls_root_ca_file,/nowhere/ca": "ERROR: failed to read custom Certificate Authority file open /nowhere/ca: no such file or directory",
		"auth_secret_file,/nowhere/s":  "failed to read option auth_secret_file - open /nowhere/s: no such file or directory",
	} {
		if err := New("prog").Set(text); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// TLS 1.3 can be demanded, and is not lost with any other option.
func TestTLSVersions(t *testing.T) {
	o := New("prog")
	for _, text := range []string{"tls_v1", "tls_min_version,tls1.3", "tls_insecure_skip_verify"} {
		if err := o.Set(text); err != nil {
			t.Fatal(err)
		}
	}
	if c := o.Config().TlsConfig; c.MinVersion != tls.VersionTLS13 || c.MaxVersion != 0 || !c.InsecureSkipVerify {
		t.Errorf("TLS from %x to %x", c.MinVersion, c.MaxVersion)
	}
}

// A file that is too long is no secret.
func TestSecretFileIsBounded(t *testing.T) {
	name := filepath.Join(t.TempDir(), "long")
	if err := os.WriteFile(name, make([]byte, maxSecretFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := New("prog").Set("auth_secret_file," + name); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("error %v", err)
	}
}

// Levels are written as they are read.
func TestLevel(t *testing.T) {
	for _, name := range []string{"debug", "info", "warn", "error"} {
		var l Level
		if err := l.Set(strings.ToUpper(name)); err != nil || l.String() != name {
			t.Errorf("%s: level %v, error %v", name, l, err)
		}
	}
	level := DefaultLevel
	if err := level.Set("loud"); err == nil || level != DefaultLevel {
		t.Errorf("error %v, level %v", err, level)
	}
}

// No text makes the client panic.
func FuzzSet(f *testing.F) {
	for _, seed := range []string{"tls_config,x", "backoff_strategy", "tls_cert", "local_addr,[", "max_attempts,1", "sample_rate,NaN", "tls_min_version"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o := New("prog")
		if err := o.Set(text); err == nil {
			o.Config()
		}
	})
}
