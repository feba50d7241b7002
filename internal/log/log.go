// Package log writes the daemons' log: lines of prefix, local time with microseconds, level and text,
// or JSON objects with time, level and msg.
//
// A line that is not going to be written costs one atomic load: hot paths ask Enabled before they
// build arguments. All methods may be called from any goroutine.
//
// Source: nsqd-config spec, section 12.
package log

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Level orders messages by weight; its numbers are what /config/log_level answers.
type Level int32

// The levels, lightest first.
const (
	Debug Level = 1 + iota
	Info
	Warn
	Error
	Fatal
)

// levels lists, for each level, the name used in configuration and the word that stands in a line.
var levels = map[Level]struct{ name, word string }{
	Debug: {"debug", "DEBUG"},
	Info:  {"info", "INFO"},
	Warn:  {"warn", "WARNING"},
	Error: {"error", "ERROR"},
	Fatal: {"fatal", "FATAL"},
}

// structured are the levels of JSON objects, ordered as ours.
var structured = map[Level]slog.Level{
	Debug: slog.LevelDebug,
	Info:  slog.LevelInfo,
	Warn:  slog.LevelWarn,
	Error: slog.LevelError,
	Fatal: slog.LevelError + 4,
}

// String is the name used in configuration.
func (l Level) String() string { return levels[l].name }

// ParseLevel reads the name of a level in any letter case.
func ParseLevel(name string) (Level, error) {
	for level, text := range levels {
		if strings.EqualFold(name, text.name) {
			return level, nil
		}
	}
	return 0, fmt.Errorf("invalid log level '%s' (debug, info, warn, error, fatal)", name)
}

// Logger writes lines of at least its level to one writer, each with one Write.
type Logger struct {
	prefix string
	level  atomic.Int32
	json   slog.Handler // nil for text

	mu  sync.Mutex // one line at a time
	out io.Writer
	buf []byte // reused between lines
}

// New returns a logger; out may be nil, then nothing is written.
func New(out io.Writer, prefix string, level Level) *Logger {
	l := &Logger{prefix: prefix, out: out}
	l.level.Store(int32(level))
	return l
}

// NewJSON returns a logger that writes an object a line: time, level (as in text) and msg.
func NewJSON(out io.Writer, level Level) *Logger {
	l := New(out, "", level)
	l.json = slog.NewJSONHandler(out, &slog.HandlerOptions{
		Level: slog.LevelDebug, // ours has decided by then
		ReplaceAttr: func(_ []string, attribute slog.Attr) slog.Attr {
			if weight, ok := attribute.Value.Any().(slog.Level); ok && attribute.Key == slog.LevelKey {
				for level, same := range structured {
					if same == weight {
						return slog.String(slog.LevelKey, levels[level].word)
					}
				}
			}
			return attribute
		},
	})
	return l
}

// Discard returns a logger that writes nothing, for tests.
func Discard() *Logger { return New(nil, "", Fatal+1) }

// SetLevel changes the lightest level that is written, from the next line on.
func (l *Logger) SetLevel(level Level) { l.level.Store(int32(level)) }

// Level is the lightest level that is written.
func (l *Logger) Level() Level { return Level(l.level.Load()) }

// Enabled says whether a message of this level would be written.
func (l *Logger) Enabled(level Level) bool { return level >= l.Level() }

// Logf writes a line at the given level. The text is formatted as by fmt.Sprintf.
func (l *Logger) Logf(level Level, format string, args ...any) {
	if !l.Enabled(level) || l.out == nil {
		return
	}
	if l.json != nil {
		// Where the log itself fails there is nobody left to tell.
		_ = l.json.Handle(context.Background(), slog.NewRecord(time.Now(), structured[level], fmt.Sprintf(format, args...), 0))
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = append(l.buf[:0], l.prefix...)
	l.buf = time.Now().AppendFormat(l.buf, "2006/01/02 15:04:05.000000 ")
	l.buf = append(l.buf, levels[level].word...)
	l.buf = append(l.buf, ": "...)
	start := len(l.buf)
	l.buf = fmt.Appendf(l.buf, format, args...)
	// A peer's bytes must not be able to forge a line of their own.
	for i, c := range l.buf[start:] {
		if c == '\n' || c == '\r' {
			l.buf[start+i] = ' '
		}
	}
	l.buf = append(l.buf, '\n')
	l.out.Write(l.buf) // where the log itself fails there is nobody left to tell
}

// Debugf writes a line at level Debug.
func (l *Logger) Debugf(format string, args ...any) { l.Logf(Debug, format, args...) }

// Infof writes a line at level Info.
func (l *Logger) Infof(format string, args ...any) { l.Logf(Info, format, args...) }

// Warnf writes a line at level Warn.
func (l *Logger) Warnf(format string, args ...any) { l.Logf(Warn, format, args...) }

// Errorf writes a line at level Error.
func (l *Logger) Errorf(format string, args ...any) { l.Logf(Error, format, args...) }

// Fatalf writes a line at level Fatal; it does not end the process.
func (l *Logger) Fatalf(format string, args ...any) { l.Logf(Fatal, format, args...) }
