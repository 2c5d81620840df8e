#!/bin/sh
set -eu
make build
exec bin/scenarios run dual-enterprise-200 --seed 20261130
