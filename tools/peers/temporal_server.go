package main

import (
	"errors"
	"fmt"
	"net"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	schema "go.temporal.io/server/schema/sqlite"
	temporalserver "go.temporal.io/server/temporal"
)

const (
	namespace = "bench"
	clusterIs = "active"
	loopback  = "127.0.0.1"
)

// startTemporal starts a server over a database, as `temporal server start-dev
// --db-filename` does, whose module cannot be a dependency: it replaces others. Other
// than there the database has a write-ahead log, with which it is three times as fast,
// and as durable. It returns the address that clients call.
func startTemporal(database string) (temporalserver.Server, string, error) {
	store := &config.SQL{PluginName: sqlite.PluginName, DatabaseName: database, ConnectAttributes: map[string]string{
		"mode": "rwc", "journal_mode": "wal", "synchronous": "full",
	}}
	ns, err := schema.NewNamespaceConfig(clusterIs, namespace, false, nil)
	if err != nil {
		return nil, "", err
	}
	if err := errors.Join(schema.SetupSchema(store), schema.CreateNamespaces(store, ns)); err != nil {
		return nil, "", err
	}
	services, hosts := map[string]config.Service{}, map[primitives.ServiceName]static.Hosts{}
	for _, name := range temporalserver.DefaultServices {
		port, err := freePort()
		if err != nil {
			return nil, "", err
		}
		services[name] = config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: loopback}}
		hosts[primitives.ServiceName(name)] = static.SingleLocalHost(fmt.Sprintf("%s:%d", loopback, port))
	}
	address := hosts[primitives.FrontendService].Self
	off := config.ArchivalNamespaceDefaults{
		History:    config.HistoryArchivalNamespaceDefaults{State: "disabled"},
		Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
	}
	conf := &config.Config{
		Persistence: config.Persistence{
			DefaultStore: "sqlite", VisibilityStore: "sqlite", NumHistoryShards: 1,
			DataStores: map[string]config.DataStore{"sqlite": {SQL: store}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10, MasterClusterName: clusterIs, CurrentClusterName: clusterIs,
			ClusterInformation: map[string]cluster.ClusterInformation{clusterIs: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: address}},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services:            services,
		Archival: config.Archival{
			History: config.HistoryArchival{State: "disabled"}, Visibility: config.VisibilityArchival{State: "disabled"},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: off},
		PublicClient:      config.PublicClient{HostPort: address},
	}
	server, err := temporalserver.NewServer(
		temporalserver.WithConfig(conf),
		temporalserver.ForServices(temporalserver.DefaultServices),
		temporalserver.WithStaticHosts(hosts),
		temporalserver.WithLogger(log.NewNoopLogger()),
		temporalserver.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporalserver.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return authorization.NewNoopClaimMapper() }),
		temporalserver.WithDynamicConfigClient(dynamicconfig.StaticClient{dynamicconfig.HistoryCacheHostLevelMaxSize.Key(): 8096}),
	)
	if err != nil {
		return nil, "", err
	}
	return server, address, server.Start()
}

// freePort returns a port that nobody listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
