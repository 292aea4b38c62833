#!/bin/sh
# Runs rustdoc with unstable options allowed; see src/public_api.rs.
RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
