#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""web3.py with an API key that may make few calls at once. Arguments: URL KEY COUNT; makes COUNT
calls and prints what came of them as one JSON object. The key is a header, or stands in the URL where
KEY is empty."""
import json
import sys

from web3 import HTTPProvider

url, key, count = sys.argv[1:]
headers = {"Content-Type": "application/json"}
if key:
    headers["Authorization"] = "Bearer " + key
provider = HTTPProvider(url, request_kwargs={"headers": headers})
good, errors = 0, []
for i in range(int(count)):
    try:
        provider.make_request("net_version", [])
        good += 1
    except Exception as error:  # pylint: disable=broad-except
        errors.append("%s: %s" % (type(error).__name__, str(error)[:300]))
print(json.dumps({"good": good, "errors": errors}))
