// SPDX-License-Identifier: MIT
// viem and ethers subscribe to heads and logs and print what they get, until they are ended: an
// object a line. Arguments: FACTS.json KIND=URL..., of ws and ipc.
import { facts, ipcPath, plain, targets, use } from './common.mjs';

const viem = await use('viem');
const { ipc } = await use('viem/node');
const ethers = await use('ethers');

const say = (on, what) => process.stdout.write(`${JSON.stringify(plain({ on, ...what }))}\n`);
const fail = (on) => (error) => say(on, { failed: String(error) });

async function watchViem(kind, url) {
  const on = `viem ${kind}`;
  const transport = kind === 'ws' ? viem.webSocket(url, { reconnect: false }) : ipc(ipcPath(url), { reconnect: false });
  const client = viem.createPublicClient({ transport });
  await client.transport.subscribe({ params: ['newHeads'], onError: fail(on),
    onData: ({ result }) => say(on, { head: Number(result.number), hash: result.hash }) });
  await client.transport.subscribe({ params: ['logs', { address: facts.contract }], onError: fail(on),
    onData: ({ result }) => say(on, { log: result.transactionHash }) });
  say(on, { ready: true });
}

async function watchEthers(kind, url) {
  const on = `ethers ${kind}`;
  const provider = kind === 'ws' ? new ethers.WebSocketProvider(url) : new ethers.IpcSocketProvider(ipcPath(url));
  await provider.on('block', (number) => say(on, { head: number }));
  await provider.on({ address: facts.contract }, (log) => say(on, { log: log.transactionHash }));
  // Subscriptions are set up in the background: let them come up first.
  for (let i = 0; i < 20; i++) await provider.send('eth_chainId', []);
  say(on, { ready: true });
}

for (const { kind, url } of targets) {
  await watchViem(kind, url);
  await watchEthers(kind, url);
}
setInterval(() => {}, 1000);
