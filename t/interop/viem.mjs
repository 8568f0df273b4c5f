// SPDX-License-Identifier: MIT
// viem over HTTP (single and with its batching), WebSocket and IPC.
import { BURST, facts, ipcPath, main, reporter, until, use } from './common.mjs';

const viem = await use('viem');
const { privateKeyToAccount } = await use('viem/accounts');
const { ipc } = await use('viem/node');
const { foundry } = await use('viem/chains');

function transport(kind, url) {
  if (kind === 'http') return viem.http(url, { timeout: 30000, retryCount: 0 });
  if (kind === 'http batch') return viem.http(url, { batch: { batchSize: 100 }, retryCount: 0 });
  if (kind === 'ws') return viem.webSocket(url, { timeout: 30000, retryCount: 0 });
  return ipc(ipcPath(url), { timeout: 30000, retryCount: 0 });
}

async function one(kind, url) {
  const step = reporter(`viem ${kind}`);
  const options = { chain: foundry, transport: transport(kind, url), pollingInterval: 50, cacheTime: 0 };
  const client = viem.createPublicClient(options);
  const account = privateKeyToAccount(facts.keys[0]);
  const wallet = viem.createWalletClient({ ...options, account });
  const abi = facts.abi;
  const address = facts.contract;
  const read = (functionName, args, more) => client.readContract({ abi, address, functionName, args, ...more });

  await step('chain id', () => client.getChainId());
  await step('block number', () => client.getBlockNumber());
  await step('full block by number', () =>
    client.getBlock({ blockNumber: BigInt(facts.big_block), includeTransactions: true }));
  await step('block by hash', () => client.getBlock({ blockHash: facts.big_hash }));
  await step('block by tag', () => client.getBlock({ blockTag: 'earliest' }));
  await step('unknown block', () => client.getBlock({ blockNumber: 10n ** 9n }));
  await step('transaction', () => client.getTransaction({ hash: facts.paid }));
  await step('unknown transaction', () => client.getTransaction({ hash: facts.unknown_hash }));
  await step('receipt', () => client.getTransactionReceipt({ hash: facts.noted[0] }));
  await step('logs', () => client.getLogs({ address, fromBlock: 0n, toBlock: BigInt(facts.big_block) }));
  await step('decoded events', () => client.getContractEvents({ abi, address, eventName: 'Noted',
    fromBlock: 0n, toBlock: BigInt(facts.big_block) }));
  await step('call', () => read('sum', [40n, 2n]));
  await step('call with text', () => read('echo', ['gr\u00fc\u00df \u20ac \\ "x"']));
  await step('call at a block', () => read('values', [3n], { blockNumber: BigInt(facts.noted_blocks[0]) }));
  await step('custom error', () => read('refuse', [7n]));
  await step('reverts with reason', () => read('fail', []));
  await step('panics', () => read('panic', [0n]));
  await step('estimate of a revert', () => client.estimateContractGas({ abi, address, account,
    functionName: 'fail' }));
  await step('balance', () => client.getBalance({ address: account.address, blockNumber: BigInt(facts.big_block) }));
  await step('code', () => client.getCode({ address }));
  await step('storage', () => client.getStorageAt({ address, slot: '0x0' }));
  await step('proof', () => client.getProof({ address, storageKeys: [facts.unknown_hash] }));
  await step('fee history', () => client.getFeeHistory({ blockCount: 2, rewardPercentiles: [10, 90],
    blockNumber: BigInt(facts.big_block) }));
  await step('unknown method', () => client.request({ method: 'eth_noSuchMethod', params: [] }));
  await step('many at once', () => Promise.all([...Array(BURST).keys()].map((i) => i % 5 === 4
    ? client.getBlock({ blockNumber: BigInt(i % 7), includeTransactions: true })
    : client.getBalance({ address: account.address, blockNumber: BigInt(i % 7) }))));
  await step('many at once, one fails', async () =>
    (await Promise.allSettled([read('sum', [1n, 2n]), read('fail', []), read('sum', [3n, 4n])]))
      .map((r) => r.value ?? r.reason.name));

  const fees = { gas: 300000n, maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 9n };
  const nonce = await client.getTransactionCount({ address: account.address });
  const note = (key, text, at) => wallet.writeContract({ abi, address, functionName: 'note',
    args: [BigInt(key), 7n, text], nonce: at, ...fees });
  await step('send raw transaction and receipt', async () => {
    const hash = await note(100 + nonce, `from viem ${kind}`, nonce);
    return until(() => client.getTransactionReceipt({ hash }).catch(() => null), 'receipt');
  });
  await step('nonce too low', () => note(5, 'late', 0));
  await step('nonce after', () => client.getTransactionCount({ address: account.address }));

  // HTTP polls for them (by filters), the others subscribe.
  await step('new block and event', async () => {
    const seen = {};
    const stop = [];
    const before = await client.getBlockNumber();
    const both = new Promise((resolve, reject) => {
      const got = (key, value) => {
        seen[key] ??= value;
        if (seen.block && seen.event) resolve();
      };
      stop.push(client.watchBlockNumber({ onError: reject, onBlockNumber: (number) => {
        if (number > before) got('block', kind.startsWith('http') ? true : number);
      } }));
      stop.push(client.watchContractEvent({ abi, address, eventName: 'Noted', onError: reject,
        onLogs: (logs) => logs.forEach((log) => log.args.text?.startsWith('awaited') && got('event', log)) }));
    });
    // Subscriptions and filters are set up in the background: let them come up first.
    for (let i = 0; i < 20; i++) await client.getBlockNumber();
    await note(900 + nonce, `awaited ${kind}`, nonce + 1);
    await both;
    stop.forEach((end) => end());
    return seen;
  });
  if (kind === 'ws' || kind === 'ipc') (await client.transport.getRpcClient()).close();
}

async function run(kind, url) {
  await one(kind, url);
  if (kind === 'http') await one('http batch', url);
}

await main(run);
