#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Full blocks by web3.py, decoded. Reads jobs from standard input, one a line:

    http|ws|ipc URL-OR-PATH FIRST COUNT [WORKERS EACH]

Without WORKERS one provider asks for each block when it has the one before. With it, so many
processes with a provider each take EACH blocks at a time from a common queue and ask for them
with one batch. HTTP is by HTTPProvider, the others by AsyncWeb3 with WebSocketProvider and
AsyncIPCProvider. Prints a JSON object for each job: the seconds, what a call took, the processor
time, and what tells that the blocks are right.

Run it by the interpreter that has web3.py (t/interop/install)."""
import asyncio
import json
import multiprocessing
import resource
import sys
import time
import warnings

from web3 import AsyncIPCProvider, AsyncWeb3, HTTPProvider, Web3, WebSocketProvider

warnings.simplefilter("ignore")
LARGE = 256 << 20                # no reply is larger
FORK = multiprocessing.get_context("fork")


def seen(asked, block):
    return (asked, block["number"], block["hash"].hex(), block["parentHash"].hex(),
            len(block["transactions"]))


class Timed:
    """What a worker has got, and what it cost."""

    def __init__(self):
        self.seen, self.calls, self.processor = [], [], 0.0
        self.began = self.ended = 0.0

    def __enter__(self):
        self.processor = processor()
        self.began = time.perf_counter()
        return self

    def __exit__(self, *_):
        self.ended = time.perf_counter()
        self.processor = processor() - self.processor

    def call(self, began, blocks):
        self.calls.append(time.perf_counter() - began)
        self.seen += blocks


def processor():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def one_by_one(url, chunks, ready):
    w3 = Web3(HTTPProvider(url))
    w3.eth.chain_id                  # pylint: disable=pointless-statement
    ready()
    with Timed() as timed:
        for numbers in chunks:
            began = time.perf_counter()
            if len(numbers) == 1:
                blocks = [w3.eth.get_block(numbers[0], full_transactions=True)]
            else:
                with w3.batch_requests() as batch:
                    for n in numbers:
                        batch.add(w3.eth.get_block(n, full_transactions=True))
                    blocks = batch.execute()
            timed.call(began, map(seen, numbers, blocks))
    return timed


async def async_provider(provider, chunks, ready):
    async with AsyncWeb3(provider) as w3:
        await w3.eth.chain_id
        ready()
        with Timed() as timed:
            for numbers in chunks:
                began = time.perf_counter()
                if len(numbers) == 1:
                    blocks = [await w3.eth.get_block(numbers[0], full_transactions=True)]
                else:
                    async with w3.batch_requests() as batch:
                        for n in numbers:
                            batch.add(w3.eth.get_block(n, full_transactions=True))
                        blocks = await batch.async_execute()
                timed.call(began, map(seen, numbers, blocks))
        return timed


def fetch(kind, where, chunks, ready):
    if kind == "http":
        return one_by_one(where, chunks, ready)
    if kind == "ws":
        provider = WebSocketProvider(where, websocket_kwargs={"max_size": None})
    else:
        provider = AsyncIPCProvider(where, read_buffer_limit=LARGE)
    return asyncio.run(async_provider(provider, chunks, ready))


def from_queue(counter, first, count, each):
    """Chunks of a queue that is shared with other processes."""
    while True:
        with counter.get_lock():
            at = counter.value
            counter.value += each
        if at >= count:
            return
        yield list(range(first + at, first + min(at + each, count)))


def worker(job, counter, gate, pipe):
    kind, where, first, count, _, each = job
    try:
        timed = fetch(kind, where, from_queue(counter, first, count, each), gate.wait)
    except BaseException as error:   # pylint: disable=broad-except
        gate.abort()
        pipe.send("%s: %s" % (type(error).__name__, error))
        raise
    pipe.send(timed)


def in_parallel(job):
    gate, counter = FORK.Barrier(job[4]), FORK.Value("q", 0)
    crowd = []
    for _ in range(job[4]):
        mine, theirs = FORK.Pipe(False)
        process = FORK.Process(target=worker, args=(job, counter, gate, theirs))
        process.start()
        theirs.close()
        crowd.append((process, mine))
    shares = [pipe.recv() for _, pipe in crowd]
    for process, _ in crowd:
        process.join()
    for share in shares:
        if isinstance(share, str):
            raise SystemExit("a worker failed: " + share)
    return shares


def run(job):
    kind, where, first, count, workers, _ = job
    if workers:
        return in_parallel(job)
    return [fetch(kind, where, ([n] for n in range(first, first + count)), lambda: None)]


def report(shares):
    """One line from what all workers have."""
    blocks = sorted(x for share in shares for x in share.seen)
    calls = sorted(x for share in shares for x in share.calls)
    return {"seconds": max(x.ended for x in shares) - min(x.began for x in shares),
            "cpu": sum(x.processor for x in shares), "p50": calls[len(calls) // 2],
            "p99": calls[len(calls) * 99 // 100], "count": len(blocks),
            "numbers": all(x[0] == x[1] for x in blocks),
            "chain": all(b[3] == a[2] for a, b in zip(blocks, blocks[1:])),
            "transactions": sum(x[4] for x in blocks)}


def main():
    for line in sys.stdin:
        words = line.split()
        if len(words) not in (4, 6):
            raise SystemExit(__doc__)
        kind, where, *numbers = words
        job = (kind, where, *map(int, numbers + ["0", "1"] * (len(words) == 4)))
        print(json.dumps(report(run(job))), flush=True)


if __name__ == "__main__":
    main()
