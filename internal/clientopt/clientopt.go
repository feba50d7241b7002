// Package clientopt has the flags that set the options of the go-nsq client, --consumer-opt and
// --producer-opt, and makes consumers and producers of them that all speak to the log in the same way.
//
//	options := clientopt.New("nsq_tail")
//	set.Var(options, "consumer-opt", "...")
//	...
//	producer, err := clientopt.NewProducer(address, options.Config(), clientopt.DefaultLevel, logger)
//
// It knows the options and nothing of what they are used for.
//
// Source: apps spec, sections 1.5, 2.2 and 4.
package clientopt

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"

	"github.com/nsqio/go-nsq"

	"nsq/internal/version"
)

// Help is the description of such a flag.
const Help = "option of the go-nsq client, KEY,VALUE or KEY alone for true (may be given multiple times)"

const (
	maxAttempts   = 1<<16 - 1
	maxSecretFile = 64 << 10 // bytes
)

// Options are the options of the consumers or producers of a program. It is a flag.Value: each use of
// the flag sets one option. It is not safe for concurrent use.
type Options struct {
	userAgent string
	config    *nsq.Config
}

// New returns the options' defaults. They are those of the client but one: the attempts at a message
// are not limited, for the client discards what exceeds them.
func New(program string) *Options {
	config := nsq.NewConfig()
	config.MaxAttempts = 0
	return &Options{
		userAgent: fmt.Sprintf("%s/%s go-nsq/%s", program, version.Version, nsq.VERSION),
		config:    config,
	}
}

// Config returns a copy of the options. Its user agent is the program's, whatever the flag said.
func (o *Options) Config() *nsq.Config {
	config := *o.config
	config.UserAgent = o.userAgent
	return &config
}

// NewConsumer returns a consumer that is not connected yet and logs to logger. Options that do not go
// together are an error, as are wrong names. config is that of Config, or made from it.
func NewConsumer(topic, channel string, config *nsq.Config, level Level, logger *log.Logger) (*nsq.Consumer, error) {
	consumer, err := nsq.NewConsumer(topic, channel, config)
	if err != nil {
		return nil, err
	}
	consumer.SetLogger(logger, nsq.LogLevel(level))
	return consumer, nil
}

// NewProducer returns a producer for the nsqd at address that connects with its first message and logs
// to logger. Options that do not go together are an error.
func NewProducer(address string, config *nsq.Config, level Level, logger *log.Logger) (*nsq.Producer, error) {
	producer, err := nsq.NewProducer(address, config)
	if err != nil {
		return nil, err
	}
	producer.SetLogger(logger, nsq.LogLevel(level))
	return producer, nil
}

// String is empty: the flag has no default to show.
func (o *Options) String() string { return "" }

// Set takes KEY,VALUE, or KEY for true; dashes in KEY are as good as underscores. Besides the options
// of the client there is auth_secret_file, the path of a file with the secret: on the command line
// everybody can read it.
func (o *Options) Set(text string) error {
	key, value, hasValue := strings.Cut(text, ",")
	key = strings.ReplaceAll(key, "-", "_")
	err := set(o.config, key, value, hasValue)
	if err == nil && o.config.TlsConfig != nil {
		o.config.TlsConfig.MaxVersion = 0 // the client stops at TLS 1.2 by itself
	}
	return err
}

// set gives the client an option, but for those that it takes badly or not at all.
func set(config *nsq.Config, key, value string, hasValue bool) error {
	switch {
	case key == "", key == "tls_config": // to the client one is a private field, the other a reason to panic
		return fmt.Errorf("invalid option %s", key)
	case texts[key] && !hasValue: // the client would panic
		return fmt.Errorf("failed to coerce option %s () - a value is required", key)
	case specials[key] != nil:
		return specials[key](config, key, value)
	case hasValue:
		return config.Set(key, value)
	}
	return config.Set(key, true)
}

// texts are the options that cannot be given without a value.
var texts = map[string]bool{
	"local_addr": true, "backoff_strategy": true, "tls_cert": true, "tls_key": true, "auth_secret_file": true,
}

var specials = map[string]func(config *nsq.Config, key, value string) error{
	"backoff_strategy": setBackoffStrategy,
	"max_attempts":     setMaxAttempts,
	"tls_min_version":  setTLSMinVersion,
	"auth_secret_file": setAuthSecretFile,
}

// setBackoffStrategy refuses unknown names, with which the client panics.
func setBackoffStrategy(config *nsq.Config, key, value string) error {
	if value != "exponential" && value != "full_jitter" {
		return fmt.Errorf("failed to coerce option %s (%s) - want exponential or full_jitter", key, value)
	}
	return config.Set(key, value)
}

// setMaxAttempts checks the range that the client checks too late: it would take 65537 for 1.
func setMaxAttempts(config *nsq.Config, key, value string) error {
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return fmt.Errorf("failed to coerce option %s (%s) - %w", key, value, err)
	}
	if n > maxAttempts {
		return fmt.Errorf("invalid %s ! %d > %d", key, n, maxAttempts)
	}
	config.MaxAttempts = uint16(n)
	return nil
}

// setTLSMinVersion adds TLS 1.3, which the client does not know.
func setTLSMinVersion(config *nsq.Config, key, value string) error {
	newest := value == "tls1.3"
	if newest {
		value = "tls1.2"
	}
	if err := config.Set(key, value); err != nil {
		return err
	}
	if newest {
		config.TlsConfig.MinVersion = tls.VersionTLS13
	}
	return nil
}

// setAuthSecretFile reads the secret from a file; the end of its last line does not belong to it.
func setAuthSecretFile(config *nsq.Config, key, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("failed to read option %s - %w", key, err)
	}
	defer f.Close()
	secret, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err == nil && len(secret) > maxSecretFile {
		err = errors.New("file too large")
	}
	if err != nil {
		return fmt.Errorf("failed to read option %s - %w", key, err)
	}
	return config.Set("auth_secret", strings.TrimRight(string(secret), "\r\n"))
}
