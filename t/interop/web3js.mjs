// SPDX-License-Identifier: MIT
// web3.js 4 over HTTP, WebSocket and IPC.
import { BURST, facts, ipcPath, main, reporter, until, use } from './common.mjs';

const { Web3 } = await use('web3');
const { IpcProvider } = await use('web3-providers-ipc');

// On sockets web3.js also rejects a promise of its own, which nobody can catch, for an error
// inside a batch; what the caller sees is what is reported here.
process.on('unhandledRejection', () => {});

function provider(kind, url) {
  if (kind === 'http') return new Web3.providers.HttpProvider(url);
  if (kind === 'ws') return new Web3.providers.WebsocketProvider(url, {}, { autoReconnect: false });
  return new IpcProvider(ipcPath(url), {}, { autoReconnect: false });
}

async function run(kind, url) {
  const step = reporter(`web3.js ${kind}`);
  const link = provider(kind, url);
  const web3 = new Web3(link);
  const { eth } = web3;
  const account = web3.eth.accounts.privateKeyToAccount(facts.keys[0]);
  const contract = new eth.Contract(facts.abi, facts.contract);
  const { methods } = contract;

  await step('chain id', () => eth.getChainId());
  await step('node info', () => eth.getNodeInfo());
  await step('block number', () => eth.getBlockNumber());
  await step('full block by number', () => eth.getBlock(facts.big_block, true));
  await step('block by hash', () => eth.getBlock(facts.big_hash, false));
  await step('block by tag', () => eth.getBlock('earliest', false));
  await step('unknown block', () => eth.getBlock(10 ** 9));
  await step('transaction', () => eth.getTransaction(facts.paid));
  await step('unknown transaction', () => eth.getTransaction(facts.unknown_hash));
  await step('receipt', () => eth.getTransactionReceipt(facts.noted[0]));
  await step('logs', () => eth.getPastLogs({ address: facts.contract, fromBlock: '0x0', toBlock: facts.big_block }));
  await step('decoded events', () => contract.getPastEvents('Noted', { fromBlock: 0, toBlock: facts.big_block }));
  await step('call', () => methods.sum(40, 2).call());
  await step('call with text', () => methods.echo('gr\u00fc\u00df \u20ac \\ "x"').call());
  await step('call at a block', () => methods.values(3).call({}, facts.noted_blocks[0]));
  await step('custom error', () => methods.refuse(7).call());
  await step('reverts with reason', () => methods.fail().call());
  await step('panics', () => methods.panic(0).call());
  await step('estimate of a revert', () => methods.fail().estimateGas({ from: account.address }));
  await step('balance', () => eth.getBalance(account.address, facts.big_block));
  await step('code', () => eth.getCode(facts.contract));
  await step('storage', () => eth.getStorageAt(facts.contract, 0));
  await step('fee history', () => eth.getFeeHistory(2, facts.big_block, [10, 90]));
  await step('unknown method', () => web3.requestManager.send({ method: 'eth_noSuchMethod', params: [] }));
  await step('many at once', () => Promise.all([...Array(BURST).keys()].map((i) => i % 5 === 4
    ? eth.getBlock(i % 7, true) : eth.getBalance(account.address, i % 7))));

  const nonce = Number(await eth.getTransactionCount(account.address));
  const sign = async (key, text, at) => (await account.signTransaction({ to: facts.contract, nonce: at,
    data: methods.note(key, 7, text).encodeABI(), gas: 300000, maxFeePerGas: 10n ** 11n,
    maxPriorityFeePerGas: 10n ** 9n, chainId: facts.chain_id, type: 2 })).rawTransaction;
  const send = async (key, text, at) => web3.requestManager.send({ method: 'eth_sendRawTransaction',
    params: [await sign(key, text, at)] });
  await step('send raw transaction and receipt', async () => {
    const hash = await send(100 + nonce, `from web3.js ${kind}`, nonce);
    return until(() => eth.getTransactionReceipt(hash).catch(() => null), 'receipt');
  });
  await step('nonce too low', () => send(5, 'late', 0));
  await step('nonce after', () => eth.getTransactionCount(account.address));
  await step('batch', async () => {
    const batch = new web3.BatchRequest({ timeout: 30000 });
    for (const [id, method, params] of [[1, 'eth_getBlockByNumber', ['0x1', false]],
      [2, 'eth_getBalance', [account.address, '0x2']], [3, 'eth_call', [{ to: facts.contract,
        data: methods.fail().encodeABI() }, 'latest']]]) {
      batch.add({ jsonrpc: '2.0', id, method, params });
    }
    return batch.execute({ timeout: 30000 });
  });
  if (kind !== 'http') {
    await step('subscriptions', async () => {
      // Each on a connection of its own: an error reply seen before can keep web3.js from
      // events, and anvil's IPC server forgets one of two subscriptions of a connection.
      const links = [provider(kind, url), provider(kind, url)];
      const heads = await new Web3(links[0]).eth.subscribe('newHeads');
      const logs = await new Web3(links[1]).eth.subscribe('logs', { address: facts.contract });
      const seen = {};
      const both = new Promise((resolve, reject) => {
        const got = (key, value) => {
          seen[key] ??= value;
          if (seen.head && seen.log) resolve();
        };
        // anvil pushes lists of the block's body with its header; a node that is polled has none.
        heads.on('data', ({ transactions, uncles, withdrawals, ...head }) => got('head', head));
        logs.on('data', (log) => got('log', log));
        heads.on('error', reject);
        logs.on('error', reject);
      });
      await send(900 + nonce, `awaited ${kind}`, nonce + 1);
      await both;
      await heads.unsubscribe();
      await logs.unsubscribe();
      links.forEach((l) => l.disconnect(1000, 'done'));
      return seen;
    });
    link.disconnect(1000, 'done');
  }
}

await main(run);
