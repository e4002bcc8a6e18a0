"""A GitHub in the test's own process: stateful, over a real socket, with real git behind it.

state        the nouns (accounts, tokens, repositories, issues, ...) and their world
bare         reading and writing the bare repositories with git
access       tokens, permissions and who may do what
exchange     requests, answers, errors, pages, faults
documents_*  the JSON documents
routes_*     the REST endpoints, by path template of GitHub's description
graphql*     the few GraphQL fields
webhooks     full event payloads
app          all of it as one WSGI application
description  validation against GitHub's own description
"""
