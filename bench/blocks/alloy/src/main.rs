// SPDX-License-Identifier: MIT
//! Full blocks by Alloy, decoded. Arguments: http|ws|ipc URL-OR-PATH FIRST COUNT [WORKERS EACH].
//! Without WORKERS one provider asks for each block when it has the one before. With it, so many
//! tasks with a connection each take EACH blocks at a time from a common queue: one array over
//! HTTP, EACH calls at once over WebSocket and IPC, where Alloy sends no arrays. Prints one JSON
//! object: the seconds, what a call took, the processor time, and what tells that the blocks are
//! right.

use std::{
    error::Error,
    sync::atomic::{AtomicU64, Ordering},
    sync::Arc,
    time::{Duration, Instant},
};

use alloy_provider::{Provider, ProviderBuilder, RootProvider};
use alloy_rpc_client::{ClientBuilder, RpcClient};
use alloy_rpc_types_eth::Block;
use futures_util::future::try_join_all;
use serde_json::json;
use tokio::sync::Barrier;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// What is kept of a block, to be looked at when the clock has stopped.
struct Seen {
    asked: u64,
    number: u64,
    hash: [u8; 32],
    parent: [u8; 32],
    transactions: u64,
}

#[derive(Default)]
struct Share {
    seen: Vec<Seen>,
    calls: Vec<Duration>,
}

struct Job {
    http: bool,
    url: String,
    first: u64,
    count: u64,
    workers: u64,
    each: u64,
}

impl Job {
    fn from(arguments: &[String]) -> Outcome<Self> {
        if arguments.len() != 4 && arguments.len() != 6 {
            return Err("usage: http|ws|ipc URL-OR-PATH FIRST COUNT [WORKERS EACH]".into());
        }
        let number = |at: usize| arguments.get(at).map_or(Ok(0), |text| text.parse::<u64>());
        Ok(Self {
            http: arguments[0] == "http",
            url: arguments[1].clone(),
            first: number(2)?,
            count: number(3)?,
            workers: number(4)?,
            each: number(5)?.max(1),
        })
    }
}

fn provider(client: &RpcClient) -> RootProvider {
    ProviderBuilder::default().connect_client(client.clone())
}

async fn connect(url: &str) -> Outcome<RpcClient> {
    let client = ClientBuilder::default().connect(url).await?;
    provider(&client).get_chain_id().await?;
    Ok(client)
}

fn seen(asked: u64, block: Block) -> Seen {
    Seen {
        asked,
        number: block.header.number,
        hash: block.header.hash.0,
        parent: block.header.parent_hash.0,
        transactions: block.transactions.len() as u64,
    }
}

async fn one<P: Provider>(provider: &P, n: u64) -> Outcome<Seen> {
    let block = provider.get_block_by_number(n.into()).full().await?;
    Ok(seen(n, block.ok_or("a block is missing")?))
}

async fn array(client: &RpcClient, numbers: std::ops::Range<u64>) -> Outcome<Vec<Seen>> {
    let mut batch = client.new_batch();
    let mut waiters = Vec::new();
    for n in numbers {
        let params = (format!("0x{n:x}"), true);
        let waiter = batch.add_call::<_, Block>("eth_getBlockByNumber", &params)?;
        waiters.push((n, waiter));
    }
    batch.send().await?;
    let mut out = Vec::new();
    for (n, waiter) in waiters {
        out.push(seen(n, waiter.await?));
    }
    Ok(out)
}

async fn one_by_one(client: &RpcClient, job: &Job) -> Outcome<Share> {
    let provider = provider(client);
    let mut share = Share::default();
    for n in job.first..job.first + job.count {
        let began = Instant::now();
        share.seen.push(one(&provider, n).await?);
        share.calls.push(began.elapsed());
    }
    Ok(share)
}

/// A worker's part of the queue, from the moment that all are connected.
async fn chunks(job: Arc<Job>, next: Arc<AtomicU64>, gate: Arc<Barrier>) -> Outcome<Share> {
    let connected = connect(&job.url).await;
    gate.wait().await;
    let client = connected?;
    let provider = provider(&client);
    let mut share = Share::default();
    loop {
        let at = next.fetch_add(job.each, Ordering::Relaxed);
        if at >= job.count {
            return Ok(share);
        }
        let numbers = job.first + at..job.first + job.count.min(at + job.each);
        let began = Instant::now();
        let got = if job.http {
            array(&client, numbers).await?
        } else {
            try_join_all(numbers.map(|n| one(&provider, n))).await?
        };
        share.calls.push(began.elapsed());
        share.seen.extend(got);
    }
}

/// Seconds of this process in all its threads.
fn processor() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call fills the structure, which is valid when it is all zero too.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

async fn measure(job: Arc<Job>) -> Outcome<(Share, f64, f64)> {
    if job.workers == 0 {
        let client = connect(&job.url).await?;
        let (used, began) = (processor(), Instant::now());
        let share = one_by_one(&client, &job).await?;
        return Ok((share, began.elapsed().as_secs_f64(), processor() - used));
    }
    let next = Arc::new(AtomicU64::new(0));
    let gate = Arc::new(Barrier::new(job.workers as usize + 1));
    let tasks: Vec<_> = (0..job.workers)
        .map(|_| tokio::spawn(chunks(job.clone(), next.clone(), gate.clone())))
        .collect();
    gate.wait().await;
    let (used, began) = (processor(), Instant::now());
    let mut all = Share::default();
    for task in tasks {
        let share = task.await??;
        all.seen.extend(share.seen);
        all.calls.extend(share.calls);
    }
    Ok((all, began.elapsed().as_secs_f64(), processor() - used))
}

fn report(mut share: Share, seconds: f64, processor: f64) {
    share.seen.sort_by_key(|seen| seen.asked);
    share.calls.sort();
    let part = |p: f64| {
        let at = ((share.calls.len() as f64 * p) as usize).min(share.calls.len() - 1);
        share.calls[at].as_secs_f64()
    };
    let all = &share.seen;
    println!("{}", json!({
        "seconds": seconds, "cpu": processor, "p50": part(0.5), "p99": part(0.99),
        "count": all.len(),
        "numbers": all.iter().all(|seen| seen.number == seen.asked),
        "chain": all.windows(2).all(|pair| pair[1].parent == pair[0].hash),
        "transactions": all.iter().map(|seen| seen.transactions).sum::<u64>(),
    }));
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let job = Arc::new(Job::from(&arguments)?);
    let (share, seconds, processor) = measure(job).await?;
    if share.seen.is_empty() {
        return Err("no blocks".into());
    }
    report(share, seconds, processor);
    Ok(())
}
