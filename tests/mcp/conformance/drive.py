"""What the conformance suite runs as the client: hands the scenario to the Worker at the first argument."""

import json
import os
import sys
import urllib.error
import urllib.request

worker, server = sys.argv[1], sys.argv[-1]
scenario = {
    "url": server,
    "scenario": os.environ["MCP_CONFORMANCE_SCENARIO"],
    "context": json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}"),
}
request = urllib.request.Request(f"{worker}/conformance", data=json.dumps(scenario).encode())
try:
    with urllib.request.urlopen(request, timeout=60) as answer:
        print(answer.read().decode())
except urllib.error.HTTPError as error:
    sys.exit(error.read().decode())
