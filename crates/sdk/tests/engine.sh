#!/bin/sh
# An engine process that does what a test tells it to.
# `opening` takes the first line, which is the SDK's `initialize`, and leaves its id in $id.
opening() {
    read -r line
    id=$(printf '%s' "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
}
accept() {
    opening
    printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{"pid":7}}}\n' "$id"
}
echo $$ > pid
eval "$PLAY"
