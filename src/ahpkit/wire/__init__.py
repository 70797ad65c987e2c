"""JSON-RPC 2.0 for all protocols that use it: AHP, ACP agents, canvas extensions. Start at `rpc.RpcConnection`."""
