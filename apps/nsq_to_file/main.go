// Command nsq_to_file writes the messages of topics to files, one message a line. A message is finished
// when it is on the disk and not before.
//
// Source: apps spec, section 7.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"nsq/internal/archive"
	"nsq/internal/consume"
	"nsq/internal/log"
	"nsq/internal/protocol"
	"nsq/internal/utility"
)

const name = "nsq_to_file"

func main() { utility.Main(newToFile().program()) }

// toFile is the program with its flags. The second group is made of them by early and check.
type toFile struct {
	logLevel       string
	logPrefix      string
	topics         utility.List
	topicPattern   string
	topicRefresh   time.Duration
	channel        string
	connectTimeout time.Duration // of HTTP requests for topics
	requestTimeout time.Duration // of HTTP requests for topics
	outputDir      string
	workDir        string
	datetime       string
	filename       string
	host           string
	gzip           bool
	gzipLevel      int
	zstd           bool
	zstdLevel      int
	skipEmpty      bool
	rotateSize     int64 // bytes
	rotateInterval time.Duration
	syncInterval   time.Duration
	consume        *consume.Flags

	level   log.Level
	pattern *regexp.Regexp // nil: all topics
	archive archive.Config
}

func newToFile() *toFile {
	t := &toFile{consume: consume.NewFlags(name)}
	t.consume.Patient = true
	return t
}

func (t *toFile) program() *utility.Program {
	return &utility.Program{Name: name, Flags: t.define, Early: t.early, Check: t.check, Run: t.run}
}

func (t *toFile) define(set *flag.FlagSet) {
	set.StringVar(&t.logLevel, "log-level", "info", "what is logged at least: debug, info, warn, error or fatal")
	set.StringVar(&t.logPrefix, "log-prefix", "["+name+"] ", "what lines of the log begin with")
	set.Var(&t.topics, "topic", "topic to archive (may be given multiple times)")
	set.StringVar(&t.topicPattern, "topic-pattern", "", "regular expression that topics have to match")
	set.DurationVar(&t.topicRefresh, "topic-refresh", time.Minute, "how often to look for new topics if none is given")
	set.StringVar(&t.channel, "channel", name, "channel")
	set.DurationVar(&t.connectTimeout, "http-client-connect-timeout", 2*time.Second, "timeout to connect when looking for topics")
	set.DurationVar(&t.requestTimeout, "http-client-request-timeout", 5*time.Second, "timeout of a request when looking for topics")
	set.StringVar(&t.outputDir, "output-dir", "/tmp", "folder of the files")
	set.StringVar(&t.workDir, "work-dir", "", "folder of files that are not finished yet, by default that of the others")
	set.StringVar(&t.datetime, "datetime-format", "%Y-%m-%d_%H", "of <DATETIME> in a file's name, as in strftime")
	set.StringVar(&t.filename, "filename-format", "<TOPIC>.<HOST><REV>.<DATETIME>.log",
		"name of a file below the folder; <TOPIC>, <HOST>, <PID>, <DATETIME> and <REV>, the revision, are replaced")
	set.StringVar(&t.host, "host-identifier", "",
		"for <HOST> in a file's name, by default the short host name; <SHORT_HOST> and <HOSTNAME> are replaced")
	set.BoolVar(&t.gzip, "gzip", false, "compress the files with gzip")
	set.IntVar(&t.gzipLevel, "gzip-level", 6, "level of gzip, 1 (fast) to 9 (small)")
	set.BoolVar(&t.zstd, "zstd", false, "compress the files with zstd")
	set.IntVar(&t.zstdLevel, "zstd-level", 3, "level of zstd, 1 (fast) to 22 (small)")
	set.BoolVar(&t.skipEmpty, "skip-empty-files", false, "create no file before there is a message for it")
	set.Int64Var(&t.rotateSize, "rotate-size", 0, "bytes, not compressed, after which a file is finished; 0 is no limit")
	set.DurationVar(&t.rotateInterval, "rotate-interval", 0, "time after which a file is finished; 0 is no limit")
	set.DurationVar(&t.syncInterval, "sync-interval", 30*time.Second, "how long a message waits at most before it is finished")
	t.consume.Define(set)
}

func (t *toFile) early(arguments []string) (err error) {
	if err := utility.NoArguments(arguments); err != nil {
		return err
	}
	if t.level, err = log.ParseLevel(t.logLevel); err != nil {
		return errors.New("--log-level is invalid")
	}
	return nil
}

func (t *toFile) check() error {
	err := t.consume.CheckSources()
	switch {
	case t.channel == "":
		return errors.New("--channel is required")
	case t.connectTimeout <= 0:
		return errors.New("--http-client-connect-timeout should be positive")
	case t.requestTimeout <= 0:
		return errors.New("--http-client-request-timeout should be positive")
	case errors.Is(err, consume.ErrNoSource):
		return errors.New(err.Error() + ".") // this program's text has a dot
	case err != nil:
		return err
	case t.gzipLevel < 1 || t.gzipLevel > 9:
		return fmt.Errorf("invalid --gzip-level value (%d), should be 1-9", t.gzipLevel)
	case len(t.topics) == 0 && t.topicPattern == "":
		return errors.New("--topic or --topic-pattern required")
	case len(t.topics) == 0 && len(t.consume.Lookupds) == 0:
		return errors.New("--lookupd-http-address must be specified when no --topic specified")
	}
	return t.checkMore()
}

// checkMore refuses at once what could never archive anything.
func (t *toFile) checkMore() (err error) {
	switch {
	case t.gzip && t.zstd:
		return errors.New("use --gzip or --zstd not both")
	case t.zstdLevel < 1 || t.zstdLevel > 22:
		return fmt.Errorf("invalid --zstd-level value (%d), should be 1-22", t.zstdLevel)
	case !protocol.ValidName(t.channel):
		return errors.New("--channel is invalid")
	case t.syncInterval <= 0:
		return errors.New("--sync-interval should be positive")
	case t.topicRefresh <= 0 && len(t.topics) == 0:
		return errors.New("--topic-refresh should be positive")
	}
	if t.topicPattern != "" {
		if t.pattern, err = regexp.Compile(t.topicPattern); err != nil {
			return fmt.Errorf("--topic-pattern is invalid: %w", err)
		}
	}
	if t.archive, err = t.archiveConfig(); err != nil {
		return err
	}
	if err := t.archive.Check(); err != nil {
		return err
	}
	return t.consume.Check()
}

func (t *toFile) archiveConfig() (archive.Config, error) {
	hostname, err := os.Hostname()
	if err != nil {
		return archive.Config{}, fmt.Errorf("find host name: %w", err)
	}
	short, _, _ := strings.Cut(hostname, ".")
	host := strings.NewReplacer("<SHORT_HOST>", short, "<HOSTNAME>", hostname).Replace(t.host)
	if host == "" {
		host = short
	}
	c := archive.Config{
		Naming:         archive.Naming{Format: t.filename, Datetime: t.datetime, Host: host},
		OutputDir:      t.outputDir,
		Mover:          archive.NewMover(t.workDir, t.outputDir),
		RotateSize:     t.rotateSize,
		RotateInterval: t.rotateInterval,
	}
	switch {
	case t.gzip:
		c.Compression, c.Level = archive.Gzip, t.gzipLevel
	case t.zstd:
		c.Compression, c.Level = archive.Zstd, t.zstdLevel
	}
	return c, nil
}

func (t *toFile) run(ctx context.Context, std utility.Streams) error {
	a := newArchiver(t, log.New(std.Err, t.logPrefix, t.level), std.Log)
	err := a.follow(ctx)
	return errors.Join(err, a.stop())
}
