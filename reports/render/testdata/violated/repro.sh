#!/bin/sh
set -eu
make build
exec bin/scenarios run ladder --seed 20261130
