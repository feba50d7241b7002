package options

import (
	"io"

	"nsq/internal/log"
)

// Logging are the settings of the log that every daemon has. A daemon embeds them in its options.
type Logging struct {
	LogLevel  log.Level // lightest level that is written; can be changed at runtime
	LogPrefix string    // text at the start of every line; text format only
	LogFormat string    // "text" or "json"
}

// The formats of the log.
const (
	LogFormatText = "text" // a line of prefix, time, level and text
	LogFormatJSON = "json" // an object a line
)

// DefaultLogging is text of at least the level, with the prefix.
func DefaultLogging(level log.Level, prefix string) Logging {
	return Logging{LogLevel: level, LogPrefix: prefix, LogFormat: LogFormatText}
}

// Logger returns a logger that follows the settings.
func (l *Logging) Logger(out io.Writer) *log.Logger {
	if l.LogFormat == LogFormatJSON {
		return log.NewJSON(out, l.LogLevel)
	}
	return log.New(out, l.LogPrefix, l.LogLevel)
}

// Rows are the rows of the settings for the daemon's table. The deprecated verbose is among them
// because old start scripts still pass it.
func (l *Logging) Rows() []Option {
	return []Option{
		{Flag: "log-level", Value: LogLevel(&l.LogLevel), Changeable: true,
			Help: "lightest level that is logged: debug, info, warn, error or fatal"},
		{Flag: "log-prefix", Value: String(&l.LogPrefix), Argument: "text",
			Help: "text at the start of every log line; JSON has no place for it"},
		{Flag: "log-format", Value: Choice(&l.LogFormat, LogFormatText, LogFormatJSON), Argument: "format",
			Help: "form of the log: text, or json for one JSON object a line"},
		{Flag: "verbose", Key: NoKey, Value: Bool(new(bool)),
			Help: "deprecated, has no effect: use -log-level"},
	}
}
