// SPDX-License-Identifier: MIT
// ethers v6 over HTTP (which batches by itself), WebSocket and IPC.
import { BURST, facts, ipcPath, main, reporter, until, use } from './common.mjs';

const ethers = await use('ethers');
const { Contract, IpcSocketProvider, JsonRpcProvider, WebSocketProvider, Wallet } = ethers;

// What is left in the background when a provider is destroyed.
process.on('unhandledRejection', (error) => {
  if (!/provider destroyed/.test(error?.message)) throw error;
});

// Without ethers' own cache of a quarter second: what it says depends on time.
function open(kind, url) {
  if (kind === 'http') {
    return new JsonRpcProvider(url, undefined, { polling: true, pollingInterval: 50, cacheTimeout: -1 });
  }
  if (kind === 'ws') return new WebSocketProvider(url, undefined, { cacheTimeout: -1 });
  return new IpcSocketProvider(ipcPath(url), undefined, { cacheTimeout: -1 });
}

function logEvent(event) {
  return { args: event.args.toArray(), block: event.blockNumber, index: event.index,
    tx: event.transactionHash, data: event.data, topics: event.topics, removed: event.removed };
}

async function run(kind, url) {
  const step = reporter(`ethers ${kind}`);
  const provider = open(kind, url);
  const who = facts.accounts[0];
  const contract = new Contract(facts.contract, facts.abi, provider);

  await step('network', async () => (await provider.getNetwork()).chainId);
  await step('block number', () => provider.getBlockNumber());
  await step('full block by number', async () => {
    const block = await provider.getBlock(facts.big_block, true);
    return { block: block.toJSON(), transactions: block.prefetchedTransactions.map((t) => t.toJSON()) };
  });
  await step('block by hash', async () => (await provider.getBlock(facts.big_hash)).toJSON());
  await step('unknown block', () => provider.getBlock(1e9));
  await step('unknown block hash', () => provider.getBlock(facts.unknown_hash));
  await step('transaction', async () => (await provider.getTransaction(facts.paid)).toJSON());
  await step('unknown transaction', () => provider.getTransaction(facts.unknown_hash));
  await step('receipt', async () => (await provider.getTransactionReceipt(facts.noted[0])).toJSON());
  await step('logs', () => provider.getLogs({ address: facts.contract, fromBlock: 0, toBlock: facts.big_block }));
  await step('decoded events', async () =>
    (await contract.queryFilter('Noted', 0, facts.big_block)).map(logEvent));
  await step('call', () => contract.sum(40, 2));
  await step('call with text', () => contract.echo('gr\u00fc\u00df \u20ac \\ "x"'));
  await step('call at a block', () => contract.values(3, { blockTag: facts.noted_blocks[0] }));
  await step('custom error', () => contract.refuse(7));
  await step('reverts with reason', () => contract.fail());
  await step('panics', () => contract.panic(0));
  await step('estimate of a revert', () => provider.estimateGas({ to: facts.contract, from: who,
    data: contract.interface.encodeFunctionData('fail') }));
  await step('balance', () => provider.getBalance(who, facts.big_block));
  await step('code', () => provider.getCode(facts.contract));
  await step('storage', () => provider.getStorage(facts.contract, 0));
  await step('raw call', () => provider.send('eth_getBlockReceipts', ['0x1']));
  await step('unknown method', () => provider.send('eth_noSuchMethod', []));
  await step('many at once', () => Promise.all([...Array(BURST).keys()].map((i) =>
    i % 5 === 4 ? provider.getBlock(i % 7, true).then((b) => b.toJSON()) : provider.getBalance(who, i % 7))));
  await step('many at once, one fails', async () =>
    (await Promise.allSettled([contract.sum(1, 2), contract.fail(), contract.sum(3, 4),
      provider.getBlock(2).then((b) => b.hash)])).map((r) => r.value ?? r.reason.reason));

  const wallet = new Wallet(facts.keys[0], provider);
  const writer = contract.connect(wallet);
  const fees = { gasLimit: 300000, maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 9n };
  const nonce = await provider.getTransactionCount(who);
  await step('send raw transaction and receipt', async () => {
    const sent = await writer.note(100 + nonce, 7, `from ethers ${kind}`, { nonce, ...fees });
    return (await until(() => provider.getTransactionReceipt(sent.hash), 'receipt')).toJSON();
  });
  await step('nonce too low', async () => (await writer.note(5, 7, 'late', { nonce: 0, ...fees })).hash);
  await step('nonce after', () => provider.getTransactionCount(who));

  // HTTP polls for them, so which block it sees first depends on time; the others subscribe.
  await step('new block and event', async () => {
    const seen = {};
    const before = await provider.getBlockNumber();
    const both = new Promise((resolve) => {
      const got = (key, value) => {
        seen[key] ??= value;
        if (seen.block && seen.event) resolve();
      };
      provider.on('block', (number) => {
        if (kind === 'http') got('block', number >= before);
        else if (number > before) got('block', number);
      });
      contract.on('Noted', (a, b, text, event) =>
        text.startsWith('awaited') && got('event', logEvent(event.log)));
    });
    // Subscriptions are set up in the background: let them come up first.
    for (let i = 0; i < 20; i++) await provider.send('eth_blockNumber', []);
    await writer.note(900 + nonce, 7, `awaited ${kind}`, { nonce: nonce + 1, ...fees });
    await both;
    await contract.removeAllListeners();
    await provider.removeAllListeners();
    // Unsubscribing goes on in the background as well.
    for (let i = 0; i < 20; i++) await provider.send('eth_blockNumber', []);
    return seen;
  });
  await provider.destroy();
}

await main(run);
