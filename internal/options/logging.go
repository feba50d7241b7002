package options

import (
	"io"

	"nsq/internal/log"
)

// Logging are the settings of the log that every daemon has. A daemon embeds them in its options.
type Logging struct {
	LogLevel  log.Level // lightest level that is written; can be changed at runtime
	LogPrefix string    // text at the start of every line
}

// Logger returns a logger that follows the settings.
func (l *Logging) Logger(out io.Writer) *log.Logger { return log.New(out, l.LogPrefix, l.LogLevel) }

// Rows are the rows of the settings for the daemon's table. The deprecated verbose is among them
// because old start scripts still pass it.
func (l *Logging) Rows() []Option {
	return []Option{
		{Flag: "log-level", Value: LogLevel(&l.LogLevel), Changeable: true,
			Help: "lightest level that is logged: debug, info, warn, error or fatal"},
		{Flag: "log-prefix", Value: String(&l.LogPrefix),
			Help: "text at the start of every log line"},
		{Flag: "verbose", Key: NoKey, Value: Bool(new(bool)),
			Help: "deprecated, has no effect: use -log-level"},
	}
}
