// SPDX-License-Identifier: MIT
//! Alloy over HTTP, WebSocket and IPC: does the same things on each URL and prints what it got,
//! one JSON object a line. Arguments: FACTS.json KIND=URL... (see t/lib/interop.py). With `watch` in
//! front it subscribes, and prints events until it is ended.

use std::{borrow::Cow, error::Error, future::Future, time::Duration};

use alloy_primitives::{Address, Bytes, B256, U256};
use alloy_provider::{Provider, ProviderBuilder};
use alloy_rpc_client::{BatchRequest, ClientBuilder, RpcClient};
use alloy_rpc_types_eth::{BlockNumberOrTag, Filter, Header, TransactionRequest};
use serde::Serialize;
use serde_json::{json, Value};

const BURST: u64 = 200;
type Outcome<T> = Result<T, Box<dyn Error>>;
type Failed = alloy_json_rpc::RpcError<alloy_transport::TransportErrorKind>;

/// What clients ask about, made by the test.
struct Facts {
    all: Value,
    contract: Address,
    who: Address,
}

impl Facts {
    fn load(path: &str) -> Outcome<Self> {
        let all: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        let contract = all["contract"].as_str().ok_or("contract")?.parse()?;
        let who = all["accounts"][0].as_str().ok_or("accounts")?.parse()?;
        Ok(Self { all, contract, who })
    }

    fn hash(&self, key: &str) -> B256 {
        self.all[key].as_str().and_then(|s| s.parse().ok()).unwrap_or_default()
    }

    fn number(&self, key: &str) -> u64 {
        self.all[key].as_u64().unwrap_or_default()
    }

    /// A call of the contract by selector name and one or two words.
    fn call(&self, name: &str, words: &[u64]) -> TransactionRequest {
        let selector = self.all["selectors"][name].as_str().unwrap_or_default();
        let mut data = format!("0x{selector}");
        for word in words {
            data.push_str(&format!("{word:064x}"));
        }
        let data: Bytes = data.parse().unwrap_or_default();
        TransactionRequest::default().to(self.contract).input(data.into())
    }

    /// The transaction signed beforehand for a nonce.
    fn signed(&self, nonce: u64) -> Bytes {
        self.all["signed"][nonce.to_string()]
            .as_str()
            .and_then(|s| s.parse().ok())
            .unwrap_or_default()
    }
}

struct Report {
    on: String,
}

impl Report {
    fn line(&self, step: &str, value: Value) {
        println!("{}", json!({"on": self.on, "step": step, "value": value}));
    }

    /// Runs one step; gives its value, None after a failure.
    async fn step<T, F>(&self, name: &str, work: F) -> Option<T>
    where
        T: Serialize,
        F: Future<Output = Result<T, Failed>>,
    {
        match tokio::time::timeout(Duration::from_secs(60), work).await {
            Err(_) => self.line(name, json!({"raised": "no answer within 60 s"})),
            Ok(Err(error)) => self.line(name, failure(&error)),
            Ok(Ok(value)) => {
                let plain = serde_json::to_value(&value).unwrap_or_else(|e| json!(e.to_string()));
                self.line(name, plain);
                return Some(value);
            }
        }
        None
    }
}

/// An error as the client sees it: the payload of an error response, with its revert decoded.
fn failure(error: &Failed) -> Value {
    match error.as_error_resp() {
        Some(payload) => json!({
            "raised": "ErrorResp", "code": payload.code, "message": payload.message,
            "data": payload.data.as_ref().map(|d| d.get().to_owned()),
            "revert": payload.as_revert_data(), "retry": payload.is_retry_err(),
        }),
        None => json!({"raised": "other", "text": error.to_string()}),
    }
}

async fn connect(url: &str) -> Result<RpcClient, Failed> {
    let client = ClientBuilder::default().connect(url).await?;
    client.set_poll_interval(Duration::from_millis(50));
    Ok(client)
}

async fn reads<P: Provider>(report: &Report, provider: &P, facts: &Facts) {
    let big = facts.number("big_block");
    let big_hash = facts.hash("big_hash");
    let unknown = facts.hash("unknown_hash");
    let step = |name| StepName { report, name };

    step("chain id").run(provider.get_chain_id()).await;
    step("client version").run(provider.get_client_version()).await;
    step("block number").run(provider.get_block_number()).await;
    step("full block by number").run(provider.get_block_by_number(big.into()).full()).await;
    step("full block by hash").run(provider.get_block_by_hash(big_hash).full()).await;
    step("block by tag").run(provider.get_block_by_number(BlockNumberOrTag::Earliest)).await;
    step("unknown block").run(provider.get_block_by_number(1_000_000_000.into())).await;
    step("unknown block hash").run(provider.get_block_by_hash(unknown)).await;
    step("block receipts").run(provider.get_block_receipts(big.into())).await;
    step("transaction").run(provider.get_transaction_by_hash(facts.hash("paid"))).await;
    step("unknown transaction").run(provider.get_transaction_by_hash(unknown)).await;
    step("receipt").run(provider.get_transaction_receipt(facts.hash("deployed"))).await;
    let filter = Filter::new().address(facts.contract).from_block(0).to_block(big);
    step("logs").run(provider.get_logs(&filter)).await;
    step("logs, bad range").run(provider.get_logs(&Filter::new().from_block(5).to_block(2))).await;
    step("call").run(provider.call(facts.call("sum(uint256,uint256)", &[40, 2]))).await;
    step("call at a block")
        .run(provider.call(facts.call("values(uint256)", &[3])).block(2.into()))
        .await;
    step("custom error").run(provider.call(facts.call("refuse(uint256)", &[7]))).await;
    step("reverts with reason").run(provider.call(facts.call("fail()", &[]))).await;
    step("panics").run(provider.call(facts.call("panic(uint256)", &[0]))).await;
    step("estimate of a revert").run(provider.estimate_gas(facts.call("fail()", &[]))).await;
    step("balance").run(provider.get_balance(facts.who).number(big)).await;
    step("code").run(provider.get_code_at(facts.contract)).await;
    step("storage").run(provider.get_storage_at(facts.contract, U256::ZERO)).await;
    step("proof").run(provider.get_proof(facts.contract, vec![unknown])).await;
    step("fee history").run(provider.get_fee_history(2, big.into(), &[10.0, 90.0])).await;
    step("unknown method")
        .run(provider.raw_request::<_, Value>(Cow::Borrowed("eth_noSuchMethod"), ()))
        .await;
    step("many at once").run(burst(provider, facts)).await;
}

struct StepName<'a> {
    report: &'a Report,
    name: &'a str,
}

impl StepName<'_> {
    async fn run<T: Serialize, F>(self, work: F)
    where
        F: std::future::IntoFuture<Output = Result<T, Failed>>,
    {
        self.report.step(self.name, work.into_future()).await;
    }
}

/// Many requests in flight together, small and large mixed; the answers in order.
async fn burst<P: Provider>(provider: &P, facts: &Facts) -> Result<Vec<Value>, Failed> {
    let one = |i: u64| async move {
        if i % 5 == 4 {
            let block = provider.get_block_by_number((i % 7).into()).full().await?;
            Ok::<Value, Failed>(json!(block))
        } else {
            Ok(json!(provider.get_balance(facts.who).number(i % 7).await?))
        }
    };
    futures_util::future::try_join_all((0..BURST).map(one)).await
}

/// Sends the transaction signed for this nonce and waits for its receipt.
async fn send<P: Provider>(provider: &P, facts: &Facts, nonce: u64) -> Result<Value, Failed> {
    let sent = provider.send_raw_transaction(&facts.signed(nonce)).await?;
    let hash = *sent.tx_hash();
    loop {
        if let Some(receipt) = provider.get_transaction_receipt(hash).await? {
            return Ok(json!(receipt));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn batch(client: &RpcClient, facts: &Facts) -> Result<Value, Failed> {
    let mut batch: BatchRequest<'_> = client.new_batch();
    let number = format!("0x{:x}", facts.number("big_block"));
    let block = batch.add_call::<_, Value>("eth_getBlockByNumber", &(number, true))?;
    let balance = batch.add_call::<_, U256>("eth_getBalance", &(facts.who, "0x1"))?;
    let reverts = batch.add_call::<_, Value>("eth_call", &(facts.call("fail()", &[]), "latest"))?;
    // On WebSocket and IPC Alloy sends the calls one by one and fails the batch with the first
    // error; over HTTP each call has its own outcome.
    let sent = batch.send().await;
    Ok(json!({
        "sent": sent.is_ok(),
        "block": block.await.ok(),
        "balance": balance.await.ok(),
        "reverts": reverts.await.err().map(|e| failure(&e)),
    }))
}

async fn good_batch(client: &RpcClient, facts: &Facts) -> Result<Value, Failed> {
    let mut batch: BatchRequest<'_> = client.new_batch();
    let mut waiters = Vec::new();
    for i in 0..20u64 {
        let at = format!("0x{:x}", i % 7);
        waiters.push(batch.add_call::<_, Value>("eth_getBalance", &(facts.who, at))?);
    }
    batch.send().await?;
    let mut out = Vec::new();
    for waiter in waiters {
        out.push(waiter.await?);
    }
    Ok(json!(out))
}

/// newHeads and logs: one of each, made by a transaction.
async fn pushed<P: Provider>(provider: &P, facts: &Facts, nonce: u64) -> Result<Value, Failed> {
    let mut heads = provider.subscribe_blocks().await?;
    let mut logs = provider.subscribe_logs(&Filter::new().address(facts.contract)).await?;
    send(provider, facts, nonce).await?;
    let head = heads.recv().await.map_err(Failed::local_usage)?;
    let log = logs.recv().await.map_err(Failed::local_usage)?;
    Ok(json!({"head": head, "log": log}))
}

/// HTTP has no push: a log filter polled.
async fn polled<P: Provider>(provider: &P, facts: &Facts, nonce: u64) -> Result<Value, Failed> {
    let filter = Filter::new().address(facts.contract);
    let id = provider.new_filter(&filter).await?;
    send(provider, facts, nonce).await?;
    loop {
        let found: Vec<Value> = provider.get_filter_changes(id).await?;
        if !found.is_empty() {
            let gone = provider.uninstall_filter(id).await?;
            return Ok(json!({"changes": found, "uninstalled": gone}));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn run(kind: &str, url: &str, facts: &Facts) -> Outcome<()> {
    let report = Report { on: format!("alloy {kind}") };
    let client = connect(url).await?;
    let provider = ProviderBuilder::default().connect_client(client.clone());
    reads(&report, &provider, facts).await;

    let nonce = provider.get_transaction_count(facts.who).await?;
    report.step("send raw transaction and receipt", send(&provider, facts, nonce)).await;
    report.step("nonce too low", send(&provider, facts, 0)).await;
    report.step("batch", good_batch(&client, facts)).await;
    report.step("batch with a failure", batch(&client, facts)).await;
    if kind == "http" {
        report.step("filter", polled(&provider, facts, nonce + 1)).await;
    } else {
        report.step("subscriptions", pushed(&provider, facts, nonce + 1)).await;
    }
    Ok(())
}

/// Subscribes to heads and logs and prints what it gets, until it is ended.
async fn watch<P: Provider>(on: &str, provider: &P, contract: Address) -> Outcome<()> {
    let mut heads = provider.subscribe_blocks().await?;
    let mut logs = provider.subscribe_logs(&Filter::new().address(contract)).await?;
    println!("{}", json!({"on": on, "ready": true}));
    loop {
        tokio::select! {
            head = heads.recv() => {
                let head: Header = head?;
                println!("{}", json!({"on": on, "head": head.number, "hash": head.hash}));
            }
            log = logs.recv() => println!("{}", json!({"on": on, "log": log?.transaction_hash})),
        }
    }
}

async fn watch_one(target: &str, contract: Address) -> Outcome<()> {
    let (kind, url) = target.split_once('=').ok_or("KIND=URL")?;
    let client = connect(url.trim_start_matches("ipc://")).await?;
    let provider = ProviderBuilder::default().connect_client(client);
    watch(&format!("alloy {kind}"), &provider, contract).await
}

async fn watch_all(arguments: &[String]) -> Outcome<()> {
    let facts: Value = serde_json::from_str(&std::fs::read_to_string(&arguments[0])?)?;
    let contract: Address = facts["contract"].as_str().ok_or("contract")?.parse()?;
    let all = arguments[1..].iter().map(|target| watch_one(target, contract));
    futures_util::future::try_join_all(all).await?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "watch") {
        return watch_all(&arguments[1..]).await;
    }
    let facts = Facts::load(arguments.first().ok_or("no facts")?)?;
    for target in &arguments[1..] {
        let (kind, url) = target.split_once('=').ok_or("KIND=URL")?;
        if let Err(error) = run(kind, url.trim_start_matches("ipc://"), &facts).await {
            Report { on: kind.to_owned() }.line("ended early", json!(error.to_string()));
        }
    }
    Ok(())
}
