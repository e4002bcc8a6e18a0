"""The real parts that tests run against: engine, forge, git over HTTP, model endpoint."""
