package clientopt

import (
	"errors"
	"strings"

	"github.com/nsqio/go-nsq"
)

// LevelHelp is the description of the flag --client-log-level.
const LevelHelp = "what the go-nsq client logs at least: debug, info, warn or error"

// Level is the lightest level of the client's own lines that are logged, a flag.Value.
type Level nsq.LogLevel

// DefaultLevel is what the client logs if nothing is said.
const DefaultLevel = Level(nsq.LogLevelInfo)

var levelNames = map[Level]string{
	Level(nsq.LogLevelDebug):   "debug",
	Level(nsq.LogLevelInfo):    "info",
	Level(nsq.LogLevelWarning): "warn",
	Level(nsq.LogLevelError):   "error",
}

// String is the level as the flag takes it.
func (l *Level) String() string { return levelNames[*l] }

// Set takes the name of a level in any letter case.
func (l *Level) Set(text string) error {
	for level, name := range levelNames {
		if strings.EqualFold(text, name) {
			*l = level
			return nil
		}
	}
	return errors.New("want debug, info, warn or error")
}
