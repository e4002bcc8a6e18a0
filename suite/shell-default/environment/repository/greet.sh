#!/bin/bash
# Greets somebody.
echo "Hello, $1!"
