// Package utility is the main function of the command line utilities: flags, --help and --version,
// signals, the last words and the exit code.
//
//	func main() { utility.Main(newProgram()) }
//
// A program's flags are those of package flag, from which come the texts of --help and of its errors.
// The package knows no utility and nothing of NSQ; what consumers have in common is in internal/consume.
//
// Source: apps spec, sections 1.1 to 1.7.
package utility

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"nsq/internal/version"
)

// Exit codes.
const (
	exitFailed = 1 // validation, and whatever goes wrong later
	exitUsage  = 2 // the command line cannot be parsed
)

// Program is a utility. Its functions are called in the order of the fields, each once, by one goroutine.
type Program struct {
	Name string // as in --version

	// Flags defines the flags, without --version, which every program has.
	Flags func(set *flag.FlagSet)

	// Early checks what comes even before --version; arguments are those that are no flags. Nil:
	// nothing does. Arguments that are left over are refused in any case, if not here.
	Early func(arguments []string) error

	// Check says what is wrong with the values of the flags. Nil: nothing ever is.
	Check func() error

	// Run does the work and returns when it is done or soon after ctx is cancelled, which a signal
	// does. Nil means exit code 0; an error is the last line in the log, and the code is 1.
	Run func(ctx context.Context, std Streams) error

	// StopOn are signals that stop the program besides SIGINT and SIGTERM.
	StopOn []os.Signal
}

// Streams are where a program reads and writes.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	Log *log.Logger // lines with date and time, to Err
}

// NewLog returns the logger of a utility: "YYYY/MM/DD HH:MM:SS TEXT", local time, one write a line.
func NewLog(out io.Writer) *log.Logger { return log.New(out, "", log.LstdFlags) }

// Main makes the process the program and does not return. SIGINT and SIGTERM ask it to stop; when one
// comes again the process ends at once, with code 1: what was not finished then stays with nsqd.
func Main(p *Program) {
	ctx, stop := context.WithCancel(context.Background())
	// From here to the end of the process a signal is a request, not a kill.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, append([]os.Signal{syscall.SIGINT, syscall.SIGTERM}, p.StopOn...)...)
	std := Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Log: NewLog(os.Stderr)}
	go func() {
		<-signals
		stop()
		again := <-signals
		std.Log.Printf("received %v while stopping, exiting at once", again)
		os.Exit(exitFailed)
	}()
	os.Exit(Execute(ctx, p, os.Args, std))
}

// Execute runs the program with a command line, of which args[0] is the name it was called by, and
// returns the exit code. It is Main without the process. std.Log may be nil: it then logs to std.Err.
func Execute(ctx context.Context, p *Program, args []string, std Streams) int {
	if std.Log == nil {
		std.Log = NewLog(std.Err)
	}
	set := flag.NewFlagSet(args[0], flag.ContinueOnError)
	set.SetOutput(std.Err)
	showVersion := set.Bool("version", false, "print the version and exit")
	p.Flags(set)
	if err := set.Parse(args[1:]); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return exitUsage // the reason and the usage are on stderr
	}
	err := p.early(set.Args())
	if err == nil && *showVersion {
		_, err = fmt.Fprintf(std.Out, "%s v%s\n", p.Name, version.Version)
	} else if err == nil {
		err = p.work(ctx, set.Args(), std)
	}
	if err != nil {
		std.Log.Print(err)
		return exitFailed
	}
	return 0
}

func (p *Program) early(arguments []string) error {
	if p.Early == nil {
		return nil
	}
	return p.Early(arguments)
}

// work refuses arguments that are left over: a forgotten dash must not make the rest of the line
// ineffective.
func (p *Program) work(ctx context.Context, arguments []string, std Streams) error {
	if err := NoArguments(arguments); err != nil {
		return err
	}
	if p.Check != nil {
		if err := p.Check(); err != nil {
			return err
		}
	}
	return p.Run(ctx, std)
}

// NoArguments returns an error that names the arguments, unless there are none.
func NoArguments(arguments []string) error {
	if len(arguments) > 0 {
		return fmt.Errorf("unknown arguments: %s", arguments)
	}
	return nil
}
