#!/bin/sh
# SPDX-License-Identifier: MIT
# The handler of quickstart.json: says what it was given, and notes it in
# var/handled.log. A repeat of an event does not come here.
set -eu

body=$(cat)
folder=$(dirname "$0")/../var
mkdir -p "$folder"
printf '%s attempt=%s key=%s bytes=%s\n' \
    "$ONCED_EVENT_ID" "$ONCED_ATTEMPT" "$IDEMPOTENCY_KEY" "${#body}" \
    >>"$folder/handled.log"

printf 'handled %s: %s\n' "$ONCED_EVENT_ID" "$body"
