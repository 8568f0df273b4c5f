# SPDX-License-Identifier: MIT
"""What subscribers are told, taken down as a chain: each event must follow from the one in front."""
import threading

import rawjson
import tap
from clients import Closed, NoAnswer


class Heads:
    """A subscriber of newHeads: the chain as it was told."""

    def __init__(self):
        self.chain = []              # (number, hash), from the first one told
        self.seen = {}               # hash: header, of all
        self.told = 0

    def take(self, head):
        number, block = int(head["number"], 16), head["hash"]
        self.told += 1
        while self.chain and self.chain[-1][0] >= number:
            dropped = self.chain.pop()
            tap.check(dropped[1] != block, "block %d was told twice" % number)
        if self.chain:
            tap.eq(number, self.chain[-1][0] + 1, "the number after %d" % self.chain[-1][0])
            tap.eq(head["parentHash"], self.chain[-1][1], "the parent of block %d" % number)
        self.chain.append((number, block))
        self.seen[block] = head


class Logs:
    """A subscriber of logs."""

    def __init__(self):
        self.logs = []               # (number, index, hash), in the order told
        self.told = 0
        self.removed = 0

    def take(self, log):
        self.told += 1
        key = (int(log["blockNumber"], 16), int(log["logIndex"], 16), log["blockHash"])
        if log.get("removed"):
            self.removed += 1
            tap.check(self.logs, "a log that was never told is removed")
            tap.eq(key, self.logs.pop(), "the log that is removed")
            return
        if self.logs:
            tap.check(key[:2] > self.logs[-1][:2], "a log of %r after one of %r" %
                      (key[:2], self.logs[-1][:2]))
        self.logs.append(key)


class Reader(threading.Thread):
    """Takes the events of one session to its subscriptions: `subs` by their ids."""

    def __init__(self, client, subs=None):
        super().__init__(daemon=True)
        self.client = client
        self.subs = subs or {}
        self.failed = None
        self.stop = False

    def subscribe(self, sub, *params):
        self.subs[rawjson.parse(self.client.call("eth_subscribe", list(params)).ok())] = sub
        return sub

    def run(self):
        try:
            while not self.stop:
                try:
                    event = self.client.event(0.2)
                except NoAnswer:
                    continue
                told = rawjson.parse(event)["params"]
                self.subs[told["subscription"]].take(told["result"])
        except (tap.Failed, Closed, OSError) as error:
            self.failed = error

    def end(self):
        """Raises what has gone wrong."""
        self.stop = True
        self.join()
        if self.failed:
            raise self.failed
