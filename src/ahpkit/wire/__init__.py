"""JSON-RPC 2.0 for everything that speaks it here: AHP, ACP agents, canvas extensions. Start at `rpc.RpcConnection`."""
