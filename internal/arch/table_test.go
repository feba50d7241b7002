package arch

// pkg is a row of the table: a package of this module, from its root, and what its code, tests
// aside, may import of the others. Each import has its reason; who adds one finds a reason, too.
type pkg struct {
	path string
	may  reasons
}

type reasons map[string]string

// everyone may import what is tiny, has no imports of its own and concerns every daemon.
var everyone = reasons{
	"internal/log":     "whoever does not return an error logs it",
	"internal/version": "every peer, file and --version is told the same one",
}

var table = []pkg{
	// The bottom: each of these is one idea that needs no other.
	{"internal/api", nil},
	{"internal/arch", nil},
	{"internal/log", nil},
	{"internal/metrics/histogram", nil},
	{"internal/protocol", nil},
	{"internal/quantile", nil},
	{"internal/statefile", nil},
	{"internal/tlsconf", nil},
	{"internal/version", nil},

	// The middle: plumbing that knows no daemon.
	{"internal/auth", reasons{
		"internal/httpx": "auth servers are asked over HTTP",
	}},
	{"internal/diskq", reasons{
		"internal/metrics/histogram": "how long writes and syncs take",
		"internal/statefile":         "metadata is replaced in one step; folders that are safe",
	}},
	{"internal/httpx", nil},
	{"internal/lookup", reasons{
		"internal/api":      "JSON of a look-up",
		"internal/httpx":    "look-ups go over HTTP",
		"internal/protocol": "V1 has the names and the line form of V2",
	}},
	{"internal/metrics", reasons{
		"internal/metrics/histogram": "a histogram is shown as one",
	}},
	{"internal/netserver", nil},
	{"internal/options", nil},
	{"internal/options/optionstest", reasons{
		"internal/options": "the table that documents are compared with",
	}},
	{"internal/run", reasons{
		"internal/options": "a main loads the table of its daemon and obeys its exit codes",
	}},
	{"internal/statsd", reasons{
		"internal/api":      "the statistics that are pushed",
		"internal/protocol": "which names are ephemeral",
	}},

	// What the utilities share: each is one job of a client, and knows no utility.
	{"internal/archive", reasons{
		"internal/statefile": "locks, and folders that are safe",
	}},
	{"internal/clientopt", nil},
	{"internal/consume", reasons{
		"internal/api":       "JSON of a look-up",
		"internal/clientopt": "options of the client",
		"internal/discover":  "all nsqlookupds are asked at once",
		"internal/protocol":  "the name of the dead-letter topic is checked",
		"internal/utility":   "flags that may be repeated",
	}},
	{"internal/destination", nil},
	{"internal/discover", reasons{
		"internal/api":      "JSON of the answers",
		"internal/httpx":    "daemons are asked over HTTP",
		"internal/lookup":   "the look-up of a topic",
		"internal/protocol": "names that a nsqlookupd answers are checked",
	}},
	{"internal/latency", nil},
	{"internal/pace", nil},
	{"internal/progress", nil},
	{"internal/publish", nil},
	{"internal/touch", nil},
	{"internal/utility", nil},

	{"internal/cluster", reasons{
		"internal/api":      "JSON of the answers, and of what they are merged to",
		"internal/discover": "all are asked at once; addresses of producers",
		"internal/httpx":    "daemons are asked over HTTP",
		"internal/protocol": "names that a daemon answers are checked",
	}},

	// Tests of whole programs, and what they share.
	{"internal/metrics/metricstest", reasons{
		"internal/metrics": "the table of the code is compared with the document",
	}},
	{"internal/e2e", nil},
	{"internal/testnode", reasons{
		"internal/api":      "statistics of a nsqd",
		"internal/testutil": "waiting for a condition",
		"nsqd":              "one of the daemons",
		"nsqlookupd":        "one of the daemons",
	}},
	{"internal/testutil", nil},
	{"internal/utility/utilitytest", reasons{
		"internal/testutil": "outputs that are read meanwhile, and patience",
		"internal/utility":  "the program to run",
	}},

	// nsqd: the broker knows none of its fronts, and no front knows another one.
	{"nsqd/announce", reasons{
		"internal/httpx":    "the channels of a new topic are asked for over HTTP",
		"internal/lookup":   "the conversation with a nsqlookupd",
		"internal/protocol": "names that a nsqlookupd answers are checked",
	}},
	{"nsqd/broker", reasons{
		"internal/diskq":             "what memory has no room for",
		"internal/metrics/histogram": "latency from publish to delivery",
		"internal/protocol":          "a message is a frame from publish on; names are checked",
		"internal/quantile":          "latency from publish to FIN",
		"internal/statefile":         "nsqd.dat and the delays are replaced as a whole",
	}},
	{"nsqd/httpd", reasons{
		"internal/api":               "JSON of the answers",
		"internal/diskq":             "metrics of the disk queues",
		"internal/httpx":             "routes, parameters, answers",
		"internal/metrics":           "what Prometheus is shown",
		"internal/metrics/histogram": "latency of deliveries",
		"internal/protocol":          "names and the MPUB body",
		"internal/quantile":          "latencies in the statistics",
		"nsqd/broker":                "a request becomes a call of the broker",
	}},
	{"nsqd/session", reasons{
		"internal/api":       "statistics of a client",
		"internal/auth":      "AUTH, and what it permits",
		"internal/netserver": "the name of a peer, and the polite way to hang up",
		"internal/protocol":  "commands, frames, error codes",
		"nsqd/broker":        "a command becomes a call of the broker",
	}},
	{"nsqd", reasons{
		"internal/api":               "answer of /info",
		"internal/auth":              "wired to sessions",
		"internal/diskq":             "settings of the store",
		"internal/httpx":             "HTTP server and client",
		"internal/lookup":            "what is announced",
		"internal/metrics":           "connections are counted",
		"internal/metrics/histogram": "wired to broker and HTTP",
		"internal/netserver":         "listeners and TCP server",
		"internal/options":           "the table of options",
		"internal/protocol":          "the magic, and sizes of a record",
		"internal/quantile":          "settings of the percentiles",
		"internal/run":               "parts that start and stop in order",
		"internal/statefile":         "the lock of the data folder",
		"internal/statsd":            "the push of the statistics",
		"internal/tlsconf":           "certificates for TCP and HTTPS",
		"nsqd/announce":              "wired here",
		"nsqd/broker":                "wired here",
		"nsqd/httpd":                 "wired here",
		"nsqd/session":               "wired here",
	}},

	// nsqlookupd
	{"nsqlookupd/registry", reasons{
		"internal/protocol": "which names are ephemeral",
	}},
	{"nsqlookupd", reasons{
		"internal/api":        "JSON of the answers",
		"internal/httpx":      "HTTP front",
		"internal/lookup":     "the conversation with a nsqd",
		"internal/metrics":    "what Prometheus is shown",
		"internal/netserver":  "TCP front",
		"internal/options":    "the table of options",
		"internal/protocol":   "names are checked before they are registered",
		"nsqlookupd/registry": "what is registered",
	}},

	// nsqadmin: what watches knows nothing of what acts.
	{"nsqadmin/action", reasons{
		"internal/api":      "results and notifications",
		"internal/cluster":  "who is concerned, and the requests to them",
		"internal/protocol": "names are checked",
	}},
	{"nsqadmin/graphite", reasons{
		"internal/httpx": "Graphite is asked over HTTP",
	}},
	{"nsqadmin/monitor", reasons{
		"internal/api":     "what a snapshot consists of",
		"internal/cluster": "asks the daemons, and adds up",
	}},
	{"nsqadmin/web", reasons{
		"internal/api":      "what a snapshot consists of",
		"internal/cluster":  "errors that an action ends with",
		"internal/protocol": "names in forms are checked",
		"nsqadmin/action":   "a form becomes an action",
		"nsqadmin/graphite": "expressions of graphs",
		"nsqadmin/monitor":  "what is shown",
	}},
	{"nsqadmin", reasons{
		"internal/api":       "JSON of the answers",
		"internal/cluster":   "asks the daemons for what a request wants to know",
		"internal/httpx":     "HTTP server and client, routes",
		"internal/netserver": "listener",
		"internal/options":   "the table of options",
		"internal/run":       "parts that start and stop in order",
		"nsqadmin/action":    "wired here; a request becomes an action",
		"nsqadmin/graphite":  "wired here",
		"nsqadmin/monitor":   "wired here",
		"nsqadmin/web":       "wired here",
	}},

	// Programs: a main is options, New and run.Main.
	{"apps/nsqd", reasons{"internal/run": "main", "nsqd": "the daemon"}},
	{"apps/nsqadmin", reasons{"internal/run": "main", "nsqadmin": "the daemon"}},
	{"apps/nsqlookupd", reasons{"internal/run": "main", "nsqlookupd": "the daemon"}},
	{"apps/nsq_cluster", reasons{
		"internal/options": "its own flags",
		"internal/run":     "main, and daemons that stop in order",
		"nsqadmin":         "one of the daemons",
		"nsqd":             "one of the daemons",
		"nsqlookupd":       "one of the daemons",
	}},

	// Utilities: a main is a table of flags and utility.Main, beside the few files that do the work.
	{"apps/nsq_stat", reasons{
		"internal/api":      "statistics of a nsqd",
		"internal/discover": "which nsqd have the topic; all are asked at once",
		"internal/httpx":    "daemons are asked over HTTP",
		"internal/utility":  "main",
	}},
	{"apps/nsq_tail", reasons{
		"internal/consume":  "flags, consumers and their stop",
		"internal/protocol": "which names are ephemeral",
		"internal/utility":  "main",
	}},
	{"apps/nsq_to_http", reasons{
		"internal/consume":     "flags, the consumer and its stop, dead letters",
		"internal/destination": "which address gets the next message",
		"internal/latency":     "--status-every",
		"internal/pace":        "--sample",
		"internal/touch":       "a request may take longer than the timeout of its message",
		"internal/utility":     "main",
		"internal/version":     "the user agent",
	}},
	{"apps/nsq_to_nsq", reasons{
		"internal/clientopt":   "options of the destination's side",
		"internal/consume":     "flags, consumers and their stop, dead letters",
		"internal/destination": "which nsqd gets the next message",
		"internal/latency":     "--status-every",
		"internal/protocol":    "names are checked",
		"internal/publish":     "batches for one nsqd",
		"internal/touch":       "a destination may take longer than the timeout of a message",
		"internal/utility":     "main",
	}},
	{"apps/nsq_to_file", reasons{
		"internal/archive":  "files, and how they rotate",
		"internal/consume":  "flags, consumers and their stop",
		"internal/discover": "topics of which only a pattern is known",
		"internal/httpx":    "nsqlookupds are asked over HTTP",
		"internal/protocol": "the channel is checked at once",
		"internal/touch":    "messages wait for the disk",
		"internal/utility":  "main",
	}},
	{"apps/nsq_pubsub", reasons{
		"internal/api":         "the nsqds that a nsqlookupd knows",
		"internal/clientopt":   "options of the client",
		"internal/consume":     "flags, the consumer of a stream and its stop",
		"internal/destination": "which nsqd gets the next message",
		"internal/discover":    "all nsqlookupds are asked at once",
		"internal/httpx":       "routes, parameters, answers, HTTP server",
		"internal/netserver":   "listener",
		"internal/protocol":    "names are checked",
		"internal/publish":     "which errors are those of a message",
		"internal/tlsconf":     "HTTPS",
		"internal/touch":       "a reader may take longer than the timeout of its messages",
		"internal/utility":     "main",
	}},
	{"apps/to_nsq", reasons{
		"internal/clientopt":   "options of the client",
		"internal/destination": "which nsqd gets the next batch",
		"internal/pace":        "--rate",
		"internal/progress":    "what a terminal shows",
		"internal/protocol":    "the topic is checked before it is sent",
		"internal/publish":     "batches for one nsqd",
		"internal/utility":     "main",
	}},
}

// outside says which package alone may import a module of others: what we rely on has one place
// where it can be replaced. Tests may use any.
var outside = map[string]reasons{
	"github.com/BurntSushi/toml":          {"internal/options": "the settings file"},
	"github.com/judwhite/go-svc":          {"internal/run": "Windows services"},
	"github.com/julienschmidt/httprouter": {"internal/httpx": "routes", "nsqd/httpd": "type of the path parameters", "nsqlookupd": "type of the path parameters", "nsqadmin": "type of the path parameters", "apps/nsq_pubsub": "type of the path parameters"},
	"github.com/klauspost/compress":       {"nsqd/session": "deflate and snappy", "internal/archive": "gzip and zstd"},
	"github.com/prometheus/client_golang": {
		"internal/metrics": "registry, collectors and the answer to a scrape", "internal/metrics/metricstest": "its conventions",
	},
	"github.com/prometheus/client_model": {"internal/metrics/metricstest": "what the parser returns"},
	"github.com/prometheus/common":       {"internal/metrics/metricstest": "its parser"},
	"github.com/lestrrat-go/strftime":    {"internal/archive": "times in file names"},
	"github.com/nsqio/go-diskqueue":      {"internal/diskq": "the files of NSQ 1.3"},
	"github.com/nsqio/go-nsq": {
		"internal/clientopt": "its options", "internal/consume": "its consumer",
		"internal/publish": "its producer", "internal/touch": "messages",
		"apps/nsq_tail": "messages", "apps/nsq_pubsub": "messages, its producer",
		"apps/nsq_to_file": "messages", "apps/nsq_to_http": "messages", "apps/nsq_to_nsq": "messages",
	},
}
