"""The real parts that tests run against: engine, GitHub server, git over HTTP, model endpoint."""
