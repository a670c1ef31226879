// Command devserver runs a Temporal server on this machine, for tests and for trying
// things out: all services in one process, on 127.0.0.1, with the namespace "default".
//
// It keeps everything in memory, in an SQLite file (-db) or in a PostgreSQL database
// (-postgres), and prints
//
//	READY 127.0.0.1:PORT
//
// on its standard output when clients can connect. SIGTERM and SIGINT end it; what was
// acknowledged before a kill -9 is there when it starts again on the same file or database.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	address   = "127.0.0.1"
	namespace = "default"
	// startLimit bounds the time from the start to READY.
	startLimit = time.Minute
	retention  = 24 * time.Hour
)

// quiet is the log of a client that retries by itself.
var quiet = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))

type settings struct {
	port     int
	file     string
	postgres string
	shards   int
	pollRPS  int
	logLevel string
}

func main() {
	var s settings
	flag.IntVar(&s.port, "port", 7233, "`port` of the frontend; 0 takes a free one")
	flag.StringVar(&s.file, "db", "", "SQLite `file`; without one everything is in memory")
	flag.StringVar(&s.postgres, "postgres", "", "`URL` of a PostgreSQL database to be used instead; a second one, with _visibility after its name, is made beside it")
	flag.IntVar(&s.shards, "shards", 4, "history shards of a new database; an old one keeps what it has")
	flag.IntVar(&s.pollRPS, "pollrps", 1000, "how often a second a shard looks for work; the server's own default, 20, makes each activity wait up to 50 ms")
	flag.StringVar(&s.logLevel, "log", "error", "`level` of the log on standard error: debug, info, warn or error")
	flag.Parse()
	if flag.NArg() > 0 || s.file != "" && s.postgres != "" {
		fmt.Fprintln(os.Stderr, "devserver takes no arguments, and -db or -postgres, not both")
		flag.Usage()
		os.Exit(2)
	}
	if err := s.serve(); err != nil {
		fmt.Fprintln(os.Stderr, "devserver:", err)
		os.Exit(1)
	}
}

// serve runs the server until a signal ends it.
func (s settings) serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, hosts, err := s.config()
	if err != nil {
		return err
	}
	server, err := temporal.NewServer(
		temporal.WithConfig(cfg),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(hosts),
		temporal.WithDynamicConfigClient(s.dynamic()),
		temporal.WithLogger(log.NewZapLogger(log.BuildZapLogger(log.Config{Level: s.logLevel}))),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return authorization.NewNoopClaimMapper() }),
	)
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	starting, cancel := context.WithTimeout(ctx, startLimit)
	err = prepareNamespace(starting, cfg.PublicClient.HostPort)
	cancel()
	if err == nil {
		fmt.Println("READY", cfg.PublicClient.HostPort)
		<-ctx.Done()
	} else if ctx.Err() != nil {
		err = nil
	}
	return errors.Join(err, server.Stop())
}

// config is that of a server with one host for each service.
func (s settings) config() (*config.Config, map[primitives.ServiceName]static.Hosts, error) {
	persistence, err := s.persistence()
	if err != nil {
		return nil, nil, err
	}
	services, hosts := map[string]config.Service{}, map[primitives.ServiceName]static.Hosts{}
	frontend := ""
	for _, name := range temporal.DefaultServices {
		port := 0
		if name == string(primitives.FrontendService) {
			port = s.port
		}
		if port == 0 {
			port, err = freePort()
		}
		if err != nil {
			return nil, nil, err
		}
		services[name] = config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: address}}
		host := net.JoinHostPort(address, strconv.Itoa(port))
		hosts[primitives.ServiceName(name)] = static.SingleLocalHost(host)
		if name == string(primitives.FrontendService) {
			frontend = host
		}
	}
	const name = "active"
	disabled := config.ArchivalNamespaceDefaults{
		History:    config.HistoryArchivalNamespaceDefaults{State: "disabled"},
		Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
	}
	return &config.Config{
		Global:      config.Global{Membership: config.Membership{MaxJoinDuration: startLimit / 2, BroadcastAddress: address}},
		Persistence: persistence,
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        name,
			CurrentClusterName:       name,
			ClusterInformation: map[string]cluster.ClusterInformation{
				name: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: frontend},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services:            services,
		Archival: config.Archival{
			History:    config.HistoryArchival{State: "disabled"},
			Visibility: config.VisibilityArchival{State: "disabled"},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: disabled},
		PublicClient:      config.PublicClient{HostPort: frontend},
	}, hosts, nil
}

// freePort returns a port that nobody listens on now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// dynamic are the settings in which one process that serves tests differs from a cluster.
func (s settings) dynamic() dynamicconfig.Client {
	return dynamicconfig.StaticClient{
		dynamicconfig.TransferProcessorMaxPollRPS.Key():   s.pollRPS,
		dynamicconfig.TimerProcessorMaxPollRPS.Key():      s.pollRPS,
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): s.pollRPS,
		// One partition: a poll meets its task at once, without being passed on.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,
		// A worker that stops gets no more tasks: else one that goes to its last poll waits for a timeout.
		dynamicconfig.EnableCancelWorkerPollsOnShutdown.Key(): true,
	}
}

// prepareNamespace waits until the frontend answers and the namespace can be used.
func prepareNamespace(ctx context.Context, host string) error {
	c, err := client.NewNamespaceClient(client.Options{HostPort: host, Logger: quiet})
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		err := c.Register(ctx, &workflowservice.RegisterNamespaceRequest{
			Namespace:                        namespace,
			WorkflowExecutionRetentionPeriod: durationpb.New(retention),
		})
		if exists := (*serviceerror.NamespaceAlreadyExists)(nil); err == nil || errors.As(err, &exists) {
			if _, err = c.Describe(ctx, namespace); err == nil {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the frontend did not get ready: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
